"""Slices and indexes: which messages share a value, and which ones slices keep.

A slice is the rows of one slicing with one value: its current lifetime. A reset deletes them; a message is kept as long
as it has a row here. An index has rows of the same form and keeps nothing; rules use it for lookups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from postroom.model.message import Stored
from postroom.store.kernel.message_rows import OUTLINE, STORED, record
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import Row, StoreTable
from postroom.store.kernel.statement import Statement

_SET = "SELECT id FROM sets WHERE kind = ? AND name = ?"
_SETS = "SELECT name, id FROM sets WHERE kind = ?"
_NEW_SET = "INSERT INTO sets (kind, name) VALUES (?, ?) RETURNING id"
_SLICE = """
FROM slices s JOIN messages m ON m.key = s.message JOIN queues q ON q.id = m.queue
WHERE s.slicing = ? AND s.value = ? AND m.state <> 2 ORDER BY s.position
"""
_ENTRY = """
FROM entries s JOIN messages m ON m.key = s.message JOIN queues q ON q.id = m.queue
WHERE s.source = ? AND s.value = ? AND m.state <> 2 ORDER BY s.position
"""
_QUEUE = " FROM messages m JOIN queues q ON q.id = m.queue WHERE q.name = ? AND m.state <> 2 ORDER BY m.number"
_SLICES, _ENTRIES, _QUEUES = (f"SELECT {STORED}{part}" for part in (_SLICE, _ENTRY, _QUEUE))
# The same without the bodies.
_SLICE_OUTLINES, _ENTRY_OUTLINES, _QUEUE_OUTLINES = (f"SELECT {OUTLINE}{part}" for part in (_SLICE, _ENTRY, _QUEUE))
_VALUES = "SELECT source, value FROM entries WHERE message = ? ORDER BY source, value"
_HOLDS = "SELECT t.name, s.value FROM slices s JOIN sets t ON t.id = s.slicing WHERE s.message = ? ORDER BY 1, 2"
_HELD = """
SELECT count(*) FROM messages m WHERE m.queue = ? AND EXISTS (SELECT 1 FROM slices s WHERE s.message = m.key)
"""
_ADD_SLICES = "INSERT INTO slices (slicing, value, position, message) VALUES (?, ?, ?, ?)"
_ADD_ENTRIES = "INSERT INTO entries (source, value, position, message) VALUES (?, ?, ?, ?)"
_RESET_KEYS = "SELECT message FROM slices WHERE slicing = ? AND value = ? AND position <= ?"
_RESET = "DELETE FROM slices WHERE slicing = ? AND value = ? AND position <= ?"
_IN_USE = "SELECT value FROM slices WHERE slicing = ? LIMIT 1"
_OF_SLICING = "SELECT message FROM slices WHERE slicing = ?"
_EMPTY_SLICING = "DELETE FROM slices WHERE slicing = ?"
_EMPTY_ENTRIES = "DELETE FROM entries WHERE source = ?"
_LEAVE_SLICES = "DELETE FROM slices WHERE message = ?"
_LEAVE_ENTRIES = "DELETE FROM entries WHERE message = ?"
_SPEND = Statement(
    """
    INSERT INTO spent (message) SELECT m.key FROM messages m WHERE m.key = ? AND m.state = 0
        AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.message = m.key) ON CONFLICT (message) DO NOTHING
    """,
    setwise="""
    INSERT INTO spent (message) SELECT m.key FROM messages m JOIN unnest(?::bigint[]) AS v (key) ON m.key = v.key
    WHERE m.state = 0 AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.message = m.key)
    ON CONFLICT (message) DO NOTHING
    """,
)
_UNSPEND = "DELETE FROM spent WHERE message = ?"


class Member(NamedTuple):
    """A message in a slice or index."""

    set: int
    value: str
    position: int
    message: int


class Slices(StoreTable):
    # --- names ---

    def slicing(self, name: str) -> int:
        return self._id("slicing", name)

    def index(self, name: str) -> int:
        return self._id("index", name)

    def ids(self, kind: str) -> dict[str, int]:
        """Every name of a kind ever used, with its number."""
        return {row[0]: row[1] for row in self._session.rows(_SETS, (kind,))}

    def _id(self, kind: str, name: str) -> int:
        known = self._session.value(_SET, (kind, name))
        return self._session.number(_NEW_SET, (kind, name)) if known is None else int(known)

    # --- reading ---

    def slice(self, slicing: int, value: str) -> list[Stored]:
        """The messages of a slice's current lifetime, in arrival order."""
        return self.slices([(slicing, value)])[0]

    def slices(self, wanted: Sequence[tuple[int, str]], bodies: bool = True) -> list[list[Stored]]:
        return _stored(self._session.each(_SLICES if bodies else _SLICE_OUTLINES, wanted))

    def indexed(self, wanted: Sequence[tuple[int, str]], bodies: bool = True) -> list[list[Stored]]:
        """The messages with a value in an index, in arrival order."""
        return _stored(self._session.each(_ENTRIES if bodies else _ENTRY_OUTLINES, wanted))

    def queue(self, name: str, bodies: bool = True) -> list[Stored]:
        """Every message of a queue, processed or not, in arrival order."""
        return list(map(record, self._session.rows(_QUEUES if bodies else _QUEUE_OUTLINES, (name,))))

    def values(self, messages: Sequence[int]) -> list[list[tuple[int, str]]]:
        """For each message, its index entries."""
        answers = self._session.each(_VALUES, [(key,) for key in messages])
        return [[(row[0], row[1]) for row in rows] for rows in answers]

    def holds(self, message: int) -> list[tuple[str, str]]:
        """The slices (slicing and value) that keep a message."""
        return [(row[0], row[1]) for row in self._session.rows(_HOLDS, (message,))]

    def used(self, slicing: int) -> str | None:
        """The value of some slice with a message."""
        return self._session.value(_IN_USE, (slicing,))

    def held_in(self, queue: Queue) -> int:
        """How many messages of a queue are kept by slices."""
        return self._session.number(_HELD, (queue.id,))

    # --- changing ---

    def add(self, slices: Iterable[Member], entries: Iterable[Member]) -> None:
        self._session.many(_ADD_SLICES, slices)
        self._session.many(_ADD_ENTRIES, entries)

    def reset(self, slicing: int, value: str, until: int) -> None:
        """Start a new lifetime: messages up to a position leave the slice."""
        freed = self._session.rows(_RESET_KEYS, (slicing, value, until))
        if freed:
            self._session.run(_RESET, (slicing, value, until))
            self.spend(row[0] for row in freed)

    def spend(self, messages: Iterable[int]) -> None:
        """Note the processed messages that nothing keeps, so that a sweep finds them without a search."""
        self._session.many(_SPEND, ((key,) for key in messages))

    def unspend(self, message: int) -> None:
        """Undo ``spend``: the message is unprocessed again."""
        self._session.run(_UNSPEND, (message,))

    def forget(self, message: int) -> None:
        """Remove a deleted message from all slices and indexes."""
        self._session.run(_LEAVE_SLICES, (message,))
        self._session.run(_LEAVE_ENTRIES, (message,))

    def empty_slicing(self, slicing: int) -> None:
        """Empty a removed slicing."""
        freed = self._session.rows(_OF_SLICING, (slicing,))
        self._session.run(_EMPTY_SLICING, (slicing,))
        self.spend(row[0] for row in freed)

    def empty_index(self, index: int) -> None:
        self._session.run(_EMPTY_ENTRIES, (index,))


def _stored(answers: list[list[Row]]) -> list[list[Stored]]:
    return [list(map(record, rows)) for rows in answers]
