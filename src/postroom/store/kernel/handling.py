"""Many messages of stations at once, each written on and moved in one event: what a step of procedures does.

A message that is not where it was any more spoils the whole: then the step has not happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from postroom.model.message import IN_SPHERE, Stored, message_hash
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import APPEND_NUMBERED, numbered
from postroom.store.kernel.messages import INSERT
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import Session
from postroom.store.kernel.transfers import KEEP_EDITION
from postroom.store.tables.spheres import Spheres

_WRITE = """
UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, body = ?, properties = ?, hash = ?
WHERE key = ? AND queue = ? AND state = 1 AND position = ?
"""


class Move(NamedTuple):
    """A message goes to a queue, or stays in its own, with another body perhaps."""

    stored: Stored
    source: Queue
    target: Queue
    verb: str
    body: str
    properties: str
    actor: str
    detail: str


class New(NamedTuple):
    key: int
    queue: Queue
    type: str
    properties: str
    body: str
    cause: int
    actor: str
    detail: str


class Handling:
    def __init__(self, session: Session, counts: Counts, spheres: Spheres) -> None:
        self._session = session
        self._spheres = spheres
        self._counts = counts

    def apply(self, changes: Sequence[Move | New]) -> list[Stored]:
        """Make the changes in their order; answers with each message as it is then. Queues must be locked before."""
        if not changes:
            return []
        seqs = self._session.journal_numbers(len(changes))
        numbers = self._numbers(changes)
        now, new = self._session.now, tuple.__new__  # the constructor's half cost counts here
        made: list[Stored] = []
        journal: list[tuple[Any, ...]] = []
        written: list[tuple[Any, ...]] = []
        fresh: list[tuple[Any, ...]] = []
        editions: list[tuple[Any, ...]] = []
        for seq, each in zip(seqs, changes, strict=True):
            if type(each) is Move:
                old, source, target, verb, body, properties, actor, detail = each
                key, _, created, _, kind, form, said, _, before, cause, position, _, last = old
                hash = message_hash(key, created, cause, body, form, kind, properties)
                here, there = source.id, target.id
                number = next(numbers[there])
                written.append((there, seq, number, body, properties, hash, key, here, position))
                journal.append(numbered(seq, now, verb, key, last, here, there, actor, detail))
                if body != said:
                    editions.append((key, seq, said, before))
                about = (key, target.name, created, None, kind, form, body, hash, properties, cause, seq, number, seq)
                made.append(new(Stored, about))
            else:
                assert type(each) is New
                key, queue, kind, properties, body, cause, actor, detail = each
                hash = message_hash(key, now, cause, body, "json", kind, properties)
                number = next(numbers[queue.id])
                fresh.append((key, queue.id, seq, number, now, body, "json", kind, properties, hash, cause))
                journal.append(numbered(seq, now, "create", key, None, None, queue.id, actor, detail))
                about = (key, queue.name, now, None, kind, "json", body, hash, properties, cause, seq, number, seq)
                made.append(new(Stored, about))
        self._depart(changes)
        if written and self._session.many(_WRITE, written) != len(written):
            raise Stale
        self._session.many(INSERT, fresh)
        self._session.many(APPEND_NUMBERED, journal)
        self._session.many(KEEP_EDITION, editions)
        moved = [each.stored for each in changes if type(each) is Move and IN_SPHERE in each.stored.properties]
        if moved:  # a procedure that handles a message is done with it
            self._spheres.processed([each.key for each in moved])
        return made

    def _depart(self, changes: Sequence[Move | New]) -> None:
        """Count who has left each queue."""
        gone: dict[int, tuple[Queue, list[int]]] = {}
        for each in changes:
            if type(each) is Move:
                source, number = each.source, each.stored.number
                known = gone.get(source.id)
                if known is None:
                    gone[source.id] = (source, [number])
                else:
                    known[1].append(number)
        for queue, some in gone.values():
            self._counts.depart(queue, max(some), len(some), kept=False)

    def _numbers(self, changes: Sequence[Move | New]) -> dict[int, count[int]]:
        """The numbers of arrivals in each queue; a message that stays in its own is the newest there, too."""
        targets = [each.target if type(each) is Move else each[1] for each in changes]
        arrived = Counter([queue.id for queue in targets])
        queues = {queue.id: queue for queue in targets}
        return {id: count(self._counts.arrive(queue, arrived[id])) for id, queue in queues.items()}
