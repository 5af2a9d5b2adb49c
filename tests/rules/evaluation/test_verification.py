"""What the XQuery compiler finds is told at its place in the user's file."""

from __future__ import annotations

import pytest

from postroom.errors import ProgramInvalid
from postroom.rules.compilation.checks import check
from postroom.rules.evaluation.verification import verify
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create property p as xs:integer queue a, b create slicing s on p create collection c
"""


def found(text: str) -> list[tuple[int, int, str]]:
    """Line, column and code of every problem."""
    try:
        verify(check(Program(parse(QUEUES + text, "f.demaq")), frozenset()))
    except ProgramInvalid as error:
        problems = error.facts["problems"]
        return [(each.position.line, each.position.column, each.rule) for each in problems if each.position.file]
    return []


def place(text: str) -> tuple[int, int, str]:
    (only,) = found(text)
    return only


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("create rule r for a if ($x) then do enqueue . into b", 3, 25, "XPST0008"),
        ("create rule r for a\n  if (/x) then\n    do enqueue $nothing into b", 5, 16, "XPST0008"),
        ("create rule r for a if (/x) then do enqueue . into b\n with q value $no", 4, 15, "XPST0008"),
        (
            "create rule r for a if (/x) then (do reset s key 1,\n  do enqueue <b/> into b,\n  do enqueue $c into b)",
            5,
            14,
            "XPST0008",
        ),
        ("create rule r for a if (/x) then\n do reset s key\n  $no", 5, 3, "XPST0008"),
        ("create rule r for a if (abs(1, 2)) then do enqueue . into b", 3, 25, "XPST0017"),
        ("create rule r for a if (/x) then\n  do enqueue <a>{concat()}</a> into b", 4, 18, "XPST0017"),
        ("create rule r for a if (/x) then do enqueue\n  xs:string(1, 2) into b", 4, 3, "XPST0017"),
        ("create rule r for a if (/x) then do enqueue\n  ('a' => substring()) into b", 4, 11, "XPST0017"),
        ("create rule r for a if (/x) then do enqueue\n  map:get(map {}) into b", 4, 3, "XPST0017"),
        ("create rule r for a if (/no:x) then do enqueue . into b", 3, 0, "XPST0081"),
        ("create rule r for a if (/x instance of xs:nothing) then do enqueue . into b", 3, 0, "XPST0051"),
        ("create rule r for s if (qs:slice()[$no]) then do reset", 3, 36, "XPST0008"),
    ],
)
def test_an_error_of_the_compiler_stands_where_it_was_written(text: str, line: int, column: int, code: str) -> None:
    at = place(text)
    assert at[2] == code
    assert at[0] == line
    if column:
        assert abs(at[1] - column) <= 2, at  # Saxon counts from the word or from its sign


def test_what_our_own_words_became_does_not_move_what_stands_behind_them() -> None:
    text = """create rule r for s
  if (qs:slice() and qs:queue("b")[x = qs:message()/x] and collection("c") and qs:property("p")) then
    let $x := qs:slicekey() return
    (do enqueue <a>{qs:message()}</a> into b with p value qs:slicekey(), do enqueue $wrong into b)
"""
    line, column, code = place(text)
    assert (line, code) == (6, "XPST0008")
    assert abs(column - (text.split("\n")[3].index("$wrong") + 1)) <= 2


def test_each_rule_and_each_value_tells_its_own_error_in_the_order_of_the_text() -> None:
    text = """create rule one for a if ($one) then do enqueue . into b
create property q as xs:string queue a value
   $two
create rule right for a if (/x) then do enqueue . into b
create rule three for a if (/x) then
  do enqueue $three into b
"""
    assert [(line, code) for line, _, code in found(text)] == [(3, "XPST0008"), (5, "XPST0008"), (8, "XPST0008")]


def test_an_error_of_a_property_stands_at_its_value() -> None:
    assert place("create property q as xs:string queue a value\n  (1, $x)") == (4, 3, "XPST0008")


def test_what_fails_for_no_message_but_some_compiles() -> None:
    assert found("create rule r for a if (1 div 0) then do enqueue xs:integer('x') into b") == []
    assert found("create rule r for a if (error()) then do enqueue . into b") == []


def test_as_many_arguments_as_a_function_takes_are_right() -> None:
    calls = "concat(1, 2, 3, 4), 'a' => substring(1), substring(?, 2)('b'), map:get(map { 1: 2 }, 1), xs:int('1')"
    assert found(f"create rule r for a if (/x) then do enqueue <x>{{{calls}}}</x> into b") == []


def test_a_type_error_that_the_compiler_sees_is_an_error() -> None:
    line, _, code = place("create rule r for a if (1 + 'x') then\n  do enqueue . into b")
    assert (line, code) == (3, "XPTY0004")
