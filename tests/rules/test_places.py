"""Errors at run time name the line and the column of the program: of the clause that failed, whatever code it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.rules.conftest import Load

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue errs kind basic mode persistent create queue later kind echo mode persistent
create property p as xs:integer queue b
create property v as xs:integer queue b value /o/v
create property f as xs:boolean queue b value false
"""
#: Before the rule stand five lines, and it begins with one more.
CASES = [
    ("do enqueue\n (1, 2) into b", "PR0001", "7:14"),
    ("do enqueue document { comment { 'x' } } into b", "PR0001", "7:14"),
    ("(do enqueue <o/> into b,\n  do enqueue /m/none into b)", "PR0001", "8:3"),
    ("do enqueue <o/> into b\n  with p value (1, 2)", "PR0002", "8:3"),
    ("do enqueue <o/> into b with q value 1\n  with p value 'abc'", "FORG0001", "8:3"),
    ("do enqueue <o/> into b\n  with q value (1, 2)", "PR0002", "8:3"),
    ("do enqueue <o><v>x</v></o> into b", "FORG0001", "4:47"),
    ("do enqueue <o><v>1</v><v>2</v></o> into b", "PR0002", "4:47"),
    ("(do enqueue <o/> into b,\n do enqueue <o/> into later with target value 'a' with timeout value 'x')",
     "PR0004", "8:2"),
    ("do enqueue copy $c := (1,\n 2) modify () return $c into b", "XUTY0013", "7:36"),
    ("do enqueue copy $c := /m modify (\n delete node /m) return $c into b", "XUDY0014", "7:39"),
    ("do enqueue copy $c := /m modify (\n delete node 1) return $c into b", "XUTY0007", "8:2"),
    ("do enqueue copy $c := /m modify (\n insert node <n/> into ()) return $c into b", "XUDY0027", "8:2"),
    ("do enqueue copy $c := /m modify (\n replace node $c with <n/>) return $c into b", "XUDY0009", "8:2"),
    ("do enqueue copy $c := /m modify (\n replace value of node () with 1) return $c into b", "XUDY0027", "8:2"),
    ("do enqueue copy $c := /m modify (\n rename node $c as ()) return $c into b", "XPTY0004", "8:17"),
]  # fmt: skip


def told(load: Load, rules: str, prolog: str = "", body: str = "<m>abc</m>") -> list[tuple[str, str, str, str]]:
    """The errors of a message: the queue that took each, its code, its rule, and its place."""
    room = load(f"{prolog}{QUEUES}{rules}")
    room.send("a", body, format="xml")
    room.run_until_idle()
    found = [(queue, error.body) for queue in ("errs", "postroom-errors") for error in room.queues.info(queue)]
    words = [(queue, *(_word(text, name) for name in ("code", "rule", "place"))) for queue, text in found]
    assert not any("postroom:/" in text or "lazy" in text for _, text in found)
    return [(queue, code, rule, place.removeprefix("p.demaq:")) for queue, code, rule, place in words]


def _word(text: str, name: str) -> str:
    return " ".join(re.findall(f"<{name}>([^<]*)</{name}>", text))


@pytest.mark.parametrize(("actions", "code", "place"), CASES, ids=lambda value: str(value)[:60])
def test_an_error_has_the_place_of_the_clause_that_failed(load: Load, actions: str, code: str, place: str) -> None:
    rule = f"create rule r for a errorqueue errs\nif (/m) then {actions}"
    assert told(load, rule) == [("errs", code, "r", place)]


def test_an_error_of_a_deadline_has_its_place(load: Load) -> None:
    rule = (
        "create rule r for a errorqueue errs unless (qs:queue('b'))\n within (/m) if (/m) then do enqueue <o/> into b"
    )
    assert told(load, rule) == [("errs", "PR0008", "r", "7:10")]


def test_a_message_that_fits_no_schema_has_the_place_of_its_action(load: Load, tmp_path: Path) -> None:
    (tmp_path / "n.xsd").write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="n" type="xs:int"/></xs:schema>'
    )
    rule = """create queue n kind basic mode persistent schema n.xsd create rule r for a errorqueue errs
    if (/m) then (do enqueue <n>1</n> into n,
      do enqueue <n>x</n> into n)"""
    assert told(load, rule) == [("errs", "schema-invalid", "r", "8:7")]


VARIABLE = "declare variable $local:limit :=\n xs:integer('many');\n"


@pytest.mark.parametrize("use", ["$local:limit", "local:f()"])
def test_a_variable_that_fails_is_an_error_of_the_rule_that_uses_it_at_the_variable(load: Load, use: str) -> None:
    rules = f"""create rule first for a if (/m) then do enqueue <o/> into b
    create rule second for a errorqueue errs if (/m) then do enqueue <o>{{{use}}}</o> into b
    create rule third for a if (/m) then do enqueue <o/> into b"""
    prolog = f"{VARIABLE}declare function local:f() {{ $local:limit }};\n"
    ((queue, code, rule, place),) = told(load, rules, prolog)
    assert (queue, code, rule, place.partition(":")[0]) == ("errs", "FORG0001", "second", "2")


def test_a_variable_that_no_rule_needs_is_no_error(load: Load) -> None:
    assert told(load, "create rule r for a if (/m) then do enqueue <o/> into b", VARIABLE) == []
