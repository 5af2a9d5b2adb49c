"""Dossiers: named collections of a station's messages. A message that leaves the station leaves them."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.queues import Queue

_ADD = "INSERT INTO dossiers (station, name, message, seq) VALUES (?, ?, ?, ?)"
_PUT = "INSERT INTO dossiers (station, name, message, seq) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_HAS = "SELECT 1 FROM dossiers WHERE station = ? AND name = ? AND message = ?"
_REMOVE = "DELETE FROM dossiers WHERE station = ? AND name = ? AND message = ?"
_LEAVE = "DELETE FROM dossiers WHERE message = ?"
_COUNTS = "SELECT name, count(*) FROM dossiers WHERE station = ? GROUP BY name ORDER BY name"
_NAMED = "SELECT station, message FROM dossiers WHERE name = ? ORDER BY seq"
_WITH = "SELECT name FROM dossiers WHERE message = ? ORDER BY name"
_OF = "SELECT message FROM dossiers WHERE station = ? AND name = ? ORDER BY seq"


class Dossiers(JournaledTable):
    def add(self, station: Queue, name: str, message: int) -> bool:
        """Add a message; False if it is in the dossier already."""
        if self._session.row(_HAS, (station.id, name, message)) is not None:
            return False
        self._journal.add_to(message, "dossier", station.id, {"dossier": name})
        self._session.run(_ADD, (station.id, name, message, self._journal.newest()))
        return True

    def remove(self, station: Queue, name: str, message: int) -> bool:
        if self._session.run(_REMOVE, (station.id, name, message)) == 0:
            return False
        self._journal.add_to(message, "remove-dossier", station.id, {"dossier": name})
        return True

    def put(self, rows: Sequence[tuple[Queue, str, int, int]]) -> None:
        """Add messages by station, dossier, key and event."""
        self._session.many(_PUT, [(station.id, name, message, seq) for station, name, message, seq in rows])

    def leave(self, message: int) -> None:
        self._session.run(_LEAVE, (message,))

    def leave_many(self, messages: Sequence[int]) -> None:
        self._session.many(_LEAVE, [(message,) for message in messages])

    def counts(self, station: Queue) -> dict[str, int]:
        """The dossiers of a station, with the number of messages in each."""
        return {row[0]: row[1] for row in self._session.rows(_COUNTS, (station.id,))}

    def of_message(self, message: int) -> list[str]:
        """The dossiers that a message is in."""
        return [str(name) for (name,) in self._session.rows(_WITH, (message,))]

    def messages(self, station: Queue, name: str) -> list[int]:
        """The keys of a dossier, in the order in which they were added."""
        return [row[0] for row in self._session.rows(_OF, (station.id, name))]

    def named(self, name: str) -> list[tuple[int, int]]:
        """Station number and key of all messages in dossiers with a name, of all stations of this store."""
        return [(row[0], row[1]) for row in self._session.rows(_NAMED, (name,))]
