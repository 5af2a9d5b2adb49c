"""Which version of the graph of flows a message meets: that of the moment when it came.

An epoch begins with the journal's entry of a change and ends with the next one. Beside it stands whose messages flow at
all: a queue's messages from one number of the journal on, up to another if there is one.
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
    """The messages between two numbers of the journal meet this version."""

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
        """The epoch of a message, or the oldest that is known; None if there was never a graph."""
        row = self._session.row(_AT, (position,)) or self._session.row(_OLDEST)
        if row is None:
            return None
        following = self._session.row(_NEXT, (max(position, row[0]),))
        return Epoch(row[1], row[0], END if following is None else following[0])

    def versions(self) -> list[int]:
        """The versions that messages may still meet."""
        return [row[0] for row in self._session.rows(_VERSIONS)]

    def flowing(self) -> list[Flowing]:
        return [Flowing(*row) for row in self._session.rows(_FLOWING)]

    def open(self, queue: int, since: int) -> None:
        """From a number on the messages of a queue flow."""
        self._session.run(_OPEN, (queue, since))

    def close(self, queue: int, until: int) -> None:
        """Only those that have come before flow."""
        self._session.run(_CLOSE, (until, queue))

    def skip(self, queue: int, first: int, last: int) -> None:
        """What has come into a queue between two numbers, these included, stays there; what comes later flows again."""
        if any(flowing.queue == queue and flowing.until is None for flowing in self.flowing()):
            self.close(queue, first)
            self.open(queue, last)

    def drop(self, queue: int) -> None:
        """None of a queue's messages flow."""
        self._session.run(_DROP_ALL, (queue,))

    def first(self, flowing: Flowing) -> int | None:
        """Where the first message stands that has yet to flow."""
        row = self._session.row(_FIRST, (flowing.queue, flowing.since))
        return None if row is None or row[0] >= flowing.end else int(row[0])

    def first_of_all(self, flowing: Flowing) -> int | None:
        """The same, be it that it waits for its next attempt."""
        first = self._session.value(_FIRST_OF_ALL, (flowing.queue, flowing.since))
        return None if first is None or first >= flowing.end else int(first)

    def count(self, flowing: Flowing) -> int:
        """How many messages have yet to flow."""
        return self._session.number(_COUNT, (flowing.queue, flowing.since, flowing.end))

    def forget(self) -> None:
        """Drop what no message needs any more. All queues whose messages flow must be locked: nobody publishes now."""
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
