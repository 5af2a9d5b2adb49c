"""Working sets as they travel, and the outcomes that they come back with."""

from __future__ import annotations

from typing import Any

from postroom.errors import ArgumentInvalid, StationUnknown
from postroom.stations.forms.catalog import Edition
from postroom.stations.procedures.actions import Outcome
from postroom.stations.procedures.claiming import Arrival
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.procedures.working import Used, conclude, prepared, unknown_station, work_out

from .office import forms, message
from .test_claiming import looked

TEXT = """\
procedure p at ann
  precondition a : ORDER
  action act on a
    Status: done
  destination d on a copy 0 {goal}
"""
FORMS = Used({("ORDER", 1): forms()["ORDER"]}, {name: Edition(form, 1) for name, form in forms().items()})
HOMES = {"ann": "control", "bob": "control"}


def outcome(goal: str, **fields: Any) -> Outcome:
    look = looked(TEXT.format(goal=goal), Arrival(message(1, "ORDER", No=1, **fields), False))
    work_out(look.sets, FORMS, HOMES, 0, evaluate_here)
    (working,) = look.sets
    assert working.outcome is not None
    return working.outcome


def test_a_set_travels_with_the_messages_that_are_read_or_written() -> None:
    look = looked(TEXT.format(goal="leave"), Arrival(message(1, "ORDER", No=1), False))
    bench, (complete,) = prepared(look.sets, FORMS, 7)
    assert (list(bench.plans), complete.plan, complete.now) == (["p"], "p", 7)
    assert [(member.sketch, member.type, member.form) for member in complete.members] == [("a", "ORDER", 1)]


def test_a_set_gets_its_outcome() -> None:
    done = outcome("ship bob")
    assert (done.failed, done.where) == (False, ("bob",))
    assert '"Status":"done"' in done.written["a"][0]


def test_a_set_that_is_to_go_where_nothing_can_go_fails() -> None:
    assert outcome("ship ?a.Item", Item="bib").code == StationUnknown.code
    assert outcome("dossier ?a.Item", Item="x" * 300).code == ArgumentInvalid.code
    assert "did you mean bob" in unknown_station("bib", HOMES)


def test_a_failure_stays_a_failure() -> None:
    look = looked(TEXT.format(goal="leave"), Arrival(message(1, "ORDER", No=1), False))
    conclude(look.sets, {0: Outcome(code="x", why="y")}, HOMES)
    assert look.sets[0].outcome == Outcome(code="x", why="y")
