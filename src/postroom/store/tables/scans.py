"""Reads whole queues in partitions: by key for the current content, by journal number for arrivals.

A key never changes, so a message is in exactly one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroom.errors import JournalArchived
from postroom.model.message import Stored
from postroom.store.kernel.archives import Archives
from postroom.store.kernel.message_rows import STORED, record
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import Row, Session

END = 2**63 - 1  # no number is higher


class Wanted(NamedTuple):
    """The filter of a scan; each pair is a lowest and a highest value."""

    keys: tuple[int, int] = (0, END)
    created: tuple[int, int] = (-END, END)
    type: str | None = None

    @property
    def values(self) -> Row:
        return (*self.keys, *self.created, int(self.type is not None), self.type)


class Found(NamedTuple):
    """A message, whether it is processed (1), and the number to continue after."""

    after: int
    state: int
    stored: Stored


_COLUMNS = f"SELECT {STORED}, m.position, m.state FROM messages m JOIN queues q ON q.id = m.queue "
_WANTED = " AND m.key >= ? AND m.key <= ? AND m.created >= ? AND m.created <= ? AND (? = 0 OR m.type = ?)"
# Messages that were set aside (2) are delivered to nobody.
_PAGE = _COLUMNS + "WHERE m.queue = ? AND m.state = ? AND m.position > ?" + _WANTED + " ORDER BY m.position LIMIT ?"
_FIND = _COLUMNS + "WHERE m.key = ? AND m.queue = ? AND m.state <= 1" + _WANTED
_COUNT = "SELECT count(*) FROM messages m WHERE m.queue = ? AND m.state <= 1"
_KEYS = """
SELECT max(t.key) FROM (
    SELECT m.key, ntile(?) OVER (ORDER BY m.key) AS part FROM messages m WHERE m.queue = ? AND m.state <= 1
) t GROUP BY t.part ORDER BY t.part
"""
# An arrival is an event that brings a message from elsewhere; most events leave it in its queue.
_CAME = """
FROM journal j WHERE j.seq > ? AND j.seq <= ? AND j.target = ? AND j.message IS NOT NULL
    AND (j.source IS NULL OR j.source <> j.target)
"""
_LAST = f"SELECT max(a.seq) FROM (SELECT j.seq {_CAME} ORDER BY j.seq LIMIT ?) a"
_COUNT_ARRIVALS = f"SELECT count(*) {_CAME}"
_NUMBERS = f"""
SELECT max(a.seq) FROM (SELECT j.seq, ntile(?) OVER (ORDER BY j.seq) AS part {_CAME}) a GROUP BY a.part ORDER BY a.part
"""
_ARRIVALS = f"""
SELECT {STORED}, j.seq, m.state
FROM journal j JOIN messages m ON m.key = j.message AND m.queue = j.target AND m.state <= 1
     JOIN queues q ON q.id = m.queue
WHERE j.seq > ? AND j.seq <= ? AND j.target = ? AND (j.source IS NULL OR j.source <> j.target) ORDER BY j.seq LIMIT ?
"""


class Scans:
    def __init__(self, session: Session, archives: Archives) -> None:
        self._session = session
        self._archives = archives

    # --- what is there ---

    def count(self, queue: Queue) -> int:
        return self._session.number(_COUNT, (queue.id,))

    def key_bounds(self, queue: Queue, parts: int) -> list[int]:
        """The highest key of each partition, for partitions of about equal size."""
        return [row[0] for row in self._session.rows(_KEYS, (parts, queue.id))]

    def page(self, queue: Queue, state: int, wanted: Wanted, after: int, limit: int) -> list[Found]:
        """Messages in one state, in order, after a position."""
        values = (queue.id, state, after, *wanted.values, limit)
        return [_found(row) for row in self._session.rows(_PAGE, values)]

    def find(self, queue: Queue, keys: Sequence[int], wanted: Wanted) -> list[Found]:
        """The given messages that are in the queue."""
        rows = self._session.each(_FIND, [(key, queue.id, *wanted.values) for key in keys])
        return [_found(row) for some in rows for row in some]

    # --- what came in ---

    def last_arrival(self, queue: Queue, after: int, until: int, limit: int) -> int | None:
        """The journal number of the newest of the next ``limit`` arrivals."""
        return self._session.value(_LAST, (after, until, queue.id, limit))

    def check_unarchived(self, queue: Queue, after: int) -> int:
        """Raise if the arrivals after a number were archived; returns the end of the archive."""
        end = self._archives.end()
        if after < end and self._archives.has_arrivals(queue.id, after):
            raise JournalArchived(line=after, end=end)
        return end

    def count_arrivals(self, queue: Queue, after: int, until: int) -> int:
        return self._session.number(_COUNT_ARRIVALS, (after, until, queue.id))

    def arrival_bounds(self, queue: Queue, after: int, until: int, parts: int) -> list[int]:
        """The highest journal number of each partition of arrivals, for partitions of about equal size."""
        return [row[0] for row in self._session.rows(_NUMBERS, (parts, after, until, queue.id))]

    def arrivals(self, queue: Queue, after: int, until: int, limit: int) -> list[Found]:
        """Arrivals that are still here, in order."""
        values = (after, until, queue.id, limit)
        return [_found(row) for row in self._session.rows(_ARRIVALS, values)]


def _found(row: Row) -> Found:
    return Found(row[-2], row[-1], record(row[:-2]))
