"""The index of messages of stations and mailboxes by field values.

Every message has an entry for its type, by key, and for each indexed field. A search scans one index, station by
station, and the database tests other fields during the scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from postroom.limits import SEARCH_ROWS
from postroom.model.message import Stored
from postroom.store.kernel.message_rows import columns, record
from postroom.store.kernel.session import StoreTable
from postroom.store.kernel.statement import Statement

_OF_TYPE = "SELECT id, type, field, kind, ready FROM filings WHERE type = ? ORDER BY id"
_ALL = "SELECT id, type, field, kind, ready FROM filings ORDER BY id"
_DECLARE = "INSERT INTO filings (type, field, kind, ready) VALUES (?, ?, ?, ?) RETURNING id"
_READY = "UPDATE filings SET ready = 1 WHERE id = ?"
_REMOVE = "DELETE FROM filings WHERE id = ?"
_EMPTY = "DELETE FROM filed WHERE filing = ?"
_FILE = "INSERT INTO filed (queue, filing, value, message) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_UNFILE = "DELETE FROM filed WHERE queue = ? AND filing = ? AND value = ? AND message = ?"

_FOUND = f"""
SELECT {columns(queue="CAST(? AS TEXT)")}, f.value
FROM filed f JOIN messages m ON m.key = f.message
WHERE f.queue = ? AND f.filing = ? AND (f.value, f.message) > (?, ?) AND f.value <= ?
    AND m.queue = f.queue AND m.state = 1 AND m.position <= ?"""
_ORDER = " ORDER BY f.value, f.message LIMIT ?"
# The tests of other fields. An empty field passes none, and a body that was damaged all: it is to be told of.
_TEXT = Statement(
    "CASE WHEN json_valid(m.body) THEN m.body ->> ? BETWEEN ? AND ? ELSE 1 = 1 END",
    'm.body::jsonb ->> ? COLLATE "C" BETWEEN ? AND ?',
)
_NUMBER = "CASE WHEN json_valid(m.body) THEN m.body ->> ? BETWEEN ? AND ? ELSE 1 = 1 END"  # where numbers compare


class IndexedField(NamedTuple):
    """An index on a field of a type; without a field, on the type."""

    id: int
    type: str
    field: str
    kind: str
    ready: int  # all messages are in it; before that, new ones are put there and nobody looks


class Entry(NamedTuple):
    index_id: int
    value: str


class Test(NamedTuple):
    """A field of the body is within bounds (inclusive): numbers, or texts by bytes."""

    field: str
    low: str | float
    high: str | float

    @property
    def numeric(self) -> bool:
        return not isinstance(self.low, str)


#: Every one of these must hold, each by any of its tests.
Tests = Sequence[Sequence[Test]]


class Span(NamedTuple):
    """A range of an index."""

    index_id: int
    low: str
    high: str


class FieldIndex(StoreTable):
    # --- what there is ---

    def of_type(self, type: str) -> list[IndexedField]:
        return [IndexedField(*row) for row in self._session.rows(_OF_TYPE, (type,))]

    def all(self) -> list[IndexedField]:
        return [IndexedField(*row) for row in self._session.rows(_ALL)]

    def declare(self, type: str, field: str, kind: str, *, ready: bool) -> IndexedField:
        id = self._session.number(_DECLARE, (type, field, kind, int(ready)))
        return IndexedField(id, type, field, kind, int(ready))

    def set_ready(self, indexed_field: IndexedField) -> None:
        self._session.run(_READY, (indexed_field.id,))

    def remove(self, indexed_field: IndexedField) -> None:
        self._session.run(_EMPTY, (indexed_field.id,))
        self._session.run(_REMOVE, (indexed_field.id,))

    # --- messages ---

    def add(self, queue: int, entries: Iterable[tuple[int, Entry]]) -> None:
        """Index messages of a queue, by key number."""
        self._session.many(_FILE, [(queue, entry.index_id, entry.value, key) for key, entry in entries])

    def remove_entries(self, queue: int, entries: Iterable[tuple[int, Entry]]) -> None:
        self._session.many(_UNFILE, [(queue, entry.index_id, entry.value, key) for key, entry in entries])

    def search(
        self, queue: tuple[int, str], span: Span, until: int, tests: Tests = (), limit: int | None = None
    ) -> Iterator[list[Stored]]:
        """The messages of a queue in a range, up to a journal number, page by page.

        The queue is given by number and name. Tests exclude only messages that certainly do not match.
        """
        usable = self._usable(tests)
        statement = _statement(tuple(tuple(test.numeric for test in some) for some in usable))
        values = [value for some in usable for test in some for value in test]
        (id, name), after, last = queue, span.low, -1
        while True:
            size = SEARCH_ROWS if limit is None else min(limit, SEARCH_ROWS)
            rows = self._session.rows(
                statement, (name, id, span.index_id, after, last, span.high, until, *values, size)
            )
            if rows:
                page = [record(row[:-1]) for row in rows]
                yield page
                after, last = rows[-1][-1], page[-1].key
            if limit is not None:
                limit -= len(rows)
            if len(rows) < size or limit == 0:
                return

    def _usable(self, tests: Tests) -> list[Sequence[Test]]:
        if self._session.compares_json_numbers:
            return list(tests)
        return [some for some in tests if not any(test.numeric for test in some)]


@cache
def _statement(shape: tuple[tuple[bool, ...], ...]) -> str:
    """The search statement for tests of this shape: constant text with parameters."""
    statement = _FOUND
    for tests in shape:
        for place, numeric in enumerate(tests):
            statement += (" OR " if place else " AND (") + (_NUMBER if numeric else _TEXT)
        statement += ")"
    return statement + _ORDER


def key_value(key: int) -> str:
    """The index value of a message under its type: its key, padded."""
    return f"{key:017d}"
