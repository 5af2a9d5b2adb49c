"""The overview: what waits for a person, the tree of queues, engines, errors, leases, spheres and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from postroom.diagnosis.finding import Finding
from postroom.interfaces.web.operating.history import Counts, history_of
from postroom.interfaces.web.operating.sparkline import Sparkline, sparkline
from postroom.interfaces.web.page import Page
from postroom.interfaces.web.rendering import counted, hold_words
from postroom.interfaces.web.visit import Visit
from postroom.limits import DESK_ROWS, FINDINGS_KEPT_SECONDS
from postroom.model.key import key_number
from postroom.model.message import Message
from postroom.model.moment import to_datetime
from postroom.model.place import DATABASE
from postroom.room import Postroom
from postroom.room.overview import Overview, QueueSeen
from postroom.stations.procedures.inspection import ProcedureErrors
from postroom.store.kernel.base import Store
from postroom.store.kernel.deliveries import FAILED_IN
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.policies import NO_POLICY
from postroom.store.kernel.queues import MAILBOX
from postroom.store.kernel.transaction import Transaction

TABS = {"": "All", "waiting": "With messages", "held": "Held"}
#: The picture before of each room that is served: the steps of the engine until then are not read again.
_earlier: WeakKeyDictionary[Store, Overview] = WeakKeyDictionary()
#: What the doctor has said of each room, and when: a page that is open does not ask with every message that moves.
_findings_of: WeakKeyDictionary[Store, tuple[float, list[Finding]]] = WeakKeyDictionary()


def picture(room: Postroom) -> Overview:
    """The overview of the room, with the rates of about the last minute."""
    now = _earlier[room.store] = room.operations.overview(_earlier.get(room.store))
    rates = history_of(room.store).rates(counts_of(now))
    queues = [
        replace(queue, rate_in=came, rate_out=left)
        for queue in now.queues
        for came, left in (rates.get(queue.name, (None, None)),)
    ]
    return replace(now, queues=queues)


def counts_of(seen: Overview) -> Counts:
    return Counts(seen.at, {queue.name: (queue.arrived, queue.departed) for queue in seen.queues})


@dataclass(frozen=True)
class Row:
    """A queue, or a level of the tree with its totals."""

    label: str
    name: str  # how the server knows it
    depth: int
    waiting: int
    aside: tuple[int, int, int]  # leased, delayed, blocked
    rate_in: float | None
    rate_out: float | None
    hold: str
    below: tuple[str, ...] = ()  # the queues of a level
    oldest: datetime | None = None
    is_error: bool = False
    spark: Sparkline | None = None


def show(visit: Visit) -> Mapping[str, Any]:
    seen = picture(visit.room)
    tab, find = visit.query.get("show", ""), visit.query.get("find", "").strip().lower()
    groups = _groups(seen)
    kept = {name: [row for row in rows if _is_asked(row, tab, find)] for name, rows in groups.items()}
    every = "all" in visit.query
    chosen = {name: rows if every else rows[:DESK_ROWS] for name, rows in kept.items() if rows}
    oldest = oldest_messages(visit.room, [queue.name for queue in seen.queues if queue.waiting])
    dead, failed = dead_letters(visit.room, seen, oldest), visit.room.stations.procedure_errors()
    shown = {name: _aged(visit.room, seen, rows, oldest) for name, rows in chosen.items()}
    begun = visit.number("lease", 1, 10**9) - 1 if visit.query.get("lease") else 0
    leases = visit.room.consumers.leases(after=begun, limit=DESK_ROWS + 1)
    return {
        "seen": seen,
        "groups": shown,
        "left": {name: len(kept[name]) - len(rows) for name, rows in shown.items()},
        "queue_count": len(seen.queues),
        "message_count": sum(queue.waiting for queue in seen.queues),
        "tab": tab if tab in TABS else "",
        "tabs": TABS,
        "find": visit.query.get("find", ""),
        "waits": list(_waits(visit, seen, dead, failed)),
        "errors": list(_errors(visit, seen, dead, failed)),
        "findings": _findings(visit),
        "nodes": visit.room.stations.nodes() if visit.may("operate", "*") else None,
        "bars": _bars(seen),
        "lag": sum(seen.lags.values()),
        "now": seen.at,
        "leases": leases[:DESK_ROWS],
        "lease_count": sum(queue.leased for queue in seen.queues),
        "leases_after": visit.again(lease=leases[DESK_ROWS - 1].lease + 1) if len(leases) > DESK_ROWS else None,
        "leases_first": visit.again(lease=None) if begun else None,
        "aside": _aside(seen.queues),
        "live": "room",
    }


def _groups(seen: Overview) -> dict[str, list[Row]]:
    """The tree, queues by their names, and what belongs to stations."""
    tree = sorted((queue for queue in seen.queues if queue.path), key=lambda queue: queue.path.split(" "))
    rows: dict[str, list[Row]] = {"Tree": list(_tree(tree)), "Queues": [], "Mailboxes": [], "Stations": []}
    kinds = {f"{MAILBOX}:": "Mailboxes", DATABASE: "Stations"}
    for queue in seen.queues:
        if not queue.path:
            start = next((start for start in kinds if queue.name.startswith(start)), "")
            rows[kinds.get(start, "Queues")].append(_row(queue, queue.name.removeprefix(start), 0, seen))
    return rows


def _tree(queues: Sequence[QueueSeen]) -> Iterator[Row]:
    """Queues below their levels, depth first."""
    told: set[tuple[str, ...]] = set()
    for queue in queues:
        path = tuple(queue.path.split(" "))
        for depth in range(1, len(path)):
            level = path[:depth]
            if level not in told:
                told.add(level)
                yield _level(level, [other for other in queues if tuple(other.path.split(" "))[:depth] == level])
        yield _row(queue, path[-1], len(path) - 1, None)


def _level(names: tuple[str, ...], below: Sequence[QueueSeen]) -> Row:
    held = sum(bool(queue.hold) for queue in below)
    hold = "" if not held else f"{held} of {len(below)} held"
    rates = (_sum([queue.rate_in for queue in below]), _sum([queue.rate_out for queue in below]))
    waiting = sum(queue.waiting for queue in below)
    names_below = tuple(queue.name for queue in below)
    return Row(names[-1], "/".join(names), len(names) - 1, waiting, _aside(below), *rates, hold, names_below)


def _aside(queues: Sequence[QueueSeen]) -> tuple[int, int, int]:
    """The sums of ``aside_of`` for several queues."""
    return (
        sum(queue.leased for queue in queues),
        sum(queue.delayed for queue in queues),
        sum(queue.blocked for queue in queues),
    )


def aside_of(queue: QueueSeen) -> tuple[int, int, int]:
    """How many messages of a queue are leased, delayed, and blocked by others of the same key."""
    return queue.leased, queue.delayed, queue.blocked


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _row(queue: QueueSeen, label: str, depth: int, seen: Overview | None) -> Row:
    is_error = seen is not None and bool(seen.errors.get(queue.name))
    rates = (queue.rate_in, queue.rate_out)
    return Row(label, queue.name, depth, queue.waiting, aside_of(queue), *rates, queue.hold, is_error=is_error)


def _is_asked(row: Row, tab: str, find: str) -> bool:
    if find and find not in row.name.lower():
        return False
    return {"waiting": row.waiting > 0, "held": bool(row.hold)}.get(tab, True)


def _since(room: Postroom, oldest: Mapping[str, Message]) -> dict[str, datetime]:
    """By queue, since when its oldest message is there. A form at a station or in a mailbox was made before."""
    of_stations = [name for name in oldest if name.startswith((DATABASE, f"{MAILBOX}:"))]

    def work(tx: Transaction) -> dict[str, int | None]:
        found = {name: tx.messages.find(key_number(oldest[name].key)) for name in of_stations}
        return {name: tx.journal.time_of(stored.position) for name, stored in found.items() if stored is not None}

    came = {name: to_datetime(at) for name, at in room.store.read(work).items() if at is not None}
    return {name: message.created for name, message in oldest.items()} | came


def oldest_messages(room: Postroom, names: Collection[str]) -> dict[str, Message]:
    """By queue, the oldest waiting message, if it is sound; read in one query."""

    def work(tx: Transaction) -> dict[str, Message]:
        queues = {queue.name: queue for queue in tx.queues.all()}
        pages = {name: tx.messages.page(queues[name], State.UNPROCESSED, 0, 1) for name in names if name in queues}
        return {name: page[0].image() for name, page in pages.items() if page and page[0].sound}

    return room.store.read(work)


def _aged(room: Postroom, seen: Overview, rows: Sequence[Row], oldest: Mapping[str, Message]) -> list[Row]:
    """The rows with the time of the oldest waiting message, arrivals and departures."""
    history, now = history_of(room.store), counts_of(seen)
    aged = []
    since = _since(room, oldest)
    for row in rows:
        first = min((since[name] for name in row.below or (row.name,) if name in since), default=None)
        spark = None if row.below else sparkline(*history.intervals(now, row.name))
        aged.append(replace(row, spark=spark, oldest=first))
    return aged


def _waits(
    visit: Visit, seen: Overview, dead: Mapping[str, int], failed: ProcedureErrors
) -> Iterator[tuple[str, str, str, str | None, str]]:
    """What waits for a person: icon, word, text, and the page that helps with its button."""
    failures = visit.address("/failures")
    for what in _failed(seen, dead, failed):
        yield "failed", "wrong", what, failures, "Look"
    for node, why in failed.missing.items():
        yield "missing", "warning", f"Errors of procedures at the node {node} are not known: {why}", None, ""
    yield from _stopped(visit, seen)


def _failed(seen: Overview, dead: Mapping[str, int], failed: ProcedureErrors) -> Iterator[str]:
    """What has failed, and is on the page of failures."""
    for name, number in seen.errors.items():
        if number:
            yield f"{name} has {counted(number, 'error message')}."
    for name, number in dead.items():
        yield f"{name} has {counted(number, 'dead letter')}."
    for station, number in by_station(failed).items():
        yield f"{station} has {counted(number, 'error')} of procedures."
    if number := seen.outbox.get("failed", 0):
        yield f"{counted(number, 'effect')} of the outbox {'has' if number == 1 else 'have'} failed."


def _stopped(visit: Visit, seen: Overview) -> Iterator[tuple[str, str, str, str | None, str]]:
    """What does not go on: on hold, in doubt, or without an engine."""
    for queue in seen.queues:
        if queue.hold:
            wait = f"{counted(queue.waiting, 'message')} {'waits' if queue.waiting == 1 else 'wait'}"
            how = hold_words(queue.hold).replace("on hold", "is on hold")
            what = f"{queue.path or queue.name} {how}, and {wait} in it."
            yield "held", "warning", what, visit.address("/queues/{queue}", {"queue": queue.name}), "Open"
    for participant in seen.in_doubt:
        yield "doubt", "warning", f"In doubt: {participant}.", visit.address("/spheres"), "Look"
    lag = sum(seen.lags.values())
    if lag and not seen.engine.works:
        wait = f"{counted(lag, 'message')} {'waits' if lag == 1 else 'wait'}"
        how = "“postroom run” starts one, and a server with “--run” has one"
        yield "waits", "warning", f"{wait} for an engine, and none runs: {how}.", None, ""


def dead_letters(room: Postroom, seen: Overview, oldest: Mapping[str, Message]) -> dict[str, int]:
    """How many wait in each queue for dead letters: one that a policy names, or that begins with one."""
    policies = room.store.read(lambda tx: tx.policies.all())
    names = {policies.get(queue.name, NO_POLICY).dead_letters_of(queue.name) for queue in seen.queues}
    names |= {name for name, message in oldest.items() if not message.corrupt and FAILED_IN in message.properties}
    names -= set(seen.errors)
    return {queue.name: queue.waiting for queue in seen.queues if queue.waiting and queue.name in names}


def by_station(failed: ProcedureErrors) -> dict[str, int]:
    """How many errors of procedures each station has."""
    return dict(sorted(Counter(error.station for error in failed).items()))


def _errors(
    visit: Visit, seen: Overview, dead: Mapping[str, int], failed: ProcedureErrors
) -> Iterator[tuple[str, int, str]]:
    """What the page of failures lists, by its place: name, number, and the page of it."""
    for name, number in (*seen.errors.items(), *dead.items()):
        yield name, number, visit.address("/queues/{queue}", {"queue": name})
    for station, number in by_station(failed).items():
        yield f"procedures of {station}", number, visit.address("/failures")


def _findings(visit: Visit) -> list[Finding] | None:
    """The findings of the doctor, for operators on request; an open page asks again after a while."""
    if "doctor" not in visit.query:
        return None
    visit.require("operate", None, {})
    at, findings = _findings_of.get(visit.room.store, (0.0, []))
    if not visit.is_again or not at or monotonic() - at > FINDINGS_KEPT_SECONDS:
        findings = visit.room.operations.diagnose()
        _findings_of[visit.room.store] = (monotonic(), findings)
    return findings


def _bars(seen: Overview) -> list[tuple[int, int]]:
    """The last engine steps as bars: position, and height of at most 40."""
    most = max((step.messages for step in seen.steps), default=1) or 1
    return [(index * 5, max(2, round(40 * step.messages / most))) for index, step in enumerate(seen.steps[-56:])]


PAGE = Page("/overview", "overview.html", show, "look", None, label="Overview", group="operators")
