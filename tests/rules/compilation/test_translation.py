"""From rules to queries: our words become XQuery, lines stay, and what is worked out is what was asked for."""

from __future__ import annotations

import pytest

from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Key, Plan, Read
from postroom.rules.compilation.translation import Surroundings, cast, escaped, translated
from postroom.rules.compilation.updates import RAISE
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue plain kind basic mode persistent
create property p as xs:integer queue a, b value //p create slicing s on p
create property name as xs:string inherited queue a create collection c
"""


def program(text: str) -> Program:
    return Program(parse(QUEUES + text, "f.demaq"))


def plan(text: str) -> Plan:
    return compiled(program(text), 1, "m")


def body(text: str, target: str = "a") -> tuple[str, Surroundings]:
    known = program(f"create rule r for {target} {text}")
    around = Surroundings(known, "a", "m")
    return translated(known.rules["r"], around).text, around


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if (qs:message()/x) then ()", "if ($qs:message/x) then () else ()"),
        ("if (qs:property('p')) then ()", 'if (qs:to-integer($qs:m/Q{}p[@n = "p"])) then () else ()'),
        ("if (qs:property('free')) then ()", 'if (qs:given($qs:m/Q{}p[@n = "free"])) then () else ()'),
        ("if (qs:property('created')) then ()", "if (qs:to-dateTime($qs:m/@created)) then () else ()"),
        ("if (qs:queue('b')) then ()", "if ($qs:sets(string($qs:m/@s0))) then () else ()"),
        ("if (collection('c')) then ()", "if ($qs:collection-c) then () else ()"),
        ("if (fn:collection('c')) then ()", "if ($qs:collection-c) then () else ()"),
        ("if (/x) then do reset s key /k", 'if (/x) then qs:reset("s", "0", qs:to-integer(( /k))) else ()'),
        (
            "if (/x) then do enqueue <a/> into plain",
            "if (/x) then ($qs:t0,  <a/> ) else ()",
        ),
        ("if (/x) then do enqueue . into plain", 'if (/x) then qs:into-0(RAISE, "0.13=", ( . ), (), $qs:h) else ()'),
        (
            "if (/x) then do enqueue . into b with p value 1 with x value 2",
            'if (/x) then qs:into-0(RAISE, "0.13=", ( . ), ( qs:as-integer(RAISE, CAST, "p", ( 1)) , '
            'qs:as-given(RAISE, "x", ( 2))), $qs:h) else ()',
        ),
        (
            "if (/x) then do enqueue 1 into a, do enqueue 2 into b",
            'if (/x) then (qs:into-0(RAISE, "0.13", ( 1 ), (), $qs:h), '
            'qs:into-1(RAISE, "0.34", ( 2 ), (), $qs:h)) else ()',
        ),
    ],
)
def test_our_words_become_xquery(text: str, expected: str) -> None:
    assert body(text)[0].replace(RAISE, "RAISE").replace(cast("integer"), "CAST") == expected


def test_a_rule_of_a_slicing_reads_its_slice_by_the_key_of_its_message() -> None:
    text, around = body("if (qs:slice()/x) then do reset", "s")
    assert text == 'if ($qs:sets(string($qs:m/@s0))/x) then qs:reset("s", "0", qs:to-integer($qs:m/@k0)) else ()'
    assert around.reads == [Read("slice", "s", Key("property", "p"))]


def test_lines_stay_where_they_are() -> None:
    text = "if (\n qs:message()/x\n and qs:queue('b')\n) then\n do enqueue\n <a>\n</a>\n into\n b\n with p value\n 1"
    made, _ = body(text)
    assert made.count("\n") == text.count("\n")
    assert made.split("\n")[6].startswith("</a>")


def test_the_same_set_is_read_once_by_all_rules_of_a_queue() -> None:
    made = plan(
        """create rule one for a if (qs:queue("b") and qs:queue()) then do reset s key 1
        create rule two for a if (qs:queue("b")) then do reset s key 1
        create rule three for s if (qs:slice()) then do reset"""
    )
    assert made.queues["a"].reads == (
        Read("queue", "b"),
        Read("queue", "a"),
        Read("slice", "s", Key("property", "p")),
    )
    assert [str(each) for each in made.queues["a"].reads] == [
        "the whole queue b",
        "the whole queue a",
        "slice s by property p",
    ]


@pytest.mark.parametrize("text", ['a"b', "<&>", "a{b}c", '&quot;"'])
def test_a_name_in_a_constructor_is_the_same_text_again(text: str) -> None:
    from postroom.rules.evaluation.saxon_format import _plain
    from postroom.rules.evaluation.xquery import saxon

    said = saxon().run(f'<k n="{escaped(text)}"/>', "<b/>")
    assert _plain(said.partition('"')[2].rpartition('"')[0]) == text
