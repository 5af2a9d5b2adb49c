"""Many changes at once, in a given order: what a step of the engine does, or a send through a door.

The journal reads as if they had been made one after another; the database sees a few statements over many rows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.errors import StoreCorrupt
from postroom.model.message import Draft, Stored, message_hash
from postroom.store.messages import DEPART, DISCARD, INSERT, MARK
from postroom.store.queues import Keep, Queue
from postroom.store.slices import Member

if TYPE_CHECKING:
    from postroom.store.transaction import Transaction

_JOURNAL = """
INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
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
    """Changes in their order. ``write`` makes them; queues must be locked by this transaction before.

    Or, where objects for each change cost too much: ``reserve`` numbers for so many changes, call the verbs, and
    ``finish``.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._session = tx.session
        self._now = tx.session.now
        self._actor = tx.journal.actor
        self._numbers: Iterator[int] = iter(())
        self._keys: Iterator[int] = iter(())
        self._journal: list[tuple[Any, ...]] = []
        self._marked: list[tuple[Any, ...]] = []
        self._discarded: list[tuple[Any, ...]] = []
        self._messages: list[tuple[Any, ...]] = []
        self._arrived: dict[int, Iterator[int]] = {}
        self._arrivals: Counter[int] = Counter()
        self._queues: dict[int, Queue] = {}
        self._fresh: defaultdict[tuple[int, str], list[Member]] = defaultdict(list)
        self._entries: list[Member] = []
        self._resets: list[tuple[int, str]] = []
        self._held: list[int] = []
        self._timers: list[tuple[int, int]] = []

    def write(self, changes: Sequence[Change], snapshot: int) -> Sequence[int]:
        """Make the changes; a reset frees what stood in its slice at ``snapshot``. Answers with the new keys.

        Raises ``Stale`` if a message to be taken is not there any more; then the transaction must not go on.
        """
        keys = self.reserve(len(changes), sum(type(change) is Put for change in changes))
        for change in changes:
            if type(change) is Put:
                self.put(change.queue, *change.draft, change.cause, change.actor, change.places, change.due)
            elif type(change) is Take:
                self.take(*change)
            else:
                assert type(change) is Reset
                self.reset(*change)
        self.finish(snapshot)
        return keys

    def reserve(self, changes: int, puts: int) -> Sequence[int]:
        """Numbers in the journal for so many changes, and keys for the new messages among them."""
        keys = self._tx.keys.take(puts) if puts else ()
        self._numbers = iter(self._session.journal_numbers(changes) if changes else ())
        self._keys = iter(keys)
        return keys

    def put(
        self,
        queue: Queue,
        body: str,
        form: str,
        type: str | None,
        properties: str,
        cause: int | None,
        actor: str,
        places: Places = NOWHERE,
        due: int | None = None,
    ) -> None:
        seq, key, now, id = next(self._numbers), next(self._keys), self._now, queue.id
        arrived = self._arrived.get(id)
        if arrived is None:
            self._queues[id] = queue
            arrived = self._arrived[id] = count(self._tx.counts.arrive(queue, 0))
        self._journal.append((seq, now, "put", key, None, None, id, actor, None))
        hash = message_hash(key, now, cause, body, form, type, properties)
        self._messages.append((key, id, seq, next(arrived), now, body, form, type, properties, hash, cause))
        self._arrivals[id] += 1
        if places is not NOWHERE:
            for set, value in places.slices:
                self._fresh[set, value].append(Member(set, value, seq, key))
            self._entries += [Member(set, value, seq, key) for set, value in places.entries]
        if due is not None:
            self._timers.append((due, key))

    def take(self, queue: Queue, stored: Stored, sliced: bool) -> None:
        seq, now, kept = next(self._numbers), self._now, bool(queue.keep)
        target = queue.id if kept else None
        self._journal.append((seq, now, "take", stored.key, stored.last, queue.id, target, self._actor, None))
        if kept:
            self._marked.append((seq, now, stored.key, queue.id))
            if sliced and queue.keep == Keep.SLICED:
                self._held.append(stored.key)
        else:
            self._discarded.append((stored.key, queue.id, seq))
        self._tx.counts.depart(queue, stored.number, kept=kept)

    def reset(self, slicing: int, value: str, name: str, actor: str) -> None:
        said = json.dumps({"slicing": name, "slicekey": value}, ensure_ascii=False)
        self._journal.append((next(self._numbers), self._now, "reset", None, None, None, None, actor, said))
        self._fresh.pop((slicing, value), None)
        self._resets.append((slicing, value))

    def finish(self, snapshot: int) -> None:
        session, slices = self._session, self._tx.slices
        for id, arrived in self._arrivals.items():
            self._tx.counts.arrive(self._queues[id], arrived)
        if self._marked and session.many(MARK, self._marked) != len(self._marked):
            raise Stale
        if self._discarded:
            if session.many(DISCARD, [(key, queue) for key, queue, _ in self._discarded]) != len(self._discarded):
                raise Stale
            session.many(DEPART, [(key, seq) for key, _, seq in self._discarded])
        session.many(INSERT, self._messages)
        session.many(_JOURNAL, self._journal)
        for slicing, value in dict.fromkeys(self._resets):
            slices.reset(slicing, value, snapshot)
        slices.add([member for members in self._fresh.values() for member in members], self._entries)
        if self._held:
            slices.spend(self._held)
        for due, key in self._timers:
            self._tx.timers.add(due, "echo", {"message": key})
