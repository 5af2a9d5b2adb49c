"""The state of arcs that aggregate or join events: rows by group and place, each with a due time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

_GROUP = "SELECT arc, grp, place, due, value FROM arc_states WHERE arc = ? AND grp = ?"
_SOME = "SELECT arc, grp, place, due, value FROM arc_states WHERE arc = ? LIMIT ?"
_DUE = "SELECT arc, grp, place, due, value FROM arc_states WHERE arc = ? AND due > ? AND due <= ?"
_NEXT = "SELECT due FROM arc_states WHERE arc = ? AND due > ? ORDER BY due LIMIT 1"
_PUT = """
INSERT INTO arc_states (arc, grp, place, due, value) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (arc, grp, place) DO UPDATE SET due = excluded.due, value = excluded.value
"""
_REMOVE = "DELETE FROM arc_states WHERE arc = ? AND grp = ? AND place = ?"
_ARCS = "SELECT DISTINCT arc FROM arc_states ORDER BY arc"
_COUNT = "SELECT count(*) FROM arc_states WHERE arc = ?"
_FORGET = "DELETE FROM arc_states WHERE arc = ?"


class ArcState(NamedTuple):
    """A part of an arc's state."""

    arc: str
    group: str
    place: int
    due: int  # microseconds of the events' own time
    value: str


class ArcStates(StoreTable):
    def group(self, arc: str, group: str) -> list[ArcState]:
        return [ArcState(*row) for row in self._session.rows(_GROUP, (arc, group))]

    def whole(self, arc: str, most: int) -> list[ArcState] | None:
        """All rows of an arc; None if there are more than ``most``."""
        rows = [ArcState(*row) for row in self._session.rows(_SOME, (arc, most + 1))]
        return rows if len(rows) <= most else None

    def due(self, arc: str, after: int, until: int) -> list[ArcState]:
        """The rows that are due after one moment, up to another."""
        return [ArcState(*row) for row in self._session.rows(_DUE, (arc, after, until))]

    def next_due(self, arc: str, after: int) -> int | None:
        return self._session.value(_NEXT, (arc, after))

    def write(self, put: Iterable[ArcState], removed: Iterable[tuple[str, str, int]]) -> None:
        self._session.many(_REMOVE, removed)
        self._session.many(_PUT, put)

    def arcs(self) -> list[str]:
        """The arcs that have a state."""
        return [row[0] for row in self._session.rows(_ARCS)]

    def count(self, arc: str) -> int:
        return self._session.number(_COUNT, (arc,))

    def forget(self, arc: str) -> None:
        self._session.run(_FORGET, (arc,))
