"""The interface to a database driver: constant statements, journal numbers, time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from postroom.model.moment import Clock
from postroom.store.kernel.statement import FOR_UPDATE, Statement

Row = tuple[Any, ...]
T = TypeVar("T")

_LOCK_COUNTER = "SELECT value FROM counters WHERE name = ?" + FOR_UPDATE
_SHARE_COUNTER = "SELECT value FROM counters WHERE name = ?" + Statement("", " FOR SHARE")


class About(NamedTuple):
    """Facts about a database."""

    kind: str
    version: str
    schema: int  # the number of the last migration
    settings: Mapping[str, str]  # those that decide whether a commit lasts


class Session(ABC):
    """One database connection inside one transaction.

    Statements are constants, written once for both databases or, where they differ, beside each other
    (``statement.py``).
    """

    compares_json_numbers: bool  # whether what ``->>`` takes out of a JSON text is a number if it was one
    numbers_without_gaps: bool  # whether each line of the journal has the number after that of the one before
    shares_queues: bool  # whether others may send to a queue, and receive from it, while a step is committed
    counts_arrivals: bool  # whether messages are numbered by counting; else each has the number of its line
    place: str  # where the database is, as anyone may see it
    now: int  # microseconds; fixed when the transaction began, so one commit has one time
    clock: Clock

    @abstractmethod
    def lock(self, statement: str, *values: Any) -> bool:
        """Lock a row that will be changed, before reading it; False if it does not exist.

        A statement that waits for a lock still sees the state from before, so read afterwards.
        """

    def lock_counter(self, name: str) -> None:
        """Lock a counter exclusively, to change what it counts."""
        self.lock(_LOCK_COUNTER, name)

    def share_counter(self, name: str) -> None:
        """Lock a counter shared, so that nobody changes what it counts."""
        self.lock(_SHARE_COUNTER, name)

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute; returns the number of changed rows."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]: ...

    @abstractmethod
    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None: ...

    def one(self, make: Callable[[Row], T], statement: str, values: Sequence[Any] = ()) -> T | None:
        """The row of a statement, converted by ``make``; None if there is none."""
        row = self.row(statement, values)
        return None if row is None else make(row)

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any | None:
        """The first column of a statement's row; None if there is none."""
        row = self.row(statement, values)
        return None if row is None else row[0]

    def number(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The number in a statement's row, which must exist."""
        return int(self.rows(statement, values)[0][0])

    def pages(self, statement: str, size: int, *values: Any, after: int = 0) -> Iterator[Row]:
        """All rows, page by page. The statement takes ``(…, after, limit)`` and is ordered by its first column."""
        while page := self.rows(statement, (*values, after, size)):
            yield from page
            after = page[-1][0]

    @abstractmethod
    def many(self, statement: str, values: Iterable[Sequence[Any]]) -> int:
        """Execute once per row of values; returns the total number of changed rows."""

    def column(self, texts: Sequence[str]) -> Any | None:
        """Texts as one parameter that a statement reads as a table; None if not possible."""
        return None

    @abstractmethod
    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        """The rows of one query for many values, in as few round trips as possible."""

    @abstractmethod
    def append(self, statement: str, values: Sequence[Any]) -> int:
        """Insert a journal row and return its number, which the database assigns."""

    def take_time(self) -> None:
        """Announce that this transaction may pause between statements, although others wait."""
        return

    @abstractmethod
    def about(self) -> About:
        """Facts for the diagnosis of the store."""

    @abstractmethod
    def damage(self) -> list[str]:
        """Damage in its files: all of them on SQLite, the index of messages on PostgreSQL."""

    @abstractmethod
    def rebuild_indexes(self) -> None:
        """Rebuild every index from its table."""

    @abstractmethod
    def journal_numbers(self, count: int) -> Sequence[int]:
        """The next ``count`` journal numbers: increasing, and in commit order within each queue."""


class StoreTable:
    """A group of tables, read and changed within a session's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
