"""Many changes at once, in a given order: for engine steps, and sends to queues with admission.

The journal is as if they were made one by one; the database executes a few statements over many rows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from postroom.errors import StoreCorrupt
from postroom.model.message import IN_SPHERE, Draft, Stored, empty_hash
from postroom.store.kernel.journal import empty_digest, numbered, put_alike
from postroom.store.kernel.queues import UNLOCK, Keep, Queue
from postroom.store.kernel.session import Row
from postroom.store.kernel.slices import Member
from postroom.store.kernel.timers import ECHO
from postroom.store.kernel.transaction import Transaction


class Stale(Exception):
    """A message to be taken is no longer there as it was read: someone else has received it, or had it meanwhile."""


class Places(NamedTuple):
    """Slices and indexes of a new message: number of the slicing or index, and value."""

    slices: tuple[tuple[int, str], ...] = ()
    entries: tuple[tuple[int, str], ...] = ()


NOWHERE = Places()


class Take(NamedTuple):
    queue: Queue
    stored: Stored
    sliced: bool  # a slice may hold it
    failed: bool = False  # it led to an error: whoever sent it must not think that it was processed


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


#: Lets messages into a queue with admission: they get what it works out for them, or none is let in.
Admit = Callable[[Transaction, Queue, Sequence[Draft]], Sequence[Put]]


def admit_nothing(tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> Sequence[Put]:
    """Always raises: a store without the admitting capabilities accepts no messages for such queues."""
    raise StoreCorrupt(why=f"{queue.name} needs checks that are not available here")


class Origin(NamedTuple):
    """The actor of new messages; the common part of their lines is computed once."""

    queue: int
    actor: str
    line: str  # of the digests, what stands behind the key
    numbers: Iterator[int] | None  # of arrivals in the queue; None if each has the number of its line


#: Origin, body, format, type, properties and cause of a message; its key.
PutPlainly = Callable[[Origin, str, str, str | None, str, int | None], int]


class Batch:
    """Changes in order.

    ``write`` makes them; queues must be locked by this transaction. Or, without an object per change: ``reserve``
    numbers, call the verbs, and ``finish``.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._session = tx.session
        self._now = tx.session.now
        self._actor = tx.journal.actor
        self._numbers: Iterator[int] = iter(())
        self.span = (0, 0)  # the first and the last number that were reserved
        self._keys: Sequence[int] = ()
        self._next_key: Iterator[int] = iter(())
        self._journal: list[Row] = []  # in the order of their numbers
        self._taken: defaultdict[int, list[Stored]] = defaultdict(list)
        self._marked: list[Row] = []
        self._discarded: list[Row] = []
        self._departed: list[Row] = []
        self._puts: list[Row] = []  # the values of ``NEW``
        self._origins: dict[tuple[int, str], Origin] = {}
        self._arrivals: dict[int, count[int]] = {}  # the numbers of those that come to a queue
        self._queues: dict[int, Queue] = {}
        self._fresh: defaultdict[tuple[int, str], list[Member]] = defaultdict(list)
        self._entries: list[Member] = []
        self._resets: list[tuple[int, str]] = []
        self._held: list[int] = []
        self._used: list[int] = []  # of spheres
        self._timers: list[tuple[int, int]] = []
        self._passed: dict[int, int] = {}  # by the place among the new messages: the number under which it was taken
        #: Puts a new message that stands in its queue alone.
        self.put_plainly: PutPlainly = self._plainly()

    def write(self, changes: Sequence[Change], snapshot: int) -> Sequence[int]:
        """Make the changes; a reset empties its slice as of ``snapshot``.

        Returns the new keys. Raises ``Stale`` if a message to be taken is gone; then the transaction must end.
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
        """Reserve journal numbers for changes, and keys for new messages among them."""
        self._keys = self._tx.keys.take(puts) if puts else ()
        self._next_key = iter(self._keys)
        numbers = self._session.journal_numbers(changes) if changes else ()
        self._numbers = iter(numbers)
        self.put_plainly = self._plainly()
        self.span = (numbers[0], numbers[-1]) if numbers else (0, 0)
        return self._keys

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
        passed: bool = False,
    ) -> None:
        """Put a new message; one that has ``passed`` is processed at once, which takes a second number."""
        key = self.put_plainly(self.origin(queue, actor), body, form, type, properties, cause)
        seq, id = self._puts[-1][2], queue.id
        for set, value in places.slices:
            self._fresh[set, value].append(Member(set, value, seq, key))
        self._entries += [Member(set, value, seq, key) for set, value in places.entries]
        if due is not None:
            self._timers.append((due, key))
        if passed:
            taken, target = next(self._numbers), id if queue.keep else None
            self._passed[len(self._puts) - 1] = taken
            self._journal.append(numbered(taken, self._now, "take", key, seq, id, target, actor))

    def origin(self, queue: Queue, actor: str) -> Origin:
        id = queue.id
        origin = self._origins.get((id, actor))
        if origin is None:
            self._queues[id] = queue
            if self._session.counts_arrivals and id not in self._arrivals:
                self._arrivals[id] = count(self._tx.counts.newest(queue) + 1)
            line = put_alike(self._now, id, actor)
            origin = self._origins[id, actor] = Origin(id, actor, line, self._arrivals.get(id))
        return origin

    def _plainly(self) -> PutPlainly:
        """Make ``put_plainly``, an optimised put without lookups, because it is most of a large step.

        Hash and digest are those of ``message_hash`` and ``line_digest``.
        """
        next_number, next_key, now = self._numbers.__next__, self._next_key.__next__, self._now
        put, note = self._puts.append, self._journal.append

        def put_plainly(
            origin: Origin, body: str, form: str, type: str | None, properties: str, cause: int | None
        ) -> int:
            id, actor, line, numbers = origin
            seq, key = next_number(), next_key()
            hash, digest = empty_hash(), empty_digest()
            hash.update(f"{key}\0{now}\0{cause}\0{form}\0{type or ''}\0{properties}\0{body}".encode())
            digest.update(f"{key}{line}".encode())
            number = seq if numbers is None else next(numbers)
            put((key, id, seq, number, now, body, form, type, properties, hash.digest(), cause))
            note((seq, now, "put", key, None, None, id, actor, None, digest.digest()))
            return key

        return put_plainly

    def take(self, queue: Queue, stored: Stored, sliced: bool, failed: bool = False, detail: str | None = None) -> None:
        """Take a message; one of a sphere counts as processed there unless it has ``failed``."""
        if not failed and IN_SPHERE in stored.properties:
            self._used.append(stored.key)
        seq, id, key = next(self._numbers), queue.id, stored.key
        self._queues[id] = queue
        self._taken[id].append(stored)
        if queue.keep:
            self._journal.append(numbered(seq, self._now, "take", key, stored.last, id, id, self._actor, detail))
            self._marked.append((seq, self._now, key, id, stored.last))
            if sliced and queue.keep == Keep.SLICED:
                self._held.append(key)
        else:
            self._journal.append(numbered(seq, self._now, "take", key, stored.last, id, None, self._actor, detail))
            self._discarded.append((key, id, stored.last))
            self._departed.append((key, seq, stored.cause, stored.type))

    def reset(self, slicing: int, value: str, name: str, actor: str) -> None:
        detail = json.dumps({"slicing": name, "slicekey": value}, ensure_ascii=False)
        self._journal.append(numbered(next(self._numbers), self._now, "reset", None, None, None, None, actor, detail))
        self._fresh.pop((slicing, value), None)
        self._resets.append((slicing, value))

    def finish(self, snapshot: int) -> None:
        messages, slices = self._tx.messages, self._tx.slices
        for id, taken in self._taken.items():
            queue = self._queues[id]
            self._tx.counts.depart(queue, max([stored.number for stored in taken]), len(taken), kept=bool(queue.keep))
            if queue.lock_message is not None and any(stored.key == queue.lock_message for stored in taken):
                self._session.run(UNLOCK, (id,))  # of someone who has ended: nothing is left to be read
        if not messages.mark(self._marked) or not messages.discard(self._discarded):
            raise Stale
        messages.depart(self._departed)
        self._insert()
        for slicing, value in dict.fromkeys(self._resets):
            slices.reset(slicing, value, snapshot)
        slices.add([member for members in self._fresh.values() for member in members], self._entries)
        if self._held:
            slices.spend(self._held)
        if self._used and self._tx.spheres.used(self._used):  # whoever takes a message in a step is done with it
            self._tx.wake()
        for due, key in self._timers:
            self._tx.timers.add(due, ECHO, {"message": key})

    def _insert(self) -> None:
        """Write new messages and journal lines."""
        came: defaultdict[int, list[int]] = defaultdict(list)
        for row in self._puts:
            came[row[1]].append(row[2])
        for id, lines in came.items():
            numbers = self._tx.counts.arrive(self._queues[id], lines)
            assert id not in self._arrivals or next(self._arrivals[id]) == numbers[-1] + 1, "others came in between"
        self._tx.messages.insert(self._insert_passed() if self._passed else self._puts)
        self._tx.journal.add_lines(self._journal)

    def _insert_passed(self) -> list[Row]:
        """Write the messages that are already processed; returns the others."""
        kept: list[Row] = []
        gone: list[Row] = []
        for place, taken in self._passed.items():
            key, id, _, number, now, body, form, type, properties, hash, cause = self._puts[place]
            queue = self._queues[id]
            if queue.keep:
                kept.append((key, id, taken, number, now, body, form, type, properties, hash, cause, now, 0))
            else:
                gone.append((key, taken, cause, type))
            self._tx.counts.depart(queue, number, kept=bool(queue.keep))
        self._tx.messages.insert_processed(kept)
        self._tx.messages.depart(gone)
        return [row for place, row in enumerate(self._puts) if place not in self._passed]
