"""The archived part of the journal: folders, their totals, and reading them as one journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.errors import StoreCorrupt
from postroom.store.kernel.columns import DEPARTED
from postroom.store.kernel.message_rows import MessageRows
from postroom.store.kernel.session import Row, StoreTable

if TYPE_CHECKING:
    from postroom.store.kernel.archive_folder import ArchiveFolder, Manifest

_ALL = "SELECT id, folder, first, last, until, lines, departed, digest FROM archives ORDER BY id"
_END = "SELECT coalesce(max(last), 0) FROM archives"
_STATE = "SELECT state FROM archives ORDER BY id DESC LIMIT 1"
_ADD = """
INSERT INTO archives (folder, first, last, until, lines, departed, digest, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_FORGET_STATES = "UPDATE archives SET state = NULL WHERE state IS NOT NULL"
_MOVED = "UPDATE archives SET folder = ? WHERE id = ?"
_REMOVE_LINES = "DELETE FROM journal WHERE seq <= ?"
_FIRST_SINCE = "SELECT seq FROM journal WHERE at >= ? ORDER BY seq LIMIT 1"
_FIRST = "SELECT min(seq) FROM journal"
_NEWEST = "SELECT max(seq) FROM journal"
_TIME = "SELECT max(at) FROM journal WHERE seq <= ?"
_COUNT = "SELECT count(*) FROM journal WHERE seq <= ?"
_DEPARTED = "SELECT " + ", ".join(DEPARTED) + " FROM departed WHERE key > ? ORDER BY key LIMIT ?"
# A sphere that has not ended looks at where its messages came from.
_UNSETTLED = """
SELECT s.id, s.started FROM spheres s JOIN messages m ON m.key = s.token JOIN queues q ON q.id = m.queue
WHERE q.name NOT IN ('COMMITTED', 'ABORTED') ORDER BY s.started LIMIT 1
"""


class Archive(NamedTuple):
    """A folder with entries of the journal."""

    id: int
    folder: str
    first: int
    last: int
    until: int  # the time of its newest line
    lines: int
    departed: int
    digest: str

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "id"}

    def shelf(self) -> ArchiveFolder:
        """Its files, for reading."""
        from postroom.store.kernel.archive_folder import ArchiveFolder

        return ArchiveFolder(self.folder, self.digest)


class Archives(StoreTable):
    # --- which there are ---

    def all(self) -> list[Archive]:
        """All archives, oldest first."""
        return [Archive(*row) for row in self._session.rows(_ALL)]

    def end(self) -> int:
        """The number of the newest archived line; 0 if there is none."""
        return self._session.number(_END)

    def state(self) -> bytes | None:
        """The totals of the archived lines."""
        row = self._session.row(_STATE)
        if row is None:
            return None
        if row[0] is None:
            raise StoreCorrupt(why="the newest archive has no state at its end")
        return bytes(row[0])

    # --- reading ---

    def lines_of(self, message: int) -> list[Row]:
        """The archived history of a message, oldest first."""
        return [row for archive in self.all() for row in archive.shelf().lines_of(message)]

    def departed(self, message: int) -> Row | None:
        """Last line, cause and type of a deleted message."""
        for archive in reversed(self.all()):
            departed = archive.shelf().departed(message)
            if departed is not None:
                return departed
        return None

    def departed_among(self, messages: set[int]) -> dict[int, Row]:
        """Like ``departed``, for many messages."""
        rows: dict[int, Row] = {}
        for archive in self.all():  # what a later one says is newer
            rows |= archive.shelf().departed_among(messages)
        return rows

    def effects(self, cause: int) -> list[int]:
        return [key for archive in self.all() for key in archive.shelf().effects(cause)]

    def has_arrivals(self, queue: int, after: int) -> bool:
        """Whether a message arrived in a queue after a journal number."""
        return any(archive.last > after and archive.shelf().has_arrivals(queue, after) for archive in self.all())

    def time_of(self, seq: int) -> int | None:
        """The latest possible time of an archived line."""
        return next((archive.until for archive in self.all() if seq <= archive.last), None)

    # --- archiving ---

    def cut(self, before: int) -> int | None:
        """The last number before a moment; None if there are no older lines."""
        first = self._session.value(_FIRST_SINCE, (before,))
        last = self._session.value(_NEWEST) if first is None else first - 1
        return last if last is not None and self.count(last) else None

    def first(self) -> int:
        return self._session.value(_FIRST) or 0

    def count(self, last: int) -> int:
        return self._session.number(_COUNT, (last,))

    def time_at(self, last: int) -> int:
        return self._session.value(_TIME, (last,)) or 0

    def unsettled(self) -> tuple[str, int] | None:
        """The oldest sphere that has not ended, and its start."""
        return self._session.one(lambda row: (row[0], row[1]), _UNSETTLED)

    def departed_rows(self, limit: int) -> Iterator[Row]:
        return self._session.pages(_DEPARTED, limit)

    def record(self, folder: str, manifest: Manifest, state: bytes, gone: list[int]) -> bool:
        """Record an archive and remove its lines; False if the journal has other lines than were archived."""
        if self._session.run(_REMOVE_LINES, (manifest.last,)) != manifest.lines:
            return False
        if MessageRows(self._session).forget_departed(gone) != len(gone):
            return False
        self._session.run(_FORGET_STATES)
        about = (manifest.first, manifest.last, manifest.until, manifest.lines, manifest.departed, manifest.digest)
        self._session.run(_ADD, (folder, *about, state))
        return True

    def moved(self, archive: Archive, folder: str) -> None:
        self._session.run(_MOVED, (folder, archive.id))
