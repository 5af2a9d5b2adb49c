"""What a complete working set leads to: what is written, what is made, where it goes; or why to nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from postroom.stations.forms.catalog import Edition
from postroom.stations.procedures.actions import CODE, Bench, Complete, Member, Outcome, functions_of
from postroom.stations.procedures.plan import planned

from .office import forms, procedures

PROCEDURE = """\
procedure bill at ann
  precondition order : ORDER
  action price on order
    Amount: 2.5
    Status: ?order.Amount'
    Team: team(?order.No)
  create bill : BILL
    No: ?order.No
    Note: for ?order.No
  destination d0 on order copy 0 ship ?order.Item
  destination d1 on order copy 1 leave
  destination d2 on bill copy 0 dossier bills
"""


def outcome(
    team: Callable[..., Any] | None, text: str = PROCEDURE, failure: str | None = None, **fields: Any
) -> Outcome:
    known = forms()
    (procedure,) = procedures(text)
    plan = planned(procedure, known)
    body = json.dumps({"No": 7, "Item": "bob", "KEY": "00001.00001", **fields}, separators=(",", ":"))
    bench = Bench(
        {"bill": plan},
        {("ORDER", 1): known["ORDER"]},
        {name: Edition(form, 1) for name, form in known.items()},
        functions_of([plan], known.values(), lambda name: team if name == "team" else None),
    )
    member = Member("order", "ORDER", 1, body)
    return bench.outcome(Complete(0, "bill", (member,), tuple(range(100_002, 100_002 + plan.new_messages)), 0, failure))


def test_values_are_written_in_the_order_that_they_need() -> None:
    done = outcome(lambda number: f"team {number}")
    assert not done.failed
    body, fields = done.written["order"]
    assert json.loads(body) == {
        "No": 7,
        "Item": "bob",
        "Amount": "2.5",
        "Status": "2.5",
        "Team": "team 7",
        "KEY": "00001.00001",
    }
    assert set(fields) == {"Amount", "Status", "Team"}
    assert done.where == ("bob", None, "bills")
    made = [(each.sketch, each.copy, each.type, json.loads(each.body)["KEY"]) for each in done.made]
    assert made == [("bill", 0, "BILL", "00001.00002"), ("order", 1, "ORDER", "00001.00003")]
    assert json.loads(done.made[1].body)["Team"] == "team 7", "a copy has what was written"


def refuse(number: int) -> str:
    raise RuntimeError(f"not {number}")


@pytest.mark.parametrize(
    ("team", "fields", "why"),
    [
        (None, {}, "no function is registered as team"),
        (refuse, {}, "the function team failed: RuntimeError: not 7"),
        (lambda _: object(), {}, "takes text"),
        (lambda _: "x", {"Item": None}, "ship ?order.Item: there is no value"),
    ],
)
def test_a_value_that_cannot_be_worked_out_fails_the_whole_set(
    team: Callable[..., Any] | None, fields: dict[str, Any], why: str
) -> None:
    done = outcome(team, **fields)
    assert done.failed
    assert why in done.why
    assert (done.written, done.made, done.where) == ({}, (), ())


def test_a_set_that_killed_its_worker_is_not_tried_again() -> None:
    assert outcome(None, failure="it killed its worker") == Outcome(code=CODE, why="it killed its worker")
