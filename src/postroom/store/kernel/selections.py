"""An index of waiting messages by properties that receivers select by.

The first selector on a property of a queue creates the entries; from then on triggers maintain them. The triggers are
created with the first entries of a room, because they slow down every send. An entry may be a prefix of a long text, so
candidates are checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from postroom.limits import PAGE_ROWS, SELECTIONS_MAX
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import StoreTable
from postroom.store.kernel.statement import NUMBERS, Statement
from postroom.store.migrations.m0020_selectors import ENTRIES, TRIGGERS

_NAMES = "SELECT name FROM selections WHERE queue = ?"
_HAS_TRIGGERS = Statement(
    "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = 'messages_select'",
    "SELECT 1 FROM pg_trigger WHERE tgrelid = 'messages'::regclass AND tgname = 'messages_select'",
)
_MAKE_TRIGGERS = tuple(
    Statement(trigger, "SELECT postroom_selects()" if number == 0 else "SELECT 1")
    for number, trigger in enumerate(TRIGGERS)
)
_ASK = "INSERT INTO selections (queue, name) VALUES (?, ?)"
_FILL = (
    "INSERT INTO selected (queue, name, word, number, rank, position, message) "
    + ENTRIES
    + " AND m.queue = ? AND s.name = ?"
)
_ANY = "SELECT 1 WHERE EXISTS (SELECT 1 FROM selections) OR EXISTS (SELECT 1 FROM selected)"
_C = Statement("", ' COLLATE "C"')
_THERE = (
    "SELECT queue, name" + _C + ", word" + _C
) + ", number, rank, position, message, count(*) FROM selected GROUP BY 1, 2, 3, 4, 5, 6, 7"
_MEANT = "SELECT e.*, 1 FROM (" + ENTRIES + ") e"
_LEFT_OVER = _THERE + " EXCEPT " + _MEANT + " ORDER BY 7, 2 LIMIT ?"
_MISSING = _MEANT + " EXCEPT " + _THERE + " ORDER BY 7, 2 LIMIT ?"
_EMPTY = "DELETE FROM selected"
_FILL_ALL = "INSERT INTO selected (queue, name, word, number, rank, position, message) " + ENTRIES
_BY_WORD, _BY_NUMBER, _BY_PLACE = (
    "FROM selected" + Statement(f" INDEXED BY selected_{name}", "") for name in ("words", "numbers", "places")
)
_OF = " WHERE queue = ? AND name = ? AND "
_WORDS = _BY_WORD + _OF + "word IS NOT NULL AND word >= ? AND word <= ? "
_NUMBERS = _BY_NUMBER + _OF + "number IS NOT NULL AND number >= ? AND number <= ? "
_PLACES = _BY_PLACE + _OF + "rank >= -10 "
_SAME_WORD = _BY_WORD + _OF + "word IS NOT NULL AND word = ? "
_SAME_NUMBER = _BY_NUMBER + _OF + "number IS NOT NULL AND number = ? "
_PICK = "SELECT rank, position, message "
_BEHIND = "AND (rank > ? OR (rank = ? AND position > ?)) ORDER BY rank, position LIMIT ?"
_KINDS = {
    "word": _WORDS,
    "number": _NUMBERS,
    "place": _PLACES,
    "same word": _SAME_WORD,
    "same number": _SAME_NUMBER,
}
_PAGES = {kind: _PICK + some + _BEHIND for kind, some in _KINDS.items()}
_COUNTS = {kind: "SELECT count(*) FROM (SELECT 1 " + some + "LIMIT ?) AS found" for kind, some in _KINDS.items()}
_PROPERTIES = "SELECT key, properties FROM messages WHERE key IN " + NUMBERS
_WORD_CHARS = 200  # of a text that an entry has


class Span(NamedTuple):
    """A range of values, both ends included; without ends, all values."""

    name: str
    low: str | float | None = None
    high: str | float | None = None

    @property
    def _kind(self) -> str:
        if self.low is None:
            return "place"
        kind = "word" if isinstance(self.low, str) else "number"
        return f"same {kind}" if self.low == self.high else kind

    @property
    def _values(self) -> tuple[str | float, ...]:
        ends = [end[:_WORD_CHARS] if isinstance(end, str) else end for end in (self.low, self.high) if end is not None]
        return (*ends[:1],) if self._kind.startswith("same") else tuple(ends)


class Entry(NamedTuple):
    """A message under a property, and how many entries it has."""

    queue: int
    name: str
    word: str | None
    number: float | None
    rank: int
    position: int
    message: int
    times: int


class Candidate(NamedTuple):
    """A possible match and its position; messages with a priority have a lower rank."""

    rank: int
    position: int
    message: int


class Selections(StoreTable):
    def names(self, queue: Queue) -> set[str]:
        """The indexed properties of a queue."""
        return {row[0] for row in self._session.rows(_NAMES, (queue.id,))}

    def ask(self, queue: Queue, names: Iterable[str]) -> set[str]:
        """Index some properties; returns all indexed ones. The queue must be locked."""
        known = self.names(queue)
        if set(names) - known and self._session.row(_HAS_TRIGGERS) is None:
            for trigger in _MAKE_TRIGGERS:
                self._session.run(trigger)
        for name in sorted(set(names) - known):
            if len(known) >= SELECTIONS_MAX:
                break
            self._session.run(_ASK, (queue.id, name))
            self._session.run(_FILL, (queue.id, name))
            known.add(name)
        return known

    def count(self, queue: Queue, span: Span, most: int) -> int:
        """How many messages have a value in a range, counted up to ``most``."""
        return self._session.number(_COUNTS[span._kind], (queue.id, span.name, *span._values, most))

    def candidates(self, queue: Queue, span: Span, size: int = PAGE_ROWS) -> Iterator[Candidate]:
        """The candidates in delivery order, read page by page."""
        rank, position = -10, 0
        while True:
            values = (queue.id, span.name, *span._values, rank, rank, position, size)
            page = [Candidate(*row) for row in self._session.rows(_PAGES[span._kind], values)]
            yield from page
            if len(page) < size:
                return
            rank, position, _ = page[-1]

    def differences(self, limit: int) -> tuple[list[Entry], list[Entry]]:
        """Missing and superfluous entries, up to ``limit`` of each."""
        if self._session.row(_ANY) is None:
            return [], []
        missing, left_over = (self._session.rows(statement, (limit,)) for statement in (_MISSING, _LEFT_OVER))
        return [Entry(*row) for row in missing], [Entry(*row) for row in left_over]

    def rebuild(self) -> None:
        """Rebuild all entries from the waiting messages. All queues must be locked."""
        self._session.run(_EMPTY)
        self._session.run(_FILL_ALL)

    def properties(self, messages: Sequence[int]) -> list[tuple[int, str]]:
        """The stored properties of existing messages."""
        rows = self._session.rows(_PROPERTIES, (json.dumps(list(messages)),)) if messages else []
        return [(row[0], row[1]) for row in rows]
