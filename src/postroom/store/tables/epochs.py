"""Which version of the flow graph applies to a message: the one at its arrival.

An epoch lasts from one change to the next, in journal numbers. Also, which messages of queues flow at all: from one
journal number on, optionally up to another.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

END = 2**62  # behind every number

_BEGIN = "INSERT INTO epochs (seq, version) VALUES (?, ?)"
_AT = "SELECT seq, version FROM epochs WHERE seq <= ? ORDER BY seq DESC LIMIT 1"
_OLDEST = "SELECT seq, version FROM epochs ORDER BY seq LIMIT 1"
_NEXT = "SELECT seq FROM epochs WHERE seq > ? ORDER BY seq LIMIT 1"
_VERSIONS = "SELECT DISTINCT version FROM epochs ORDER BY version"
_FORGET = "DELETE FROM epochs WHERE seq < ?"
_FLOWING = "SELECT f.queue, q.name, f.since, f.until FROM flowing f JOIN queues q ON q.id = f.queue ORDER BY f.since"
_OPEN = "INSERT INTO flowing (queue, since, until) VALUES (?, ?, NULL)"
_CLOSE = "UPDATE flowing SET until = ? WHERE queue = ? AND until IS NULL"
_DROP_ALL = "DELETE FROM flowing WHERE queue = ?"
_DROP = "DELETE FROM flowing WHERE queue = ? AND since = ?"
_COUNT = "SELECT count(*) FROM messages WHERE queue = ? AND state IN (1, 3) AND position > ? AND position < ?"
_FIRST = "SELECT position FROM messages WHERE queue = ? AND state = 1 AND position > ? ORDER BY position LIMIT 1"
# Also of those that wait for their next attempt.
_FIRST_OF_ALL = "SELECT min(position) FROM messages WHERE queue = ? AND state IN (1, 3) AND position > ?"


class Epoch(NamedTuple):
    """The range of messages for a version of the graph."""

    version: int
    since: int
    until: int


class Flowing(NamedTuple):
    """The messages of a queue that flow on."""

    queue: int
    name: str
    since: int
    until: int | None

    @property
    def end(self) -> int:
        return END if self.until is None else self.until


class Epochs(StoreTable):
    def begin(self, seq: int, version: int) -> None:
        self._session.run(_BEGIN, (seq, version))

    def at(self, position: int) -> Epoch | None:
        """The epoch of a message, or the oldest known; None if there was never a graph."""
        row = self._session.row(_AT, (position,)) or self._session.row(_OLDEST)
        if row is None:
            return None
        following = self._session.row(_NEXT, (max(position, row[0]),))
        return Epoch(row[1], row[0], END if following is None else following[0])

    def versions(self) -> list[int]:
        """The versions that are still needed."""
        return [row[0] for row in self._session.rows(_VERSIONS)]

    def flowing(self) -> list[Flowing]:
        return [Flowing(*row) for row in self._session.rows(_FLOWING)]

    def open(self, queue: int, since: int) -> None:
        """Let the messages of a queue flow from a number on."""
        self._session.run(_OPEN, (queue, since))

    def close(self, queue: int, until: int) -> None:
        """Let only earlier messages flow."""
        self._session.run(_CLOSE, (until, queue))

    def skip(self, queue: int, first: int, last: int) -> None:
        """Let messages between two numbers, inclusive, stay; later ones flow again."""
        if any(flowing.queue == queue and flowing.until is None for flowing in self.flowing()):
            self.close(queue, first)
            self.open(queue, last)

    def drop(self, queue: int) -> None:
        """Let no messages of a queue flow."""
        self._session.run(_DROP_ALL, (queue,))

    def first(self, flowing: Flowing) -> int | None:
        """The position of the first message that has yet to flow."""
        row = self._session.row(_FIRST, (flowing.queue, flowing.since))
        return None if row is None or row[0] >= flowing.end else int(row[0])

    def first_of_all(self, flowing: Flowing) -> int | None:
        """Like ``first``, including one that waits for a retry."""
        first = self._session.value(_FIRST_OF_ALL, (flowing.queue, flowing.since))
        return None if first is None or first >= flowing.end else int(first)

    def count(self, flowing: Flowing) -> int:
        """How many messages have yet to flow."""
        return self._session.number(_COUNT, (flowing.queue, flowing.since, flowing.end))

    def forget(self) -> None:
        """Delete what no message needs any more. All queues whose messages flow must be locked."""
        oldest = END
        for flowing in self.flowing():
            first = self.first_of_all(flowing)
            if first is not None:
                oldest = min(oldest, first)
            elif flowing.until is not None:
                self._session.run(_DROP, (flowing.queue, flowing.since))
        needed = self._session.row(_AT, (oldest,))
        if needed is not None:
            self._session.run(_FORGET, (needed[0],))
