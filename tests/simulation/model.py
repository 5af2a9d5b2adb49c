"""What must be in a room after each commit, by plain lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.leases import POLICIES, LeaseQueue, Wish

KEEPING, DISCARDING = ("a", "b"), ("c",)
QUEUES = (*KEEPING, *DISCARDING)
SCHEDULED = "scheduled"  # the queue of a schedule
MINUTE = 60_000_000
LATE = "late"  # the end of a lease that was over: it must be refused


class Asked(NamedTuple):
    """One call of a client."""

    verb: str  # send, send-many, distribute, receive, wait, look; of leases: put, take, lease, done, release, ...
    queues: tuple[str, ...]
    values: tuple[str, ...] = ()
    once: str | None = None  # an idempotency key
    wish: Wish = Wish()
    many: int = 1  # messages that are to be leased
    wait: bool = False
    lease: int = 0  # the number of the lease that is to be ended, as the model counts them
    delay: int = 0  # for which a release lets a message wait, in microseconds


class Seen(NamedTuple):
    """What a client has read when it last asked for the time."""

    now: int
    due: int  # of the schedule


#: The label of the transaction in which each verb does its work.
LABELS = {
    **{verb: verb for verb in ("send", "send-many", "distribute", "receive", "done", "release", "extend", "fail")},
    **dict.fromkeys(("wait", "take"), "receive"),
    "put": "send",
    "lease": "hand-out",
    "fire": "schedule",
}
ENDS = ("done", "release", "extend", "fail")
EXTENSION = 80_000  # microseconds


@dataclass
class Model:
    waiting: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in QUEUES})
    done: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in KEEPING})
    receipts: set[str] = field(default_factory=set)
    leased: dict[str, LeaseQueue] = field(default_factory=lambda: {name: LeaseQueue(name) for name in POLICIES})
    due: int = 0  # when the schedule is due
    fired: int = 0

    def commit(self, asked: Asked, now: int, seen: Seen) -> Any:
        """What a call does when it is committed, at the time of its transaction; the answer that it must give.

        ``seen`` is what it read before, in a transaction of its own.
        """
        if asked.queues[0] in self.leased:
            return self._commit_lease(asked, self.leased[asked.queues[0]], now)
        if asked.verb == "fire":
            return self._fire(now, seen)
        if asked.verb in ("receive", "wait"):
            return self._take(asked.queues[0])
        if asked.once is not None and asked.once in self.receipts:
            return None
        if asked.once is not None:
            self.receipts.add(asked.once)
        for queue in asked.queues:
            self.waiting[queue] += asked.values
        return None

    def _commit_lease(self, asked: Asked, queue: LeaseQueue, now: int) -> Any:
        if asked.verb == "put":
            return queue.put(asked.values[0], asked.wish, now)
        if asked.verb == "take":
            return queue.take(now)
        if asked.verb == "lease":
            return queue.lease(asked.many, now)
        entry = queue.held(asked.lease)
        if entry is None:
            return LATE
        if asked.verb == "done":
            queue.finish(entry)
        elif asked.verb == "release":
            queue.release(entry, asked.delay, now)
        elif asked.verb == "fail":
            queue.fail(entry, now)
        else:
            entry.until = now + EXTENSION
        return None

    def _fire(self, now: int, seen: Seen) -> int:
        """The last time of a schedule that is due every minute; nothing if another has sent it."""
        if seen.due != self.due:
            return 0
        self.due = (max(now, seen.due) // MINUTE + 1) * MINUTE
        self.fired += 1
        return 1

    def _take(self, queue: str) -> str | None:
        if not self.waiting[queue]:
            return None
        value = self.waiting[queue].pop(0)
        if queue in KEEPING:
            self.done[queue].append(value)
        return value
