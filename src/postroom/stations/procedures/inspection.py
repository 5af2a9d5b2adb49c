"""Inspecting procedures: how one is executed, which working sets wait, and what has failed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from sys import maxsize
from typing import Any

from postroom.errors import NodeDown
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.model.moment import to_datetime, to_iso
from postroom.model.place import DATABASE
from postroom.stations.places.network import Network
from postroom.stations.procedures.catalog import Procedures, named
from postroom.stations.procedures.definitions import Procedure
from postroom.stations.procedures.errors import DOSSIER, ERROR
from postroom.stations.procedures.plan import TURNED, Desk, Find, Plan, planned
from postroom.stations.procedures.search import Memory, fits, probe
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.working_sets import Candidate

_TRIES = 1_000  # candidates that are compared to show one set

# --- explain ---


@dataclass(frozen=True, slots=True)
class ProcedureExplained:
    """How a procedure is executed."""

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
        tuple(str(sketch) for sketch in kept.procedure.sketches),
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
    """An incomplete working set: its messages, and what is missing."""

    procedure: str
    station: str
    since: str
    has: Mapping[str, str]  # messages by sketch
    wants: Mapping[str, str]  # by sketch, what would fit
    #: The same to be drawn: by sketch its type, and what is asked of its fields.
    lacks: Mapping[str, tuple[str, Mapping[str, str]]] = dataclasses.field(default_factory=dict, compare=False)

    def as_dict(self) -> dict[str, Any]:
        names = ("procedure", "station", "since", "has", "wants")
        return {name: asdict(self)[name] for name in names}


class WaitingSets(list[Waiting]):
    """The waiting sets of the nodes that respond, and the errors of other nodes."""

    missing: dict[str, str]  # why, by node

    def __init__(self, sets: Iterable[Waiting] = (), missing: Mapping[str, str] | None = None) -> None:
        super().__init__(sets)
        self.missing = dict(missing or {})

    def as_dict(self) -> dict[str, Any]:
        missing = [{"node": node, "why": why} for node, why in self.missing.items()]
        return {"waiting": [waiting.as_dict() for waiting in self], "missing": missing}


def waiting_sets(
    network: Network, procedures: Procedures, procedure: str | None, limit: int, only: str | None = None
) -> WaitingSets:
    """The oldest waiting sets of all stations, or ``only`` one, of one procedure or all."""

    def work(tx: Transaction) -> dict[str, Desk]:
        if procedure is not None:
            named(tx, procedure)
        return procedures.now(tx)

    homes = network.stations()
    sets: list[Waiting] = []
    missing: dict[str, str] = {}
    for station, desk in network.control.read(work).items():
        node = homes.get(station) if only in (None, station) else None
        if node is None or node in missing or not any(procedure in (None, plan.name) for plan in desk.plans):
            continue
        try:
            sets += network.look(node, partial(_some, network.control, desk, procedure, limit))
        except NodeDown as down:
            missing[node] = str(down.facts["why"])
    return WaitingSets(sorted(sets, key=lambda waiting: waiting.since)[:limit], missing)


def _some(control: Store, desk: Desk, procedure: str | None, limit: int, tx: Transaction) -> list[Waiting]:
    return list(islice(waiting(tx, desk, procedure, control), min(limit, maxsize)))


def waiting(
    tx: Transaction, desk: Desk, procedure: str | None = None, control: Store | None = None
) -> Iterator[Waiting]:
    """The working sets that wait at a station, the oldest first; each candidate is in at least one of them.

    ``control`` has the mail of stations on other nodes.
    """
    kept = tx.working_sets.named(desk.station)
    if kept is None or kept.edition != desk.edition:
        return  # nobody has looked at its messages yet
    id = kept.id
    memory = Memory(desk, lambda slot, value, after: tx.working_sets.look_up(id, [(slot, value, after)])[0])
    names = {
        plan.slot_names[sketch][0]: (plan, sketch)
        for plan in desk.plans
        if procedure in (None, plan.name)
        for sketch in range(len(plan.sketches))
        if plan.slots[sketch]
    }
    shown: set[tuple[str, int]] = set()
    for rows in _messages(tx, id):
        fits: dict[str, list[tuple[Plan, int, Candidate]]] = {}
        for candidate in rows:
            if candidate.slot in names and candidate.is_there:
                plan, sketch = names[candidate.slot]
                fits.setdefault(plan.name, []).append((plan, sketch, candidate))
        for name, some in fits.items():
            if (name, some[0][2].message) not in shown:
                bound = max((_gathered(*fit, memory) for fit in some), key=len)
                shown |= {(name, member.message) for member in bound.values()}
                yield _told(tx, control, desk.station, some[0][0], bound)


def _messages(tx: Transaction, desk: int) -> Iterator[list[Candidate]]:
    """The candidates of a station, with all rows of a message together."""
    after, limit = (0, 0), PAGE_ROWS
    while True:
        page = tx.working_sets.candidates(desk, after, limit)
        some = [list(rows) for _, rows in groupby(page, key=lambda row: (row.turn, row.message))]
        full = len(page) >= limit
        if full and len(some) == 1:  # a message that very many procedures wait with
            limit *= 2
            continue
        whole = some[:-1] if full else some  # of the last message there may be more
        yield from whole
        if not full:
            return
        after = (whole[-1][0].turn, whole[-1][0].message)


def _gathered(plan: Plan, start: int, first: Candidate, memory: Memory) -> dict[int, Candidate]:
    """The largest partial set around a candidate; of equal ones, that of the oldest messages."""
    way, tries = plan.searches[start], _TRIES
    best, bound = {start: first}, {start: first}

    def fill(place: int) -> None:
        nonlocal best, tries
        if len(bound) > len(best):
            best = dict(bound)
        if len(bound) + len(way) - place <= len(best):
            return  # there is no more to find
        find = way[place]
        if all(check.sketch in bound for check in find.checks) and all(sketch in bound for sketch, _ in find.probe):
            for candidate in memory.candidates(find.name, probe(find, bound)):
                tries -= 1
                if tries < 0:
                    return
                if fits(find, candidate, bound):
                    bound[find.sketch] = candidate
                    fill(place + 1)
                    del bound[find.sketch]
        fill(place + 1)

    fill(0)
    return best


def _told(tx: Transaction, control: Store | None, station: str, plan: Plan, bound: Mapping[int, Candidate]) -> Waiting:
    names = {sketch: plan.sketches[sketch].name for sketch in sorted(bound)}
    values = {names[sketch]: _said(tx, control, candidate) for sketch, candidate in bound.items()}
    since = min(_since(tx, candidate) for candidate in bound.values())
    wants, lacks = {}, {}
    for picked in plan.sketches:
        if picked.name not in values:
            asked = [*_known(plan.procedure, picked.name, values), *_own(plan.procedure, picked.name)]
            known = [f"{field}{between}{value}" for field, between, value in asked]
            origin = "".join(
                f" {origin.restriction}" for origin in plan.procedure.origins if origin.sketch == picked.name
            )
            drawn: dict[str, str] = {}
            for field, _, value in asked:
                drawn[field] = f"{drawn[field]} {value}" if field in drawn else value
            lacks[picked.name] = (picked.type, drawn)
            wants[picked.name] = picked.type + (f" with {', '.join(known)}" if known else "") + origin
    has = {name: key_text(bound[sketch].message) for sketch, name in names.items()}
    return Waiting(plan.name, station, to_iso(to_datetime(since)), has, wants, lacks)


#: A field, what stands between it and what is asked of it, and that.
_Asked = tuple[str, str, str]


def _own(procedure: Procedure, sketch: str) -> list[_Asked]:
    """The sketch's own conditions, as written."""
    precondition = procedure.precondition(sketch)
    lines = () if precondition is None else precondition.lines
    return [
        (line.field, ": ", str(line.conditions))
        if line.other is None
        else (line.field, " ", f"{line.sign} {line.other.field}")
        for line in lines
        if line.other is None or line.other.sketch == sketch
    ]


