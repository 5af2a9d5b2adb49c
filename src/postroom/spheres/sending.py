"""Sending in a sphere: now, or when the outcome is known; with the compensation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from postroom.engine.spheres import RETURN, marked, remember
from postroom.errors import ArgumentInvalid
from postroom.limits import SPHERE_SENDS_MAX
from postroom.model.body import Format
from postroom.model.key import key_number, key_text
from postroom.model.message import SPHERE, Draft, Message, Value
from postroom.spheres.access import QueueAccess
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import Send

MOMENTS = ("now", "commit", "abort")


@dataclass(frozen=True)
class Compensation:
    """A message that undoes another one; by default it goes to the same queue."""

    body: Any
    queue: str | Sequence[str] | None = None
    format: str | Format | None = None
    type: str | None = None
    properties: Mapping[str, Value] | None = None


@dataclass(frozen=True)
class SphereSent:
    """The keys of the messages that a send has stored."""

    key: str | None  # of the message, if it was sent at once
    remembered: str | None  # the key of what waits in COMP.Q


@dataclass(frozen=True)
class Order:
    """A checked send."""

    queue: tuple[str, ...]
    draft: Draft
    when: str = "now"
    compensation: Draft | None = None
    target: tuple[str, ...] | None = None
    on_commit: tuple[str, ...] | None = None
    box: str | None = None  # the station whose mailbox it is for
    cause: int | None = None  # the message that it follows from


def mail_order(writer: object, to: str, type: str, fields: Mapping[str, Any], compensation: Any, when: str) -> Order:
    """A form for a station's mailbox. Its compensation is another form of the type, or a message to any queue."""
    sender = getattr(writer, "name", None)
    if not isinstance(sender, str):
        raise ArgumentInvalid(argument="writer", why="a station is expected, as room.station returns it")
    properties = {"sender": sender}
    if isinstance(compensation, Compensation) and replace(compensation, body=None) == Compensation(None):
        compensation = compensation.body  # nothing else is said: so it is for the same mailbox
    if isinstance(compensation, Mapping):
        undo: Any = Compensation(dict(compensation), type=type, properties=properties)
    elif compensation is None or (isinstance(compensation, Compensation) and compensation.queue is not None):
        undo = compensation
    else:
        raise ArgumentInvalid(argument="compensation", why="give fields of the form, or a Compensation with a queue")
    return replace(order((to,), Draft.of(dict(fields), None, type, properties), when, undo), box=to)


def order(
    queue: str | Sequence[str],
    draft: Draft,
    when: str,
    compensation: Any,
    on_commit: str | Sequence[str] | None = None,
    format: str | Format | None = None,
) -> Order:
    """Check a send without the store. A compensation that is text has the ``format`` of the message."""
    if when not in MOMENTS:
        raise ArgumentInvalid(argument="when", why=f"{when!r} is none of {', '.join(MOMENTS)}")
    if compensation is not None and when != "now":
        raise ArgumentInvalid(argument="compensation", why=f"what is sent on {when} needs none")
    if on_commit is not None and compensation is None:
        raise ArgumentInvalid(argument="on_commit", why="it says where a compensation goes, and there is none")
    if compensation is None:
        return Order(path(queue), draft, when)
    undo = compensation
    if not isinstance(undo, Compensation):
        undo = Compensation(undo, format=format if isinstance(undo, (str, bytes, bytearray)) else None)
    return Order(
        path(queue),
        draft,
        when,
        Draft.of(undo.body, undo.format, undo.type, undo.properties),
        None if undo.queue is None else path(undo.queue),
        None if on_commit is None else path(on_commit),
    )


def send(tx: Transaction, id: str, order: Order, access: QueueAccess) -> SphereSent:
    """Store a message with its compensation, or keep it until the outcome is known."""
    number = _next(tx, id)
    recipient = access.find(tx, order.queue) if order.box is None else access.box(tx, order.box)
    access.check(tx, recipient, order.draft)
    if order.cause is not None:
        tx.causes.require(order.cause)
    if order.when != "now":
        return SphereSent(None, key_text(_later(tx, id, number, order.draft, order.when, recipient.name, order.cause)))
    target = recipient if order.target is None else access.find(tx, order.target)
    kept_in = None if order.on_commit is None else access.find(tx, order.on_commit).name
    if order.compensation is not None:
        access.check(tx, target, order.compensation)
    queue = access.reach(tx, recipient.name)
    key = access.put(tx, queue, marked(order.draft, {SPHERE: id}), order.cause)
    undo = None
    if order.compensation is not None:
        undo = remember(tx, id, order.compensation, "now", target.name, key, kept_in)
    goal = None if undo is None else target.name
    tx.spheres.remember(Send(id, number, "now", queue.name, key, queue.id, undo, goal, kept_in, tx.now))
    return SphereSent(key_text(key), None if undo is None else key_text(undo))


def note_received(tx: Transaction, id: str, message: Message) -> None:
    """Record that the sphere has received a message: if the sphere fails, it goes back to its place."""
    queue = tx.queues.named_to_read(message.queue)
    assert queue is not None, "it was received from there"
    key = key_number(message.key)
    tx.spheres.remember(Send(id, _next(tx, id), RETURN, queue.name, key, queue.id, None, None, None, tx.now))


def _next(tx: Transaction, id: str) -> int:
    number = tx.spheres.next_send(id)
    if number >= SPHERE_SENDS_MAX:
        raise ArgumentInvalid(argument="sphere", why=f"{id} has sent {SPHERE_SENDS_MAX} messages, the maximum")
    return number


def _later(tx: Transaction, id: str, number: int, draft: Draft, when: str, queue: str, cause: int | None) -> int:
    """Keep a message until the outcome is known; returns its key."""
    remembered = remember(tx, id, draft, when, queue, cause=cause)
    tx.spheres.remember(Send(id, number, when, queue, None, None, remembered, queue, None, tx.now))
    return remembered


def path(queue: str | Sequence[str]) -> tuple[str, ...]:
    names = (queue,) if isinstance(queue, str) else tuple(queue) if isinstance(queue, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentInvalid(argument="queue", why=f"{queue!r} is neither a name nor a path of names")
    return names
