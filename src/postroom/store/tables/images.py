"""Temporary tables of stations. Their images are visible to their station only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from postroom.limits import SEARCH_ROWS
from postroom.store.kernel.session import StoreTable

_ALL = """
SELECT a.name, a.type, a.form, a.query, a.at, (
    SELECT count(*) FROM images i WHERE i.station = a.station AND i.name = a.name
) FROM albums a WHERE a.station = ? ORDER BY a.name
"""
_BEGIN = "INSERT INTO albums (station, name, type, form, query, at) VALUES (?, ?, ?, ?, ?, ?)"
_KEEP = "INSERT INTO images (station, name, key, place, form, body) VALUES (?, ?, ?, ?, ?, ?)"
_DROP = "DELETE FROM albums WHERE station = ? AND name = ?"
_DROP_IMAGES = "DELETE FROM images WHERE station = ? AND name = ?"
_FORGET = "DELETE FROM albums WHERE station = ?"
_FORGET_IMAGES = "DELETE FROM images WHERE station = ?"
_PAGE = """
SELECT key, place, form, body FROM images WHERE station = ? AND name = ? AND key > ? ORDER BY key LIMIT ?
"""


class ImageTable(NamedTuple):
    """A temporary table: the saved result of a query."""

    name: str
    type: str
    form: int  # the version of the type by which it was asked for
    query: int  # its number; 0 for a local one
    at: int
    images: int

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "image_count": self.images, "seq": self.query or None}


class KeptImage(NamedTuple):
    """An image: key, place, type, version, content."""

    key: int
    place: str
    type: str
    form: int
    body: str


class ImageTables(StoreTable):
    def all(self, station: int) -> list[ImageTable]:
        return [ImageTable(*row) for row in self._session.rows(_ALL, (station,))]

    def keep(self, station: int, name: str, type: str, form: int, query: int, images: Iterable[KeptImage]) -> None:
        """Start a table, replacing one of its name."""
        self.drop(station, name)
        self._session.run(_BEGIN, (station, name, type, form, query, self._session.now))
        rows = [(station, name, image.key, image.place, image.form, image.body) for image in images]
        self._session.many(_KEEP, rows)

    def drop(self, station: int, name: str) -> bool:
        self._session.run(_DROP_IMAGES, (station, name))
        return self._session.run(_DROP, (station, name)) == 1

    def forget(self, station: int) -> None:
        """Delete all tables of a removed station."""
        self._session.run(_FORGET_IMAGES, (station,))
        self._session.run(_FORGET, (station,))

    def images(self, station: int, type: str, name: str) -> Iterator[KeptImage]:
        rows = self._session.pages(_PAGE, SEARCH_ROWS, station, name, after=-1)
        return (KeptImage(key, place, type, form, body) for key, place, form, body in rows)
