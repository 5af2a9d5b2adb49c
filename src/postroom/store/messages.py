"""Messages in their places: put, take, move, read. Each is one row, one journal entry and one change of counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from postroom.errors import StoreCorrupt
from postroom.model.body import Format
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, Draft, Message, message_hash
from postroom.model.moment import to_datetime
from postroom.store.counts import Counts
from postroom.store.journal import Journal
from postroom.store.keys import Keys
from postroom.store.queues import Place, Queue
from postroom.store.session import Session


class State(IntEnum):
    UNPROCESSED = 0
    PROCESSED = 1
    SET_ASIDE = 2  # no longer matches its hash: kept for inspection, never delivered


class Stored(NamedTuple):
    """A message's row, as read inside a transaction."""

    key: int
    queue: str
    created: int
    processed: int | None
    type: str | None
    format: str
    body: str
    hash: bytes
    properties: str
    cause: int | None
    position: int
    last: int

    @property
    def sound(self) -> bool:
        """Whether the row still says what was sent."""
        said = Draft(self.body, self.format, self.type, self.properties)
        try:
            return message_hash(self.key, self.created, self.cause, said) == bytes(self.hash)
        except (UnicodeEncodeError, TypeError):  # rot can change a value's very type
            return False

    def message(self, processed: int | None = None, body: str | None = None) -> Message:
        """The message of a sound row; ``processed`` or ``body`` (one segment) stand in for what the row had."""
        processed = self.processed if processed is None else processed
        return Message(
            key_text(self.key),
            self.queue,
            Format(self.format),
            self.body if body is None else body,
            to_datetime(self.created),
            None if processed is None else to_datetime(processed),
            self.type,
            {} if self.properties == NO_PROPERTIES else json.loads(self.properties),
            None if self.cause is None else key_text(self.cause),
        )

    def image(self) -> Message:
        """The message for someone who looks: a damaged one comes without its body and says so."""
        if self.sound:
            return self.message()
        return Message(key_text(self.key), self.queue, Format.TEXT, "", to_datetime(0), corrupt=True)


_INSERT = """
INSERT INTO messages (key, queue, position, created, body, format, type, properties, hash, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COLUMNS = """
SELECT m.key, q.name, m.created, m.processed, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position,
       coalesce(m.last, m.position)
