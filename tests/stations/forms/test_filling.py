"""Filling in a form: who writes which field, and when."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from postroom.errors import FieldRefused, FunctionFailed
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import asks_functions, copied, created, fitting, modified, values
from postroom.stations.forms.reader import parse

(ORDER,) = parse(
    """\
type ORDER
| Item: ________ Count: ______ Price: ______ |
| Note: ________ Tags: ________ Due: ________ |
| KEY: _______ DATE: ________ TIME: ________ Clerk: _____ |
field Item string required
field Count int free
field Price decimal free
field Note string once
field Tags list of string free
field Due date free
field KEY key automatic
field DATE date automatic
field TIME time automatic
field Clerk string automatic signature
""",
    "order.form",
)
(SUM,) = parse(
    "type SUM\n| A: __ B: __ Total: ___ |\nfield A int free\nfield B int free\nfield Total int automatic add_up\n",
    "sum.form",
)
NOW = 1_700_000_000_123_456  # 2023-11-14 22:13:20 UTC


def order(**given: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(created(Edition(ORDER, 1), given, 100_001, "ann", NOW))
    return found


def test_a_new_message_has_what_was_given_and_what_the_system_writes() -> None:
    given = {"Item": "desk", "Count": "3", "Price": Decimal("9.50"), "Tags": "a, b", "Due": date(2026, 12, 1)}
    assert order(**given) == {
        "Item": "desk",
        "Count": 3,
        "Price": "9.50",
        "Tags": ["a", "b"],
        "Due": "2026-12-01",
        "KEY": "00001.00001",
        "DATE": "2023-11-14",
        "TIME": "22:13:20",
        "Clerk": "ann",
    }


@pytest.mark.parametrize("blanks", ["", " ", "   ", "\t", "\n", "\u00a0", None])
def test_a_required_field_takes_no_blanks(blanks: str | None) -> None:
    with pytest.raises(FieldRefused, match="Item: it is required"):
        order(Item=blanks)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("Count", "many", "takes a whole number"),
        ("Count", 2**63, "whole numbers from"),
        ("KEY", "00001.00007", "it is automatic"),
        ("Itme", "x", "there is no such field; did you mean Item"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(field: str, value: Any, why: str) -> None:
    with pytest.raises(FieldRefused, match=why) as caught:
        order(**{"Item": "desk", field: value})
    assert caught.value.facts["field"] == field


def test_each_kind_of_field_is_modified_as_its_rule_says() -> None:
    body = json.dumps(order(Item="desk", Count=3))
    after, changed = modified(ORDER, body, {"Count": 4, "Note": "heavy"})
    assert (json.loads(after)["Count"], json.loads(after)["Note"], changed) == (4, "heavy", ["Count", "Note"])
    assert modified(ORDER, after, {"Count": 4}) == (after, []), "nothing changes"
    assert "Count" not in json.loads(modified(ORDER, after, {"Count": None})[0]), "what is empty is left out"
    for field, why in [("Item", "cannot be modified"), ("Note", "once it is"), ("Clerk", "automatic")]:
        with pytest.raises(FieldRefused, match=why):
            modified(ORDER, after, {field: "other"})


def test_a_copy_has_another_key_and_nothing_else() -> None:
    body = order(Item="desk")
    copy = json.loads(copied(ORDER, json.dumps(body), 100_002))
    assert copy == {**body, "KEY": "00001.00002"}


def test_values_are_typed_and_those_that_are_missing_are_none() -> None:
    found = values(ORDER, '{"Item":"desk","Price":"9.50","Tags":["a"],"Old":"of another version"}')
    assert (found["Price"], found["Tags"], found["Note"]) == (Decimal("9.50"), ("a",), None)
    assert "Old" not in found


def test_fitting_says_why_a_value_does_not_fit() -> None:
    count = ORDER.field("Count")
    assert count is not None
    assert fitting(ORDER, count, "7") is None
    assert "takes a whole number" in (fitting(ORDER, count, "seven") or "")


def test_a_function_is_asked_with_the_other_fields_and_its_failure_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_up(others: Any) -> int:
        return int(others["A"] + others["B"])

    assert (asks_functions(SUM), asks_functions(ORDER)) == (True, False)
    with pytest.raises(FunctionFailed, match="not registered"):
        created(Edition(SUM, 1), {"A": 1, "B": 2}, 1, "ann", NOW)
    monkeypatch.setitem(functions._registered, "add_up", add_up)
    body = created(Edition(SUM, 1), {"A": 1, "B": 2}, 1, "ann", NOW)
    assert json.loads(body) == {"A": 1, "B": 2, "Total": 3}
    assert modified(SUM, body, {"B": 5}) == ('{"A":1,"B":5,"Total":6}', ["B", "Total"])
    with pytest.raises(FunctionFailed, match=r"add_up.*TypeError"):
        created(Edition(SUM, 1), {"A": 1}, 1, "ann", NOW)
