"""What a procedure becomes: what its sketches select, and by what partners are looked up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postroom.stations.procedures.plan import Plan, compare, planned, selected

from .office import forms, procedures

CHAIN = """\
procedure chain at ann
  precondition a : ORDER
    Status: open
    Item: <> ?a.Team
  precondition b : BILL
    No: ?a.No
  precondition c : ORDER
    No: ?b.No
  origin o on a not from bob
  destination d on a copy 1 leave
"""


@pytest.fixture
def plan() -> Plan:
    (procedure,) = procedures(CHAIN)
    return planned(procedure, forms())


def fits(plan: Plan, type: str, origins: frozenset[str] = frozenset(["ann"]), **fields: Any) -> list[str]:
    wanted = [(0, place, picked) for place, picked in enumerate(plan.sketches) if picked.type == type]
    return [plan.sketches[each.sketch].name for each in selected(wanted, json.dumps(fields), origins)]


def test_a_sketch_selects_by_conditions_relations_and_origin(plan: Plan) -> None:
    fields: dict[str, Any] = {"No": 1, "Status": "open", "Item": "x", "Team": "y"}
    assert fits(plan, "ORDER", **fields) == ["a", "c"]
    assert fits(plan, "ORDER", frozenset(["bob"]), **fields) == ["c"]
    assert fits(plan, "ORDER", **{**fields, "Team": "x"}) == ["c"]
    assert fits(plan, "ORDER", **{**fields, "Status": "done"}) == ["c"]
    assert fits(plan, "ORDER", Status="open", Item="x", Team="y") == [], "what joins compare must be there"


def test_an_equality_reaches_further_than_it_is_written(plan: Plan) -> None:
    first, second = plan.searches[0]
    assert {plan.sketches[find.sketch].name for find in (first, second)} == {"b", "c"}
    assert all(find.probe for find in (first, second)), "c is found by a: a = b and b = c"
    assert (plan.links, plan.new_messages) == (("b.No = a.No", "c.No = b.No"), 1)


@pytest.mark.parametrize(
    ("sign", "holds"),
    [("=", (False, True, False)), ("<>", (True, False, True)), ("<", (True, False, False)),
     ("<=", (True, True, False)), (">", (False, False, True)), (">=", (False, True, True))],
)  # fmt: skip
def test_values_are_compared_in_one_order(sign: str, holds: tuple[bool, bool, bool]) -> None:
    assert (compare("a", sign, "b"), compare("b", sign, "b"), compare("c", sign, "b")) == holds


def test_goals_are_worked_out_once_for_those_who_go_the_same_way(plan: Plan) -> None:
    assert plan.goals((None,)) is plan.goals((None,))


def test_who_makes_more_of_one_weighs_more_in_a_chain(plan: Plan) -> None:
    (plain,) = procedures("procedure p at ann\n  precondition a : ORDER\n")
    assert planned(plain, forms()).weight == 1
    (double,) = procedures("procedure p at ann\n  precondition a : ORDER\n  destination d on a copy 1 leave\n")
    assert planned(double, forms()).weight == 6