FROM messages m JOIN queues q ON q.id = m.queue
"""
_HEAD = _COLUMNS + "WHERE m.queue = ? AND m.state = 0 ORDER BY m.position LIMIT 1"
_FIND = _COLUMNS + "WHERE m.key = ?"
_PAGE = _COLUMNS + "WHERE m.queue = ? AND m.state = ? AND m.position > ? ORDER BY m.position LIMIT ?"
_MARK = """
UPDATE messages SET state = 1, position = ?, last = NULL, processed = ? WHERE key = ? AND queue = ? AND state = 0
"""
_DISCARD = "DELETE FROM messages WHERE key = ? AND queue = ? AND state = 0"
_DEPART = "INSERT INTO departed (key, last) VALUES (?, ?)"
_SET_ASIDE = "UPDATE messages SET state = 2, position = ?, last = NULL WHERE key = ? AND queue = ? AND state = 0"
_MOVE = """
UPDATE messages SET queue = ?, state = 0, position = ?, last = NULL, processed = NULL
WHERE key = ? AND queue = ? AND state = 0
"""
_DEPART_PROCESSED = """
INSERT INTO departed (key, last) SELECT key, coalesce(last, position) FROM messages WHERE queue = ? AND state = 1
"""
_PURGE = "DELETE FROM messages WHERE queue = ? AND state = 1"


class Messages:
    def __init__(self, session: Session, journal: Journal, keys: Keys, counts: Counts) -> None:
        self._session = session
        self._journal = journal
        self._keys = keys
        self._counts = counts

    # --- moving ---

    def put(self, place: Place, draft: Draft, cause: int | None = None) -> int:
        """Store one new message at the end of a queue that admitted it; answers with its key's number."""
        key = self._keys.next()
        position = self._journal.add("put", message=key, target=place.id)
        now = self._session.now
        self._session.run(_INSERT, (key, place.id, position, now, *draft, message_hash(key, now, cause, draft), cause))
        self._counts.admitted(place, 1)
        return key

    def put_many(self, place: Place, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store many in their order, set at a time."""
        keys = self._keys.take(len(drafts))
        positions = self._session.journal_numbers(len(drafts))
        now, id = self._session.now, place.id
        self._session.many(
            _INSERT,
            (
                (key, id, position, now, *draft, message_hash(key, now, cause, draft), cause)
                for key, position, draft in zip(keys, positions, drafts, strict=True)
            ),
        )
        if positions:
            self._journal.add_arrivals("put", target=id, since=positions[0])
            self._counts.admitted(place, len(keys))
        return keys

    def take(self, queue: Queue, stored: Stored) -> None:
        """Mark the message processed, or discard it where the queue keeps no processed ones."""
        if queue.keep:
            position = self._journal.add(
                "take", message=stored.key, prior=stored.last, source=queue.id, target=queue.id
            )
            changed = self._session.run(_MARK, (position, self._session.now, stored.key, queue.id))
            self._counts.add(queue.id, -1, 1)
        else:
            last = self._journal.add("take", message=stored.key, prior=stored.last, source=queue.id)
            self._session.run(_DEPART, (stored.key, last))
            changed = self._session.run(_DISCARD, (stored.key, queue.id))
            self._counts.add(queue.id, -1, 0)
        _check_one(changed, stored)

    def move(self, stored: Stored, source: Queue, target: Queue) -> None:
        """Take an unprocessed message out of one queue and append it to another, in one step."""
        position = self._journal.add("move", message=stored.key, prior=stored.last, source=source.id, target=target.id)
        changed = self._session.run(_MOVE, (target.id, position, stored.key, source.id))
        _check_one(changed, stored)
        self._counts.add(source.id, -1, 0)
        self._counts.add(target.id, 1, 0)

    def set_aside(self, queue: Queue, stored: Stored) -> None:
        """Keep a damaged message out of every receiver's way, without losing what is left of it."""
        position = self._journal.add(
            "set-aside", message=stored.key, prior=stored.last, source=queue.id, target=queue.id
        )
        changed = self._session.run(_SET_ASIDE, (position, stored.key, queue.id))
        _check_one(changed, stored)
        self._counts.add(queue.id, -1, 0)

    def purge_processed(self, queue: Queue) -> int:
        """Free the space of a queue's processed messages; the journal still answers trace."""
        self._session.run(_DEPART_PROCESSED, (queue.id,))
        gone = self._session.run(_PURGE, (queue.id,))
        if gone:
            self._journal.add("purge", source=queue.id, detail={"messages": gone})
            self._counts.add(queue.id, 0, -gone)
        return gone

    # --- reading ---

    def head(self, queue: Queue) -> Stored | None:
        """The next unprocessed message of a queue."""
        row = self._session.row(_HEAD, (queue.id,))
        return None if row is None else Stored(*row)

    def find(self, key: int) -> Stored | None:
        row = self._session.row(_FIND, (key,))
        return None if row is None else Stored(*row)

    def page(self, queue: Queue, state: State, after: int, limit: int) -> list[Stored]:
        """Messages of a queue in one state, oldest first, from behind a position."""
        return [Stored(*row) for row in self._session.rows(_PAGE, (queue.id, int(state), after, limit))]


def _check_one(changed: int, stored: Stored) -> None:
    """The row was read under a lock in this transaction: only damage can have hidden it since."""
    if changed != 1:
        raise StoreCorrupt(why=f"message {key_text(stored.key)} was found in {stored.queue} and cannot be changed")
