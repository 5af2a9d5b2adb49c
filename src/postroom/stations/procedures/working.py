"""From complete working sets to outcomes: prepares messages, evaluates, and checks destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from postroom.errors import ArgumentInvalid, StationUnknown
from postroom.model.definitions import nearest
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.form import Form
from postroom.stations.places.names import is_dossier
from postroom.stations.places.postmarks import postmarks
from postroom.stations.procedures.actions import Bench, Complete, Member, Outcome, functions_of
from postroom.stations.procedures.claiming import WorkingSet
from postroom.stations.procedures.definitions import Operation
from postroom.store.kernel.transaction import Transaction

#: Works out what complete working sets lead to, by their numbers.
Evaluate = Callable[[Bench, Sequence[Complete]], Mapping[int, Outcome]]


class Used(NamedTuple):
    """The forms that working sets need."""

    made_with: Mapping[tuple[str, int], Form]  # by type and version, of the messages that are there
    present: Mapping[str, Edition]  # for new messages


def forms_of(forms: Forms, sets: Sequence[WorkingSet], tx: Transaction) -> Used:
    """Read the forms at the control node."""
    versions = {_version(working, sketch) for working in sets for sketch in working.plan.used}
    types = {new.type for working in sets for new in working.plan.procedure.creations}
    made_with = {version: forms.at(tx, *version).form for version in versions}
    return Used(made_with, {type: forms.named(tx, type) for type in types})


def work_out(sets: Sequence[WorkingSet], forms: Used, homes: Mapping[str, str], now: int, evaluate: Evaluate) -> None:
    """Evaluate every set."""
    conclude(sets, evaluate(*prepared(sets, forms, now)), homes)


def prepared(sets: Sequence[WorkingSet], forms: Used, now: int, *, bodies: bool = True) -> tuple[Bench, list[Complete]]:
    """The inputs of an evaluation, and the sets with bodies, or with keys for executors."""
    pieces = [_complete(number, working, now, bodies) for number, working in enumerate(sets)]
    plans = {working.plan.name: working.plan for working in sets}
    known = [*forms.made_with.values(), *(edition.form for edition in forms.present.values())]
    return Bench(plans, *forms, functions_of(plans.values(), known, functions.find)), pieces


def conclude(sets: Sequence[WorkingSet], outcomes: Mapping[int, Outcome], homes: Mapping[str, str]) -> None:
    """Give every set its outcome, or an error if its destination is impossible."""
    known: dict[int, Outcome | None] = {}  # by goals, which many sets have in common
    for number, working in enumerate(sets):
        working.outcome = outcomes[number]
        if not working.outcome.failed:
            id_ = id(working.goals)
            if id_ not in known:
                known[id_] = _misdirected(working, homes)
            working.outcome = known[id_] or working.outcome


def _complete(number: int, working: WorkingSet, now: int, bodies: bool) -> Complete:
    plan, stored = working.plan, working.stored
    members = [
        Member(
            plan.sketches[sketch].name,
            *_version(working, sketch),
            stored[sketch].body if bodies else str(stored[sketch].key),
        )
        for sketch in plan.used
    ]
    return Complete(number, plan.name, tuple(members), working.keys, now)


def _version(working: WorkingSet, sketch: int) -> tuple[str, int]:
    return working.plan.sketches[sketch].type, postmarks(working.stored[sketch].properties).form


def _misdirected(working: WorkingSet, homes: Mapping[str, str]) -> Outcome | None:
    """The error for a set with an impossible destination."""
    for goal in working.goals.values():
        if goal.operation is Operation.SHIP and goal.where not in homes:
            return Outcome(code=StationUnknown.code, why=unknown_station(goal.where, homes))
        if goal.operation is Operation.DOSSIER and not is_dossier(goal.where):
            return Outcome(code=ArgumentInvalid.code, why=f"{goal.where[:50]!r} cannot be the name of a dossier")
    return None


def unknown_station(station: str, homes: Iterable[str]) -> str:
    return str(StationUnknown(station=station, nearest=nearest(station, homes)))
