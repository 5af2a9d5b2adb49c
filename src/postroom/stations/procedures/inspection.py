"""Looking at procedures: what one became, and which working sets wait for what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from postroom.limits import PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.moment import to_datetime, to_iso
from postroom.stations.network import Network
from postroom.stations.procedures.catalog import Procedures, named
from postroom.stations.procedures.plan import Desk, Find, Plan, compare, planned
from postroom.stations.procedures.search import Memory, probe
from postroom.store.base import Store
from postroom.store.desks import Candidate
from postroom.store.transaction import Transaction

# --- explain ---


@dataclass(frozen=True, slots=True)
class ProcedureExplained:
    """What a procedure became."""

    procedure: str
    station: str
    state: str
    where: str
    sketches: tuple[str, ...]  # what is collected, made, and where it goes, as it was written
    joins: tuple[str, ...]  # the join graph
    searches: tuple[str, ...]  # from each sketch: what is looked for next, and by what
    order: tuple[str, ...]  # of actions

    def as_dict(self) -> dict[str, Any]:
        names = ("procedure", "station", "state", "where")
        lists = ("sketches", "joins", "searches", "order")
        return {name: getattr(self, name) for name in names} | {name: list(getattr(self, name)) for name in lists}


def explain(tx: Transaction, procedures: Procedures, name: str) -> ProcedureExplained:
    kept = named(tx, name)
    forms = {type: edition.form for type, edition in procedures.forms.now(tx).items()}
    plan = planned(kept.procedure, forms)
    return ProcedureExplained(
        name,
        kept.procedure.station,
        "enabled" if kept.enabled else "disabled",
        str(kept.where) if kept.where else "",
        tuple(str(each) for each in kept.procedure.sketches),
        plan.links,
        tuple(_search(plan, start) for start in range(len(plan.sketches))),
        tuple(f"?{sketch}.{line.field}' is {line.value}" for sketch, line in plan.order),
    )


def _search(plan: Plan, start: int) -> str:
    steps = [_step(plan, find) for find in plan.searches[start]]
    return f"when {plan.sketches[start].name} comes: " + ("; ".join(steps) or "the working set is complete")


def _step(plan: Plan, find: Find) -> str:
    sketch = plan.sketches[find.sketch]
    fields = [sketch.compared[place][0] for place in plan.slots[find.sketch][find.slot]]
    by = f"by {', '.join(fields)}" if fields else "among all"
    others = [
        f"{sketch.compared[check.ours][0]} {check.sign} "
        f"?{plan.sketches[check.sketch].name}.{plan.sketches[check.sketch].compared[check.theirs][0]}"
        for check in find.checks
        if check.sign != "="
    ]
    return f"{sketch.name} {by}" + (f", if {' and '.join(others)}" if others else "")


# --- waiting ---


@dataclass(frozen=True, slots=True)
class Waiting:
    """A working set that is not complete: what it has, and what it waits for."""

    procedure: str
    station: str
    since: str
    has: Mapping[str, str]  # messages by sketch
    wants: Mapping[str, str]  # by sketch, what would fit

    def as_dict(self) -> dict[str, Any]:
        return {
            "procedure": self.procedure,
            "station": self.station,
            "since": self.since,
            "has": dict(self.has),
            "wants": dict(self.wants),
        }


def waiting_sets(network: Network, procedures: Procedures, procedure: str | None, limit: int) -> list[Waiting]:
    """The oldest working sets that wait at any station, of one procedure or all."""

    def work(tx: Transaction) -> dict[str, Desk]:
        if procedure is not None:
            named(tx, procedure)
        return procedures.now(tx)

    homes = network.stations()
    found: list[Waiting] = []
    for station, desk in network.control.read(work).items():
        if station in homes and any(procedure in (None, plan.name) for plan in desk.plans):
            found += network.look(homes[station], partial(_some, network.control, desk, procedure, limit))
    return sorted(found, key=lambda each: each.since)[:limit]


def _some(control: Store, desk: Desk, procedure: str | None, limit: int, tx: Transaction) -> list[Waiting]:
    return list(islice(waiting(tx, desk, procedure, control), limit))


def waiting(
    tx: Transaction, desk: Desk, procedure: str | None = None, control: Store | None = None
) -> Iterator[Waiting]:
    """The working sets that wait at a station, the oldest first; each candidate is in one of them at least.

    ``control`` is where mail is that waits for a station on another node.
    """
    kept = tx.desks.named(desk.station)
    if kept is None or kept.edition != desk.edition:
        return  # nobody has looked at its messages yet
    id = kept.id
    memory = Memory(desk, lambda slot, value, after: tx.desks.look_up(id, [(slot, value, after)])[0])
    names = {
        plan.slot_name(sketch, 0): (plan, sketch)
        for plan in desk.plans
        if procedure in (None, plan.name)
        for sketch in range(len(plan.sketches))
        if plan.slots[sketch]
    }
    shown: set[tuple[str, int]] = set()
    after = (0, 0)
    while True:
        page = tx.desks.candidates(id, after, PAGE_ROWS)
        for each in page:
            plan, sketch = names.get(each.slot, (None, 0))
            if plan is None or not each.is_there or (f"{plan.name}.{sketch}", each.message) in shown:
                continue
            bound = _gathered(plan, sketch, each, memory)
            shown |= {(f"{plan.name}.{other}", member.message) for other, member in bound.items()}
            yield _told(tx, control, desk.station, plan, bound)
        if len(page) < PAGE_ROWS:
            return
        after = (page[-1].turn, page[-1].message)


def _gathered(plan: Plan, start: int, first: Candidate, memory: Memory) -> dict[int, Candidate]:
    """As much of a set as there is around a candidate, the oldest first."""
    bound = {start: first}
    for find in plan.searches[start]:
        if all(sketch in bound for sketch, _ in find.probe):
            value = probe(find, bound)
            for each in memory.candidates(plan.slot_name(find.sketch, find.slot), value):
                if _agrees(find, each, bound):
                    bound[find.sketch] = each
                    break
    return bound


def _agrees(find: Find, each: Candidate, bound: Mapping[int, Candidate]) -> bool:
    if any(other.message == each.message for other in bound.values()):
        return False
    return all(
        compare(each.values[check.ours], check.sign, bound[check.sketch].values[check.theirs])
        for check in find.checks
        if check.sketch in bound
    )


def _told(tx: Transaction, control: Store | None, station: str, plan: Plan, bound: Mapping[int, Candidate]) -> Waiting:
    said = {sketch: _said(tx, control, each) for sketch, each in bound.items()}
    since = min(_since(tx, each) for each in bound.values())
    wants = {}
    for place, picked in enumerate(plan.sketches):
        if place not in bound:
            known = [
                f"{line.field} {line.sign} {said[other].get(line.other.field, '')}"
                for line in plan.procedure.preconditions[place].lines
                if line.other is not None
                for other, each in enumerate(plan.sketches)
                if each.name == line.other.sketch and other in bound
            ]
            known += [
                f"{line.other.field} {_TURNED[line.sign]} {said[other].get(line.field, '')}"
                for other, sketch in enumerate(plan.procedure.preconditions)
                if other in bound
                for line in sketch.lines
                if line.other is not None and line.other.sketch == picked.name
            ]
            wants[picked.name] = picked.type + (f" with {', '.join(known)}" if known else "")
    has = {plan.sketches[sketch].name: key_text(each.message) for sketch, each in sorted(bound.items())}
    return Waiting(plan.name, station, to_iso(to_datetime(since)), has, wants)


_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _said(tx: Transaction, control: Store | None, candidate: Candidate) -> dict[str, Any]:
    key = candidate.message
    stored = control.read(lambda there: there.messages.find(key)) if candidate.remote and control else None
    stored = stored or tx.messages.find(key)
    return json.loads(stored.body) if stored is not None and stored.sound else {}


def _since(tx: Transaction, candidate: Candidate) -> int:
    """When a message came to its place; of mail in another store, when it was first looked at."""
    came = None if candidate.remote else tx.journal.time_of(candidate.position)
    return candidate.since if came is None else came
