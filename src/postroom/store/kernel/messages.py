"""Messages in their places: put, take, move, read. Each is one row, one journal entry and one change of counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import count
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored, message_hash, message_hashes
from postroom.store.kernel.columns import STORED
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.keys import Keys
from postroom.store.kernel.queues import MEND, UNLOCK, Keep, Queue
from postroom.store.kernel.session import Row, Session
from postroom.store.kernel.slices import Slices


class State(IntEnum):
    """In the order of the index: the newest processed message lies beside the oldest unprocessed one.

    So taking a message changes one page of the index and not two.
    """

    PROCESSED = 0
    UNPROCESSED = 1
    SET_ASIDE = 2  # no longer matches its hash: kept for inspection, never delivered
    RESERVED = -1  # taken by someone who may yet give it back: it keeps its place, and nobody else gets it


INSERT = """
INSERT INTO messages (key, queue, position, number, created, body, format, type, properties, hash, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_PASSED = """
INSERT INTO messages
    (key, queue, position, number, created, body, format, type, properties, hash, cause, processed, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
"""
_COLUMNS = "SELECT " + STORED + " FROM messages m JOIN queues q ON q.id = m.queue "  # noqa: S608  # constants alone
# The index leads to the key, and the row itself says where it is and in which state: so a damaged index is noticed.
_HEAD = (
    "SELECT m.queue, m.state, "  # noqa: S608  # constants alone
    + STORED
    + """
FROM messages m JOIN queues q ON q.id = m.queue
WHERE m.key = (SELECT i.key FROM messages i WHERE i.queue = ? AND i.state = 1 ORDER BY i.position LIMIT 1)
"""
)
_IS_SET_ASIDE = "SELECT 1 FROM messages WHERE key = ? AND state = 2"
_ANY = "SELECT key FROM messages LIMIT 1"
# By their keys: what an index over queues hides is still among the newest messages of all.
_BEHIND = """
SELECT n.queue, n.key FROM (SELECT m.key, m.queue, m.state, m.position FROM messages m ORDER BY m.key DESC LIMIT ?) n
WHERE n.queue IN (SELECT value FROM json_each(?)) AND n.state = 1 AND n.position > ? LIMIT 1
"""
_FIND = _COLUMNS + "WHERE m.key = ?"
_FIND_MANY = _COLUMNS + "WHERE m.key IN (SELECT value FROM json_each(?))"  # noqa: S608  # constants alone
_PAGE = _COLUMNS + "WHERE m.queue = ? AND m.state = ? AND m.position > ? ORDER BY m.position LIMIT ?"
_POSITIONS = """
SELECT m.position FROM messages m WHERE m.queue = ? AND m.state = 1 AND m.position > ? ORDER BY m.position LIMIT ?
"""
_BETWEEN = _COLUMNS + "WHERE m.queue = ? AND m.state = 1 AND m.position > ? AND m.position <= ? ORDER BY m.position"
_OUTLINES = """
SELECT m.key, q.name, m.created, m.processed, m.type, m.format, '', m.hash, m.properties, m.cause, m.position,
       m.number, coalesce(m.last, m.position), octet_length(m.body)
FROM messages m JOIN queues q ON q.id = m.queue
WHERE m.queue = ? AND m.state = 1 AND m.position > ? AND m.position <= ? ORDER BY m.position
"""
_NEXT_OF = _COLUMNS + "WHERE q.name = ? AND m.state = 1 AND m.position > ? ORDER BY m.position LIMIT ?"
MARK = """
UPDATE messages SET state = 0, position = ?, last = NULL, processed = ? WHERE key = ? AND queue = ? AND state = 1
"""
DISCARD = "DELETE FROM messages WHERE key = ? AND queue = ? AND state = 1"
DEPART = "INSERT INTO departed (key, last, cause, type) VALUES (?, ?, ?, ?)"
_SET_ASIDE = "UPDATE messages SET state = 2, position = ?, last = NULL WHERE key = ? AND queue = ? AND state = 1"
_RESERVE = "UPDATE messages SET state = -1, last = ?, processed = ? WHERE key = ? AND queue = ? AND state = 1"
_GIVE_BACK = "UPDATE messages SET state = 1, last = ?, processed = NULL WHERE key = ? AND queue = ? AND state = -1"
_IS_RESERVED = "SELECT 1 FROM messages WHERE key = ? AND state = -1"
_MARK_RESERVED = """
UPDATE messages SET state = 0, position = ?, last = NULL, processed = ? WHERE key = ? AND queue = ? AND state = -1
"""
_DISCARD_RESERVED = "DELETE FROM messages WHERE key = ? AND queue = ? AND state = -1"
_MOVE = """
UPDATE messages SET queue = ?, state = 1, position = ?, number = ?, last = NULL, processed = NULL
WHERE key = ? AND queue = ? AND state = 1
"""
_DEPART_PROCESSED = """
INSERT INTO departed (key, last, cause, type)
SELECT key, coalesce(last, position), cause, type FROM messages WHERE queue = ? AND state = 0
"""
_PURGE = "DELETE FROM messages WHERE queue = ? AND state = 0"


class Messages:
    def __init__(self, session: Session, journal: Journal, keys: Keys, counts: Counts, slices: Slices) -> None:
        self._session = session
        self._journal = journal
        self._keys = keys
        self._counts = counts
        self._slices = slices

    # --- moving ---

    def put(self, queue: Queue, draft: Draft, cause: int | None = None, detail: Mapping[str, Any] | None = None) -> int:
        """Store one new message at the end of a queue; answers with its key's number."""
        key, now, number = self._keys.next(), self._session.now, self._counts.arrive(queue, 1)
        position = self._journal.add("put", message=key, target=queue.id, detail=detail)
        hash = message_hash(key, now, cause, *draft)
        self._session.run(INSERT, (key, queue.id, position, number, now, *draft, hash, cause))
        return key

    def put_many(self, queue: Queue, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store many in their order, set at a time."""
        if not drafts:
            return ()
        keys, numbers = self._keys.take(len(drafts)), count(self._counts.arrive(queue, len(drafts)))
        positions = self._session.journal_numbers(len(drafts))
        now, id = self._session.now, queue.id
        hashes = message_hashes(keys, now, cause, drafts)
        self._session.many(
            INSERT,
            (
                (key, id, position, number, now, body, form, type, properties, hash, cause)
                for key, position, number, (body, form, type, properties), hash in zip(
                    keys, positions, numbers, drafts, hashes, strict=False
                )
            ),
        )
        self._journal.add_arrivals("put", positions, keys, id)
        return keys

    def take(self, queue: Queue, stored: Stored) -> None:
        """Mark the message processed, or discard it where the queue keeps no processed ones."""
        if queue.keep:
            position = self._journal.add(
                "take", message=stored.key, prior=stored.last, source=queue.id, target=queue.id
            )
            changed = self._session.run(MARK, (position, self._session.now, stored.key, queue.id))
            if queue.keep == Keep.SLICED:
                self._slices.spend([stored.key])
        else:
            last = self._journal.add("take", message=stored.key, prior=stored.last, source=queue.id)
            self._session.run(DEPART, (stored.key, last, stored.cause, stored.type))
            changed = self._session.run(DISCARD, (stored.key, queue.id))
        check_one(changed, stored)
        self._counts.depart(queue, stored.number, kept=bool(queue.keep))

    def reserve(self, queue: Queue, stored: Stored, detail: Mapping[str, Any] | None = None) -> None:
        """Take a message for someone who may give it back: nobody else gets it, and it keeps its key and its place."""
        last = self._journal.add(
            "reserve", message=stored.key, prior=stored.last, source=queue.id, target=queue.id, detail=detail
        )
        check_one(self._session.run(_RESERVE, (last, self._session.now, stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)

    def give_back(self, queue: Queue, stored: Stored) -> None:
        """A reserved message is in its queue again, as if it had not been taken: before all that came after it.

        The journal counts how often it was given out.
        """
        detail = {"attempts": self._journal.attempts(stored.key)}
        last = self._journal.add(
            "give-back", message=stored.key, prior=stored.last, source=queue.id, target=queue.id, detail=detail
        )
        check_one(self._session.run(_GIVE_BACK, (last, stored.key, queue.id)), stored)
        self._counts.come_back(queue)

    def take_reserved(self, queue: Queue, stored: Stored) -> None:
        """A reserved message will not be given back: it is processed, or discarded where the queue keeps none."""
        target = queue.id if queue.keep else None
        seq = self._journal.add("take", message=stored.key, prior=stored.last, source=queue.id, target=target)
        if queue.keep:
            changed = self._session.run(_MARK_RESERVED, (seq, self._session.now, stored.key, queue.id))
            if queue.keep == Keep.SLICED:
                self._slices.spend([stored.key])
            self._counts.keep(queue)
        else:
            self._session.run(DEPART, (stored.key, seq, stored.cause, stored.type))
            changed = self._session.run(_DISCARD_RESERVED, (stored.key, queue.id))
        check_one(changed, stored)

    def is_reserved(self, key: int) -> bool:
        return self._session.row(_IS_RESERVED, (key,)) is not None

    def move(
        self, stored: Stored, source: Queue, target: Queue, detail: Mapping[str, Any] | None = None, verb: str = "move"
    ) -> None:
        """Take an unprocessed message out of one queue and append it to another, in one step."""
        position = self._journal.add(
            verb, message=stored.key, prior=stored.last, source=source.id, target=target.id, detail=detail
        )
        number = self._counts.arrive(target, 1)
        changed = self._session.run(_MOVE, (target.id, position, number, stored.key, source.id))
        check_one(changed, stored)
        self._counts.depart(source, stored.number, kept=False)

    def remove(self, queue: Queue, stored: Stored, verb: str, detail: Mapping[str, Any] | None = None) -> None:
        """Let an unprocessed message disappear, also from every slice and index; the journal says that it was."""
        last = self._journal.add(verb, message=stored.key, prior=stored.last, source=queue.id, detail=detail)
        self._session.run(DEPART, (stored.key, last, stored.cause, stored.type))
        changed = self._session.run(DISCARD, (stored.key, queue.id))
        check_one(changed, stored)
        if queue.lock_message == stored.key:  # of someone who has ended: nothing is left to be read
            self._session.run(UNLOCK, (queue.id,))
        self._slices.forget(stored.key)
        self._counts.depart(queue, stored.number, kept=False)

    def set_aside(self, queue: Queue, stored: Stored) -> None:
        """Keep a damaged message out of every receiver's way, without losing what is left of it."""
        position = self._journal.add(
            "set-aside", message=stored.key, prior=stored.last, source=queue.id, target=queue.id
        )
        changed = self._session.run(_SET_ASIDE, (position, stored.key, queue.id))
        check_one(changed, stored)
        self._counts.depart(queue, stored.number, kept=False)

    def purge_processed(self, queue: Queue) -> int:
        """Free the space of a queue's processed messages; the journal still answers trace."""
        self._session.run(_DEPART_PROCESSED, (queue.id,))
        gone = self._session.run(_PURGE, (queue.id,))
        if gone:
            self._journal.add("purge", source=queue.id, detail={"messages": gone})
            self._counts.purge(queue, gone)
        return gone

    # --- reading ---

    def head(self, queue: Queue) -> Stored | None:
        """The next unprocessed message of a queue."""
        row = self._session.row(_HEAD, (queue.id,))
        if row is None:
            return None
        stored = Stored(*row[2:])
        if row[:2] != (queue.id, State.UNPROCESSED) or not _is_next(stored, queue):
            raise StoreCorrupt(why=f"the order of {queue.name} is not that of its messages. {MEND}")
        return stored

    def check_end(self, queues: Iterable[Queue], after: int = 0) -> None:
        """Raise if there are messages in queues that have none behind a position, as their index tells.

        Counts come from the same index: damage that hides the newest messages of a queue takes them out of both. They
        are looked for among the newest of all.
        """
        by_id = {queue.id: queue for queue in queues}
        row = self._session.row(_BEHIND, (PAGE_ROWS, json.dumps(list(by_id)), after)) if by_id else None
        if row is not None:
            why = f"an index of {by_id[row[0]].name} does not lead to message {key_text(row[1])}, which is there"
            raise StoreCorrupt(why=f"{why}. {MEND}")

    def find(self, key: int) -> Stored | None:
        row = self._session.row(_FIND, (key,))
        return None if row is None else Stored(*row)

    def find_many(self, keys: Sequence[int]) -> dict[int, Stored]:
        """Those of these keys that are there."""
        rows = self._session.rows(_FIND_MANY, (json.dumps(list(keys)),)) if keys else []
        return {row[0]: tuple.__new__(Stored, row) for row in rows}

    def is_set_aside(self, key: int) -> bool:
        """Whether a message was found damaged before."""
        return self._session.row(_IS_SET_ASIDE, (key,)) is not None

    def any(self) -> bool:
        """Whether there is a message at all."""
        return self._session.row(_ANY) is not None

    def positions(self, queue: Queue, after: int, limit: int) -> list[int]:
        """Where the next unprocessed messages of a queue stand, from behind a position."""
        return [row[0] for row in self._session.rows(_POSITIONS, (queue.id, after, limit))]

    def next_of(self, queue: str, after: int, limit: int) -> list[Stored]:
        """The next unprocessed messages of a queue, which may not be there, from behind a position."""
        rows = _unprocessed(self._session.rows(_NEXT_OF, (queue, after, limit)))
        return [tuple.__new__(Stored, row) for row in rows]  # the constructor's half cost counts here

    def between(self, queue: Queue, after: int, last: int) -> list[Stored]:
        """The unprocessed messages of a queue from behind a position up to another, oldest first."""
        rows = _unprocessed(self._session.rows(_BETWEEN, (queue.id, after, last)))
        return [tuple.__new__(Stored, row) for row in rows]  # the constructor's half cost counts here

    def outlines(self, queue: Queue, after: int, last: int) -> list[tuple[Stored, int]]:
        """As ``between``, without the bodies: instead of each the number of its bytes."""
        rows = _unprocessed(self._session.rows(_OUTLINES, (queue.id, after, last)))
        return [(tuple.__new__(Stored, row[:-1]), row[-1]) for row in rows]

    def page(self, queue: Queue, state: State, after: int, limit: int) -> list[Stored]:
        """Messages of a queue in one state, oldest first, from behind a position."""
        return [Stored(*row) for row in self._session.rows(_PAGE, (queue.id, int(state), after, limit))]


def _is_next(stored: Stored, queue: Queue) -> bool:
    """Whether all that came to a queue before a message have left it: else one of them was passed over."""
    number = stored.number
    return isinstance(number, int) and number <= queue.departed + 1


def _unprocessed(rows: list[Row]) -> list[Row]:
    """Rows that the index calls unprocessed; what a row itself says wins."""
    for row in rows:
        if row[3] is not None:
            raise StoreCorrupt(why=f"message {key_text(row[0])} is processed, and an index has it otherwise. {MEND}")
    return rows


def check_one(changed: int, stored: Stored) -> None:
    """The row was read under a lock in this transaction: only damage can have hidden it since."""
    if changed != 1:
        raise StoreCorrupt(why=f"message {key_text(stored.key)} was found in {stored.queue} and cannot be changed")