def _known(procedure: Procedure, sketch: str, values: Mapping[str, Mapping[str, Any]]) -> list[_Asked]:
    """The values that present messages require of a missing one: with ``a = b`` and ``b = c`` also ``a = c``."""
    links = [
        ((precondition.name, line.field), line.sign, (line.other.sketch, line.other.field))
        for precondition in procedure.preconditions
        for line in precondition.lines
        if line.other is not None and line.other.sketch != precondition.name
    ]
    links += [(theirs, TURNED[sign], ours) for ours, sign, theirs in links]
    fields = dict.fromkeys(field for (name, field), _, _ in links if name == sketch)
    facts: list[_Asked] = []
    for field in fields:
        same = {(sketch, field)}
        while more := {theirs for ours, sign, theirs in links if sign == "=" and ours in same} - same:
            same |= more
        equal = [values[name].get(other) for name, other in sorted(same) if name in values]
        facts += [(field, " ", f"= {equal[0]}")] if equal else []
        facts += [
            (field, " ", f"{sign} {values[name].get(other)}")
            for ours, sign, (name, other) in links
            if ours == (sketch, field) and sign != "=" and name in values
        ]
    return facts


def _said(tx: Transaction, control: Store | None, candidate: Candidate) -> dict[str, Any]:
    key = candidate.message
    stored = control.read(lambda there: there.messages.find(key)) if candidate.remote and control else None
    stored = stored or tx.messages.find(key)
    return json.loads(stored.body) if stored is not None and stored.sound else {}


