"""Every check of a graph: what breaks it, and where that is reported."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.graph.checks import CHECKS, check, check_tables, typed
from postroom.flows.language.definitions import Space
from postroom.flows.language.reader import parse

DOMAIN = "domain d\nspace A : [x: int]\nspace B : [x: int]\nspace C : [y: string]\n"
MANY = " ".join(
    f"space S{n} : int arc x{n} : S{n} -> S{n + 1} merge arc y{n} : S{n} -> S{n + 1} merge" for n in range(17)
)
BROKEN = [
    ("ways", f"{MANY} space S17 : int", "5:1: more than 50000 arcs on all paths from S0"),
    ("name-twice", "space A : int", "5:1: A is already at f:2:1"),
    (
        "name-twice",
        "table t : [a: int] from 't'\ntable t : [a: int] from 't'".replace("'", '"'),
        "6:1: t is already",
    ),
    ("name-twice", "arc a : A -> B merge\narc a : A -> B merge", "6:1: a is already at f:5:1"),
    ("arc-ends", "arc a : A -> Nowhere merge", "5:1: arc a: there is no space Nowhere"),
    ("arc-ends", "arc a : A -> A merge", "5:1: arc a leads from A to itself"),
    ("meta-space", "space meta : int", "5:1: meta is not a name for a space: meta-spaces are meta:DOMAIN"),
    ("meta-space", "arc a : A -> meta:d merge", "5:1: arc a: nothing flows into meta:d"),
    ("arc-domain", "domain e\narc a : A -> B merge", "6:1: arc a belongs to d, whose spaces it joins, not to e"),
    (
        "arc-domain",
        "domain e space E : [x: int] arc a : A -> E merge domain d arc a : A -> E select [x: 1]",
        "5:59: arc a is not what e says of it at f:5:29",
    ),
    (
        "table-rows",
        'table t : int from "t"',
        "5:1: the rows of table t are [name: type, …] of simple types, not int",
    ),
    ("table-rows", 'table t : [a: {int}] from "t"', "5:1: the rows of table t"),
    ("arc-type", "arc a : A -> C merge", "5:1: arc a: A has [x: int], and C takes [y: string]"),
    ("arc-type", 'arc a : A -> B select [x: "s"]', '5:27: arc a: "s" can never be a value of type int'),
    (
        "arc-type",
        "arc a : A -> C transform [x: x] => [y: x]",
        "5:40: arc a: x is of type int, and string is wanted",
    ),
    ("arc-type", "arc a : A -> C transform [x: x] join t [a: x] => [y: x]", "5:1: arc a: there is no table t"),
    (
        "arc-plan",
        f"space P : {{int}} space Q : ({{int}}) arc a : P -> Q transform {{{', '.join('1' * 4_000)}}} + r"
        f" => ({'r, ' * 400})",
        "5:35: arc a would be ",
    ),
    (
        "arc-state",
        "arc a : A -> C transform [x: x] at x join A [x: y] at y within 1 day => [y: x]",
        "5:1: arc a joins A with itself",
    ),
    (
        "stream-ends",
        'space O : [x: int] to files "g/o" format json space P : [x: int] from files "g/p" format json\n'
        "arc a : P -> O merge arc b : O -> A merge",
        "6:22: arc b: events of O go outside, and no arc leads on",
    ),
    (
        "stream-ways",
        'space O : [x: int] to files "g/o" format json arc a : A -> O merge',
        "5:47: arc a: only events from outside go to O, not those of A",
    ),
    ("cycle", "arc a : A -> B merge\narc b : B -> A merge", "6:1: arc b closes a circle: A -> B -> A"),
]


@pytest.mark.parametrize(("rule", "text", "why"), BROKEN)
def test_a_check_tells_what_breaks_it_and_where(rule: str, text: str, why: str) -> None:
    with pytest.raises(FlowInvalid) as caught:
        check(parse(DOMAIN + text, "f"))
    (problem,) = caught.value.facts["problems"]
    assert problem.rule == rule
    assert f"{problem.position}: {problem.what}".startswith(f"f:{why}")


def test_every_check_has_a_failing_example() -> None:
    assert {rule for rule, _, _ in BROKEN} == {each.__name__.replace("_", "-") for each in CHECKS}


def test_all_problems_are_told_at_once() -> None:
    text = "arc a : A -> C merge\narc b : A -> B select [y: 1]\narc c : B -> A merge"
    with pytest.raises(FlowInvalid, match=r"\(and 2 more: postroom load --check lists them\)") as caught:
        check(parse(DOMAIN + text + "\narc d : A -> B merge", "f"))
    assert [problem.rule for problem in caught.value.facts["problems"]] == ["arc-type", "arc-type", "cycle"]


def test_a_long_chain_of_arcs_is_checked_without_depth() -> None:
    spaces = "".join(f"space S{number} : int\n" for number in range(3_000))
    arcs = "".join(f"arc a{number} : S{number} -> S{number + 1} merge\n" for number in range(2_999))
    assert len(check(parse(f"domain d\n{spaces}{arcs}", "f")).arcs) == 2_999


def test_an_arc_that_was_checked_before_is_not_looked_at_again() -> None:
    statements = parse(f"{DOMAIN}arc a : A -> B merge", "f")
    first = check(statements)
    again = check(statements, first)
    (arc,) = again.arcs["d:a"]
    assert again.knows(arc)
    assert not first.knows(arc)
    assert not check(parse(f"{DOMAIN}arc a : A -> B merge", "f"), first).knows(arc)


def test_a_type_is_passed_on_through_spaces_that_have_none() -> None:
    text = "domain d space A : [x: int] space B space C arc a : A -> B merge arc b : B -> C transform [x: v] => [y: v]"
    found = {each.name: str(each.type) for each in typed(parse(text, "f")) if isinstance(each, Space)}
    assert found == {"A": "[x: int]", "B": "[x: int]", "C": "[y: int]"}


def test_tables_are_checked_before_their_rows_are_read() -> None:
    with pytest.raises(FlowInvalid, match="table-rows"):
        check_tables(parse('domain d table t : [{int}] from "t"', "f"))
    check_tables(parse('domain d table t : [a: int] from "t"', "f"))
