"""Bindings: what a let or for binds, where it is visible, and where it is used rather than another of its name."""

from __future__ import annotations

import pytest

from postroom.rules.language.expression import read


def shown(text: str) -> list[str]:
    """Each binding with the text in which it is visible, its uses marked."""
    lines = []
    for binding in read(text, 0, len(text)).bindings:
        visible, end = "", binding.scope.start
        for use in binding.uses:
            visible += text[end : use.start] + "«" + text[slice(*use)] + "»"
            end = use.end
        visible += text[end : binding.scope.end]
        lines.append(f"{binding.kind} {binding.name} = {text[slice(*binding.value)]} |{visible}")
    return lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let $v := qs:queue('a') return $v[b]", ["let v = qs:queue('a') | return «$v»[b]"]),
        (
            "let $v := 1, $w := $v return <a b='{$v}'>{$w, $ v}</a>",
            [
                "let v = 1 |, $w := «$v» return <a b='{«$v»}'>{$w, «$ v»}</a>",
                "let w = $v | return <a b='{$v}'>{«$w», $ v}</a>",
            ],
        ),
        ("for $v at $i in a where $v = $i return $v", ["for v = a | where «$v» = $i return «$v»"]),
        ("(let $v := 1 return $v), $v", ["let v = 1 | return «$v»"]),
        ("let $v := $v return $v", ["let v = $v | return «$v»"]),
        (
            "let $v := 1 let $v := $v + 1 return $v",
            ["let v = 1 | let $v := «$v» + 1 return $v", "let v = $v + 1 | return «$v»"],
        ),
        (
            "let $v := 1 return (for $v in $v return $v, $v)",
            ["let v = 1 | return (for $v in «$v» return $v, «$v»)", "for v = $v | return «$v»"],
        ),
        ("let $v := 1 return some $v in $v satisfies $v", ["let v = 1 | return some $v in «$v» satisfies $v"]),
        ("let $v := 1 return function($v) { $v }($v)", ["let v = 1 | return function($v) { $v }(«$v»)"]),
        (
            "let $v := 1 return typeswitch ($v) case $v as a return $v case b return $v default $v return $v",
            ["let v = 1 | return typeswitch («$v») case $v as a return $v case b return «$v» default $v return $v"],
        ),
        (
            "for $v in a group by $v, $k := $v order by $k return ($k, $v)",
            ["for v = a | group by «$v», $k := «$v» order by $k return ($k, «$v»)"],
        ),
        (
            "let $v := 1 for $x in a count $v return $v",
            ["let v = 1 | for $x in a count $v return $v", "for x = a | count $v return $v"],
        ),
        (
            "let $v := 1 for sliding window $w in $v start $v when $v end $e when $v return $w",
            [
                "let v = 1 | for sliding window $w in «$v» start $v when $v end $e when $v return $w",
                "for w = $v | start $v when $v end $e when $v return «$w»",
            ],
        ),
        ("let $p:v := 1 return ($v, $p:v, $Q{}v)", ["let p:v = 1 | return ($v, «$p:v», $Q{}v)"]),
        ("let $v := 1 return ($Q{ }v, $Q{u}v)", ["let v = 1 | return («$Q{ }v», $Q{u}v)"]),
        ("(let $v := 1 return '$v', $v)", ["let v = 1 | return '$v'"]),
        ("let $v := 1 return ('$v', <a>$v</a>, (: $v :) $v)", ["let v = 1 | return ('$v', <a>$v</a>, (: $v :) «$v»)"]),
        ("let $v := 1 return $v => $v($v)", ["let v = 1 | return «$v» => «$v»(«$v»)"]),
        (
            "if (a) then let $v := b return do enqueue $v into q with p value $v else do reset s key $v",
            ["let v = b | return do enqueue «$v» into q with p value «$v»"],
        ),
        (
            "let $a := (let $b := 1 return $b) return $a",
            ["let a = (let $b := 1 return $b) | return «$a»", "let b = 1 | return «$b»"],
        ),
    ],
)  # fmt: skip
def test_a_use_belongs_to_the_innermost_binding_of_its_name(text: str, expected: list[str]) -> None:
    assert shown(text) == expected
