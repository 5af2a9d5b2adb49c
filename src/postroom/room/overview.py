"""A status snapshot of a room: queues, waiting messages, engine, errors, spheres, outbox.

It is read at one moment, from existing rows. Two snapshots give rates: queues count all arrivals and departures, and
the engine's commits are in the journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from postroom.engine.blocked import blocked
from postroom.engine.holding import EngineSeen, engines
from postroom.engine.presence import EngineState, Presence, presence, senders
from postroom.limits import TOP_JOURNAL_ROWS, TOP_REREAD_ROWS, TOP_STEPS
from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import ALIVE, STATE, Hold, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import STATES

if TYPE_CHECKING:
    from postroom.rules.language.definitions import Program

NOBODY = Presence(EngineState.FREE)


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """One queue; the rates are messages per second since the previous snapshot."""

    name: str
    path: str  # in the tree; empty if it has only a name
    waiting: int
    processed: int
    hold: str
    arrived: int  # ever
    departed: int
    rate_in: float | None = None
    rate_out: float | None = None
    leased: int = 0
    delayed: int = 0  # until their time
    blocked: int = 0  # by others of the same key
    waits_for: str = ""  # a queue on hold, to which its next message would go

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "path": self.path.split(),
            "unprocessed": self.waiting,
            "processed_count": self.processed,
            "hold": self.hold,
            "arrived": self.arrived,
            "departed": self.departed,
            "rate_in": self.rate_in,
            "rate_out": self.rate_out,
            **{name: count for name, count in self._aside().items() if count},
            **({"waits_for": self.waits_for} if self.waits_for else {}),
        }

    def _aside(self) -> dict[str, int]:
        return {"leased_count": self.leased, "delayed_count": self.delayed, "blocked_count": self.blocked}


@dataclass(frozen=True, slots=True)
class StepSeen:
    """One commit of the engine."""

    at: datetime
    messages: int
    created: int
    whole: bool  # else it began before what was looked at
    evaluated: str = ""  # by a worker or by Spark; empty if nothing was, or if it is not known

    def as_dict(self) -> dict[str, Any]:
        counts = {"message_count": self.messages, "created_count": self.created}
        return {"at": to_iso(self.at), **counts, "whole": self.whole, "evaluated": self.evaluated or None}


@dataclass(frozen=True)
class Overview:
    """The status of a room at one moment."""

    at: datetime
    engine: Presence
    lags: Mapping[str, int]
    queues: Sequence[QueueSeen]
    steps: Sequence[StepSeen]  # the last ones, oldest first
    rate: float | None  # messages of the engine's steps per second since the picture before
    errors: Mapping[str, int]
    outbox: Mapping[str, int]
    spheres: Mapping[str, int]
    in_doubt: Sequence[str]  # databases that wait to hear how a sphere has ended
    newest: int  # the last number of the journal
    engines: Sequence[EngineSeen] = ()  # that share the room
    senders: Presence = NOBODY  # a process that does nothing else; if free, the engine sends

    def as_dict(self) -> dict[str, Any]:
        return {
            "at": to_iso(self.at),
            "engine": _as_dict(self.engine),
            "senders": _as_dict(self.senders),
            "engines": [engine.as_dict() for engine in self.engines],
            "lags": dict(self.lags),
            "queues": [queue.as_dict() for queue in self.queues],
            "steps": [step.as_dict() for step in self.steps],
            "rate": self.rate,
            "errors": dict(self.errors),
            "effects_by_state": dict(self.outbox),
            "spheres_by_state": dict(self.spheres),
            "in_doubt": list(self.in_doubt),
        }


def _as_dict(seen: Presence) -> dict[str, Any]:
    return {"state": seen.state, "owner": seen.owner, "number": seen.number}


def look(
    store: Store,
    program: Callable[[Transaction], Program],
    lags: Callable[[], Mapping[str, int]],
    before: Overview | None = None,
) -> Overview:
    """The status of the room; with an earlier snapshot also rates."""
    waiting = lags()  # nodes are asked, too: not while this store is being read
    return store.read(lambda tx: _seen(tx, program(tx), waiting, before))


def _seen(tx: Transaction, program: Program, lags: Mapping[str, int], before: Overview | None) -> Overview:
    queues, newest, now = tx.queues.all(), tx.journal.newest(), to_datetime(tx.now)
    seconds = 0.0 if before is None else (now - before.at).total_seconds()
    steps, aside = _steps(tx, newest, before), tx.deliveries.put_aside()
    goals = {name: obstacle.goal for name, obstacle in blocked(tx).items()}
    by_name = {queue.name: queue for queue in queues}
    known = {} if before is None else {queue.name: queue for queue in before.queues}
    return Overview(
        at=now,
        engine=presence(tx),
        lags=lags,
        queues=[
            _queue(queue, known, seconds, aside(queue), goals.get(queue.name, ""))
            for queue in queues
            if queue.kind not in (STATE, ALIVE)
        ],
        steps=[*(before.steps if before else ()), *steps][-TOP_STEPS:],
        rate=sum(step.messages for step in steps) / seconds if seconds > 0 else None,
        errors={name: by_name[name].unprocessed for name in program.every_error_queue() if name in by_name},
        outbox={"pending": 0, "failed": 0, **Counter(effect.state for effect in tx.outbox.all())},
        spheres={state: by_name[state].unprocessed for state in STATES if state in by_name},
        in_doubt=[f"{doubt.place}: sphere {doubt.sphere} is {doubt.state}" for doubt in tx.spheres.in_doubt()],
        newest=newest,
        engines=engines(tx),
        senders=senders(tx),
    )


def _steps(tx: Transaction, newest: int, before: Overview | None) -> list[StepSeen]:
    """The engine's commits since the previous snapshot.

    Commits of several engines may have one time, and become visible out of order, so some lines are read again.
    """
    since = newest - TOP_JOURNAL_ROWS
    if before is not None:
        since = max(since, before.newest - TOP_REREAD_ROWS)
    since = max(since, 0)
    last = before.steps[-1].at if before is not None and before.steps else None
    steps = [
        StepSeen(
            to_datetime(step.at), step.messages, step.created, since == 0 or step.first > since + 1, step.evaluated
        )
        for step in tx.journal.steps(since, newest)
    ]
    return [step for step in steps if last is None or step.at > last]


def _queue(
    queue: Queue, known: Mapping[str, QueueSeen], seconds: float, aside: tuple[int, int, int], goal: str
) -> QueueSeen:
    before = known.get(queue.name)
    rates: tuple[float | None, float | None] = (None, None)
    if before is not None and seconds > 0:
        rates = (queue.arrivals - before.arrived) / seconds, (queue.departed - before.departed) / seconds
    hold = Hold(queue.hold).label
    path = " ".join(queue.names) if queue.path != queue.name else ""
    counts = (queue.unprocessed, queue.processed, hold, queue.arrivals, queue.departed)
    return QueueSeen(queue.name, path, *counts, *rates, *aside, waits_for=goal)
