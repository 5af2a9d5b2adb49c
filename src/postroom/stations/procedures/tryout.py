"""A dry run: what proposed procedures would do with the current messages of their stations. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from postroom.engine.steps.tryout import begins
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.stations.forms.catalog import Edition
from postroom.stations.places.names import database, mailbox
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import postmarks
from postroom.stations.procedures.catalog import KeptProcedure, desks
from postroom.stations.procedures.claiming import Look, WorkingSet, arrivals, look_dry
from postroom.stations.procedures.definitions import Procedure
from postroom.stations.procedures.goals import LEAVE, Goal
from postroom.stations.procedures.working import Evaluate, Used, work_out
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Handled:
    """A working set that would be complete, with its effects."""

    key: str  # of the message that completes it
    queue: str  # its station
    effects: tuple[Mapping[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "queue": self.queue, "actions": [dict(effect) for effect in self.effects]}


def tried(
    network: Network,
    procedures: Sequence[Procedure],
    forms: Mapping[str, Edition],
    since: datetime | None,
    evaluate: Evaluate,
) -> Iterator[Handled]:
    """Every working set that would be complete, station by station in arrival order."""
    homes = network.stations()
    after = begins(since)
    for desk in desks([KeptProcedure(procedure, True, None, 0) for procedure in procedures], forms).values():
        if desk.station not in homes:
            continue
        own = network.look(homes[desk.station], partial(_held, database(desk.station), after))
        mail = network.control.read(partial(_held, mailbox(desk.station), after))
        some = arrivals(own, mail, len(own) + len(mail) + 1, apart=homes[desk.station] != CONTROL)
        seen = look_dry(desk, some)
        _work_out(network, forms, seen, homes, evaluate)
        for working in seen.sets:
            yield _handled(desk.station, working, seen.arrivals[working.arrival].stored.key)


def _held(queue: str, after: int, tx: Transaction) -> list[Stored]:
    return [stored for stored in tx.slices.queue(queue) if stored.processed is None and stored.created >= after]


def _work_out(
    network: Network, forms: Mapping[str, Edition], seen: Look, homes: Mapping[str, str], evaluate: Evaluate
) -> None:
    sets = [working for working in seen.sets if working.outcome is None]
    if not sets:
        return
    for working in sets:
        working.keys = tuple(range(working.plan.new_messages))  # of messages that will not be made
    members = [stored for working in sets for stored in working.stored.values()]
    versions = {(stored.type or "", postmarks(stored.properties).form) for stored in members}
    old = network.control.read(lambda tx: {key: network.forms.at(tx, *key).form for key in versions})
    work_out(sets, Used(old, forms), homes, network.control.session.clock(), evaluate)


def _handled(station: str, working: WorkingSet, key: int) -> Handled:
    name, outcome = working.plan.name, working.outcome
    assert outcome is not None
    if outcome.failed:
        failed = {"action": "error", "rule": name, "queue": station, "body": f"{outcome.code}: {outcome.why}"}
        return Handled(key_text(key), station, (failed,))
    where, actions = working.goals, []
    for sketch, picked in enumerate(working.plan.sketches):
        stored = working.stored[sketch]
        body, _ = outcome.written.get(picked.name, (stored.body, ()))
        actions.append(_action(name, where.get((picked.name, 0), LEAVE), station, key_text(stored.key), body))
    for made in outcome.made:
        actions.append(_action(name, where.get((made.sketch, made.copy), LEAVE), station, "new", made.body))
    return Handled(key_text(key), station, tuple(actions))


def _action(name: str, goal: Goal, station: str, message: str, body: str) -> dict[str, Any]:
    place = goal.where or station
    action = {"action": str(goal.operation), "rule": name, "queue": place, "acts_on": message, "body": body}
    return action if goal.delay_seconds is None else {**action, "after_seconds": goal.delay_seconds}
