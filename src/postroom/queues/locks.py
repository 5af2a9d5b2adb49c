"""Segment locks: a queue belongs to one user from the first segment of a message to the last.

A lock holds while its owner's process lives and its lease lasts. After that the next receiver takes the queue, and the
message starts again at its first segment.
"""

from __future__ import annotations

from dataclasses import dataclass

from postroom.errors import QueueLocked
from postroom.limits import LOCK_LEASE_SECONDS
from postroom.model.key import key_text
from postroom.model.moment import in_microseconds, to_datetime, to_iso
from postroom.store.kernel.owner import described, is_alive
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class User:
    """The user of a verb: a process for locks, a name for the journal."""

    owner: str
    name: str


def refuse_locked(tx: Transaction, queue: Queue) -> None:
    """Raise for a locked queue: only receives may use it, even for the user who locked it."""
    if queue.in_use(tx.now):
        raise locked_error(queue)


def unlocked(tx: Transaction, queues: list[Queue]) -> list[Queue]:
    """The queues without locks; raises if one is locked."""
    for queue in queues:
        refuse_locked(tx, queue)
    return queues


def enter(tx: Transaction, queue: Queue, user: User) -> Queue:
    """Let a receive into a queue that is free or ours; clears a dead lock, raises for another's."""
    return queue if queue.lock_owner == user.owner and queue.in_use(tx.now) else free(tx, queue)


def free(tx: Transaction, queue: Queue) -> Queue:
    """A queue without a lock; clears a dead one, raises for any other."""
    if queue.lock_owner is None:
        return queue
    refuse_locked(tx, queue)
    tx.queues.unlock(queue, "the lock's owner ended" if is_alive(queue.lock_owner) is False else "its lease ran out")
    return tx.queues.locked(queue.id)


def keep(tx: Transaction, queue: Queue, user: User, reference: str, message: int, segment: int, char: int = 0) -> None:
    tx.queues.lock(
        queue,
        owner=user.owner,
        actor=user.name,
        reference=reference,
        message=message,
        segment=segment,
        expires=tx.now + in_microseconds(LOCK_LEASE_SECONDS),
        char=char,
    )


def next_char(queue: Queue, message: int) -> int:
    """How many characters of the message this user has received."""
    return (queue.lock_char or 0) if queue.lock_message == message else 0


def next_segment(queue: Queue, message: int) -> int:
    """How many segments of the message this user has received; 0 if the lock is on another message."""
    return (queue.lock_segment or 0) if queue.lock_message == message else 0


def locked_error(queue: Queue) -> QueueLocked:
    return QueueLocked(
        queue=queue.name,
        holder=f"{queue.lock_actor} ({described(queue.lock_owner or '')})",
        key=key_text(queue.lock_message or 0),
        until=to_iso(to_datetime(queue.lock_expires or 0)),
    )
