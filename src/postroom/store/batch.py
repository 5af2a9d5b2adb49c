"""Many changes at once, in a given order: what a step of the engine does, or a send through a door.

The journal reads as if they had been made one after another; the database sees a few statements over many rows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.errors import StoreCorrupt
from postroom.model.message import Draft, Stored, message_hash
from postroom.store.queues import Keep, Queue
from postroom.store.slices import Member

if TYPE_CHECKING:
    from postroom.store.transaction import Transaction

_JOURNAL = """
INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MARK = """
UPDATE messages SET state = 0, position = ?, last = NULL, processed = ? WHERE key = ? AND queue = ? AND state = 1
"""
_DEPART = "INSERT INTO departed (key, last) VALUES (?, ?)"
_DISCARD = "DELETE FROM messages WHERE key = ? AND queue = ? AND state = 1"
_INSERT = """
INSERT INTO messages (key, queue, position, number, created, body, format, type, properties, hash, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class Stale(Exception):
    """A message that was to be taken is no longer there: someone else has received it meanwhile."""


class Places(NamedTuple):
    """Where a new message stands besides its queue: by number of the slicing or index, and value."""

    slices: tuple[tuple[int, str], ...] = ()
    entries: tuple[tuple[int, str], ...] = ()


NOWHERE = Places()


class Take(NamedTuple):
    queue: Queue
    stored: Stored
    sliced: bool  # a slice may hold it


class Put(NamedTuple):
    queue: Queue
    draft: Draft
    cause: int | None
    actor: str
    places: Places = NOWHERE
    due: int | None = None  # for an echo queue: when it is to go on


class Reset(NamedTuple):
    slicing: int
    value: str
    name: str
    actor: str


Change = Take | Put | Reset


#: What a queue with a door does to messages before they are let in.
Door = Callable[["Transaction", Queue, Sequence[Draft]], Sequence[Put]]


def no_door(tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> Sequence[Put]:
    """For a store that is used without the capability that makes doors: nothing may pass unworked."""
    raise StoreCorrupt(why=f"{queue.name} has a door, and nobody is there to open it")


class Batch:
    """Changes in their order. ``write`` makes them; queues must be locked by this transaction before."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._session = tx.session
        self._journal: list[tuple[Any, ...]] = []
        self._marked: list[tuple[Any, ...]] = []
        self._discarded: list[tuple[Any, ...]] = []
        self._messages: list[tuple[Any, ...]] = []
        self._fresh: defaultdict[tuple[int, str], list[Member]] = defaultdict(list)
        self._entries: list[Member] = []
        self._resets: list[tuple[int, str]] = []
        self._held: list[int] = []
        self._timers: list[tuple[int, int]] = []

    def write(self, changes: Sequence[Change], snapshot: int) -> Sequence[int]:
        """Make the changes; a reset frees what stood in its slice at ``snapshot``. Answers with the new keys.

        Raises ``Stale`` if a message to be taken is not there any more; then the transaction must not go on.
        """
        puts = [change for change in changes if type(change) is Put]
        numbers = self._session.journal_numbers(len(changes)) if changes else ()
        keys = self._tx.keys.take(len(puts)) if puts else ()
        next_key = iter(keys)
        arrivals = self._numbered(puts)
        for seq, change in zip(numbers, changes, strict=True):
            if type(change) is Put:
                self._put(seq, next(next_key), next(arrivals[change.queue.id]), change)
            elif type(change) is Take:
                self._take(seq, change)
            else:
                assert type(change) is Reset
                self._reset(seq, change)
        self._flush(snapshot)
        return keys

    def _numbered(self, puts: Sequence[Put]) -> dict[int, Any]:
        counts: defaultdict[int, int] = defaultdict(int)
        queues = {}
        for put in puts:
            counts[put.queue.id] += 1
            queues[put.queue.id] = put.queue
        arrive = self._tx.counts.arrive
        firsts = {id: arrive(queues[id], count) for id, count in counts.items()}
        return {id: iter(range(first, first + counts[id])) for id, first in firsts.items()}

    def _put(self, seq: int, key: int, number: int, put: Put) -> None:
        queue, (body, form, type, properties), cause, actor, places, due = put
        now = self._session.now
        self._journal.append((seq, now, "put", key, None, None, queue.id, actor, None))
        hash = message_hash(key, now, cause, body, form, type, properties)
        self._messages.append((key, queue.id, seq, number, now, body, form, type, properties, hash, cause))
        if places is not NOWHERE:
            for set, value in places.slices:
                self._fresh[set, value].append(Member(set, value, seq, key))
            self._entries += [Member(set, value, seq, key) for set, value in places.entries]
        if due is not None:
            self._timers.append((due, key))

    def _take(self, seq: int, take: Take) -> None:
        queue, stored, sliced = take
        now, kept = self._session.now, bool(queue.keep)
        target = queue.id if kept else None
        actor = self._tx.journal.actor
        self._journal.append((seq, now, "take", stored.key, stored.last, queue.id, target, actor, None))
        if kept:
            self._marked.append((seq, now, stored.key, queue.id))
            if sliced and queue.keep == Keep.SLICED:
                self._held.append(stored.key)
        else:
            self._discarded.append((stored.key, queue.id, seq))
        self._tx.counts.depart(queue, stored.number, kept=kept)

    def _reset(self, seq: int, reset: Reset) -> None:
        said = json.dumps({"slicing": reset.name, "slicekey": reset.value}, ensure_ascii=False)
        self._journal.append((seq, self._session.now, "reset", None, None, None, None, reset.actor, said))
        self._fresh.pop((reset.slicing, reset.value), None)
        self._resets.append((reset.slicing, reset.value))

    def _flush(self, snapshot: int) -> None:
        session, slices = self._session, self._tx.slices
        if self._marked and session.many(_MARK, self._marked) != len(self._marked):
            raise Stale
        if self._discarded:
            if session.many(_DISCARD, [(key, queue) for key, queue, _ in self._discarded]) != len(self._discarded):
                raise Stale
            session.many(_DEPART, [(key, seq) for key, _, seq in self._discarded])
        session.many(_INSERT, self._messages)
        session.many(_JOURNAL, self._journal)
        for slicing, value in dict.fromkeys(self._resets):
            slices.reset(slicing, value, snapshot)
        slices.add([member for members in self._fresh.values() for member in members], self._entries)
        if self._held:
            slices.spend(self._held)
        for due, key in self._timers:
            self._tx.timers.add(due, "echo", {"message": key})