def _since(tx: Transaction, candidate: Candidate) -> int:
    """When a message arrived; for mail in another store, when it was first examined."""
    came = None if candidate.remote else tx.journal.time_of(candidate.position)
    return candidate.since if came is None else came


# --- errors ---


@dataclass(frozen=True, slots=True)
class ProcedureFailed:
    """A failure of a procedure, from the dossier of errors of its station."""

    key: str  # of the error message
    station: str
    at: datetime
    procedure: str
    code: str
    description: str
    messages: tuple[str, ...]  # keys of the set, which are as they were

    def as_dict(self) -> dict[str, Any]:
        names = ("key", "station", "procedure", "code", "description")
        return {name: getattr(self, name) for name in names} | {"at": to_iso(self.at), "keys": list(self.messages)}


class ProcedureErrors(list[ProcedureFailed]):
    """The failures at the nodes that respond, and the errors of other nodes."""

    missing: dict[str, str]  # why, by node

    def __init__(self, errors: Iterable[ProcedureFailed] = (), missing: Mapping[str, str] | None = None) -> None:
        super().__init__(errors)
        self.missing = dict(missing or {})

    def as_dict(self) -> dict[str, Any]:
        missing = [{"node": node, "why": why} for node, why in self.missing.items()]
        return {"procedure_errors": [error.as_dict() for error in self], "missing": missing}


def procedure_errors(network: Network) -> ProcedureErrors:
    """The failures in the dossiers of errors of all stations, oldest first."""
    errors: list[ProcedureFailed] = []
    missing: dict[str, str] = {}
    for node in network.nodes():
        try:
            errors += network.look(node, _errors)
        except NodeDown as down:
            missing[node] = str(down.facts["why"])
    return ProcedureErrors(sorted(errors, key=lambda error: error.at), missing)


def _errors(tx: Transaction) -> list[ProcedureFailed]:
    rows = tx.dossiers.named(DOSSIER)
    if not rows:
        return []
    stations = {queue.id: queue.name.removeprefix(DATABASE) for queue in tx.queues.all()}
    stored = tx.messages.find_many([key for _, key in rows])
    return [
        _failed(stations[station], stored[key])
        for station, key in rows
        if key in stored and stored[key].type == ERROR.name and stored[key].sound
    ]


def _failed(station: str, stored: Stored) -> ProcedureFailed:
    fields = json.loads(stored.body)
    return ProcedureFailed(
        key_text(stored.key),
        station,
        to_datetime(stored.created),
        procedure=str(fields.get("Procedure") or ""),
        code=str(fields.get("Code") or ""),
        description=str(fields.get("Description") or ""),
        messages=tuple(fields.get("Messages") or ()),
    )
