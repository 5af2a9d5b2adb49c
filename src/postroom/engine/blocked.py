"""Queues whose next message would go to a queue that is on hold.

Where a message goes is known only when it is evaluated, so the engine that found it out leaves a note for processes
that evaluate nothing. A note names the message: it counts as long as that message waits and the other queue is on hold.
So nobody must take it back. The notes are among the leases, as the queues of engines are, and not in the journal.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.model.key import key_number, key_text
from postroom.store.kernel.transaction import Transaction

_PREFIX = "blocked "  # and the name of a queue
_RELEASED = 0  # a note is not a lease that anyone has


class Blocked(NamedTuple):
    """A queue, the first of its messages that cannot be processed, and the queue on hold that it waits for."""

    queue: str
    key: int
    goal: str


def note(tx: Transaction, blocked: Blocked) -> None:
    """Leave a note for other processes."""
    tx.leases.take(_PREFIX + blocked.queue, f"{key_text(blocked.key)} {blocked.goal}", _RELEASED)


def blocked(tx: Transaction) -> dict[str, Blocked]:
    """What waits for a queue on hold, by the name of the queue that waits."""
    return {one.queue: one for one in _noted(tx) if _counts(tx, one)}


def _noted(tx: Transaction) -> list[Blocked]:
    found = []
    for lease in tx.leases.all():
        if lease.name.startswith(_PREFIX):
            key, _, goal = lease.owner.partition(" ")
            found.append(Blocked(lease.name.removeprefix(_PREFIX), key_number(key), goal))
    return found


def _counts(tx: Transaction, one: Blocked) -> bool:
    goal, stored = tx.queues.named_to_read(one.goal), tx.messages.shown(one.key)
    if goal is None or goal.accepts or stored is None:
        return False
    return stored.queue == one.queue and stored.processed is None
