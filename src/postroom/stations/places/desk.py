"""The desk: the only code that puts, moves, edits and removes messages of stations.

Each verb makes the whole change within the caller's transaction: the row of the message and its line in the journal,
the index of its fields, its dossiers, and the tracking that keeps queries right that are being read. Locks have one
order: first a place (``enter``, ``database_of``, ``mailbox_of``), then its queues.
"""

from __future__ import annotations

from collections.abc import Sequence

from postroom.errors import NameTaken
from postroom.model.message import Stored
from postroom.stations.places import indexing
from postroom.stations.places.names import database, mailbox, station_of
from postroom.store.kernel import handling
from postroom.store.kernel.handling import Move, New
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel
from postroom.store.tables.tracking import MAILBOXES, STATIONS

SHIP, GET = "ship", "get"  # out of a station's database into a mailbox, and out of a mailbox into the database


def enter(tx: Transaction, *places: str) -> None:
    """Lock places against new queries until the commit."""
    for place in places:
        tx.tracking.enter(place)


def database_of(tx: Transaction, station: str) -> Queue:
    """The queue of a station's own messages, locked for a change."""
    enter(tx, STATIONS)
    return queue_of(tx, database(station), STATION)


def mailbox_of(tx: Transaction, station: str) -> Queue:
    """The queue of a station's mail, locked for a change; at the control node."""
    enter(tx, MAILBOXES)
    return queue_of(tx, mailbox(station), MAILBOX)


def queue_of(tx: Transaction, name: str, kind: str) -> Queue:
    """A station's queue in this store, locked; created on demand."""
    queue = tx.queues.made(name, kind)
    if queue.kind != kind:
        raise NameTaken(name=name, owner=f"a queue of kind {queue.kind}")
    return queue


# --- in one store ---


def put(
    tx: Transaction, queue: Queue, messages: Sequence[tuple[int, str, str, str]], cause: int | None = None
) -> list[Stored]:
    """Put new messages into a queue: key, type, properties and body of each."""
    created = tx.messages.create(queue, messages, cause)
    indexing.add(tx, queue, created)
    tx.wake()
    return created


def edit(tx: Transaction, queue: Queue, stored: Stored, body: str, properties: str, fields: Sequence[str]) -> Stored:
    """Write a new body; ``fields`` are the changed ones."""
    edited = tx.messages.edit(queue, stored, body, properties, {"fields": fields})
    _moved(tx, [(queue, stored, queue, edited)])
    tx.wake()
    return edited


def move(tx: Transaction, stored: Stored, source: Queue, target: Queue, properties: str | None = None) -> Stored:
    """Move a message between a station's database and a mailbox of the same store, optionally with other properties."""
    verb, start = _journey(source)
    about = {"from": start, "to": station_of(target.name)}
    moved = tx.messages.move(stored, source, target, verb, about, properties)
    _moved(tx, [(source, stored, target, moved)])
    return moved


def apply(tx: Transaction, changes: Sequence[Move | New]) -> list[Stored]:
    """Make many changes in order; returns each changed message. The queues must be locked."""
    if not changes:
        return []
    results = handling.apply(tx, changes)
    both = list(zip(changes, results, strict=True))
    _moved(tx, [(old.source, old.stored, old.target, now) for old, now in both if isinstance(old, Move)])
    for queue, messages in _by_queue([(new.queue, now) for new, now in both if isinstance(new, New)]):
        indexing.add(tx, queue, messages)
    tx.wake()
    return results


def remove(tx: Transaction, queue: Queue, stored: Stored) -> None:
    """Withdraw an untouched message."""
    tx.messages.remove(queue, stored, "withdraw")
    _left(tx, queue, stored, tx.journal.newest())


def release(tx: Transaction, box: Queue, messages: Sequence[Stored]) -> None:
    """Remove messages from the mailbox's records after they were moved to an ordinary queue.

    Call it after that write.
    """
    indexing.remove(tx, box, messages)
    if not tx.tracking.calm():
        for stored in messages:
            tx.tracking.leave(MAILBOXES, stored, box.id, tx.journal.newest())


# --- between two stores ---


def depart(tx: Transaction, stored: Stored, queue: Queue, to: str, properties: str | None = None) -> Parcel:
    """Take a message out of its queue for another store: the first of three commits."""
    verb, start = _journey(queue)
    parcel = tx.transfers.depart(stored, queue, verb, start, to, 0, properties)
    return tx.transfers.noted(parcel, _left(tx, queue, stored, parcel.stored.position))


def arrive(tx: Transaction, parcel: Parcel, queue: Queue) -> int:
    """Store a message from another store: the second commit. Returns the last query that has run here."""
    last_query = tx.tracking.come(_place(queue), parcel.stored.key, parcel.seen)
    earlier = tx.transfers.still_leaving(parcel.stored.key)
    if earlier is not None:  # it left here, and is back before that journey was concluded
        conclude(tx, earlier, parcel.came)
    indexing.add(tx, queue, [tx.transfers.arrive(parcel, queue, last_query)])
    tx.wake()
    return last_query


def conclude(tx: Transaction, parcel: Parcel, last_query: int) -> None:
    """Remove the message in the store that it has left: the third commit. ``last_query`` has run at its new place."""
    if parcel.verb == GET:
        enter(tx, MAILBOXES)
    position = tx.transfers.conclude(parcel)
    if position is not None and parcel.verb == GET:
        tx.tracking.show(parcel.stored, parcel.target, parcel.seen, last_query, position)


# --- the parts of a change ---


def _place(queue: Queue) -> str:
    return STATIONS if queue.kind == STATION else MAILBOXES


def _journey(source: Queue) -> tuple[str, str]:
    """The journal's verb for leaving a queue, and the origin."""
    return (SHIP, station_of(source.name)) if source.kind == STATION else (GET, source.name)


def _left(tx: Transaction, queue: Queue, stored: Stored, position: int) -> int:
    """Note that a message is in no queue of this store; returns the last query that has seen it."""
    indexing.remove(tx, queue, [stored])
    if queue.kind == STATION:
        tx.dossiers.leave_many([stored.key])
    return tx.tracking.leave(_place(queue), stored, queue.id, position)


def _moved(tx: Transaction, changes: Sequence[tuple[Queue, Stored, Queue, Stored]]) -> None:
    """Update tracking for messages that were moved or edited."""
    differ = [change for change in changes if change[0].id != change[2].id or change[1].body != change[3].body]
    for source, messages in _by_queue([(source, before) for source, before, _, _ in differ]):
        indexing.remove(tx, source, messages)
    for target, messages in _by_queue([(target, now) for _, _, target, now in differ]):
        indexing.add(tx, target, messages)
    shipped = [now.key for source, _, target, now in changes if (source.kind, target.kind) == (STATION, MAILBOX)]
    tx.dossiers.leave_many(shipped)
    if tx.tracking.calm():
        return
    for source, before, target, now in changes:
        left, come = _place(source), _place(target)
        seen = tx.tracking.leave(left, before, source.id, now.position, stays=left == come)
        if left != come:
            last_query = tx.tracking.come(come, now.key, seen)
            if come == STATIONS:
                tx.tracking.show(before, station_of(target.name), seen, last_query, now.position)


def _by_queue(messages: Sequence[tuple[Queue, Stored]]) -> list[tuple[Queue, list[Stored]]]:
    groups: dict[int, tuple[Queue, list[Stored]]] = {}
    for queue, stored in messages:
        groups.setdefault(queue.id, (queue, []))[1].append(stored)
    return list(groups.values())
