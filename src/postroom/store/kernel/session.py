"""The seam between the tables and a database driver: run constant statements, number the journal, tell the time."""

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
    """What a database says of itself."""

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
    counts_arrivals: bool  # whether messages are numbered by counting; else each has the number of its line
    place: str  # where the database is, as anyone may see it
    now: int  # microseconds; fixed when the transaction began, so one commit has one time
    clock: Clock

    @abstractmethod
    def lock(self, statement: str, *values: Any) -> bool:
        """Take the lock of a row that the transaction will change, before it is read; False if there is none.

        A statement sees the world as it was when it began, also if it then waits for a lock: reading comes after.
        """

    def lock_counter(self, name: str) -> None:
        """Take the lock of a counter: whoever changes what it counts comes one after another."""
        self.lock(_LOCK_COUNTER, name)

    def share_counter(self, name: str) -> None:
        """The same for those who only want that nobody changes what it counts: they come beside each other."""
        self.lock(_SHARE_COUNTER, name)

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute; answer with the number of rows changed."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]: ...

    @abstractmethod
    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None: ...

    def one(self, make: Callable[[Row], T], statement: str, values: Sequence[Any] = ()) -> T | None:
        """What is made of the row that a statement answers with; None if there is no row."""
        row = self.row(statement, values)
        return None if row is None else make(row)

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any | None:
        """The first column of the row that a statement answers with; None if there is no row."""
        row = self.row(statement, values)
        return None if row is None else row[0]

    def number(self, statement: str, values: Sequence[Any] = ()) -> int:
        """The same of a statement that always answers with a number."""
        return int(self.rows(statement, values)[0][0])

    def pages(self, statement: str, size: int, *values: Any, after: int = 0) -> Iterator[Row]:
        """All rows, page by page. The statement takes ``(…, after, limit)`` and is ordered by its first column."""
        while page := self.rows(statement, (*values, after, size)):
            yield from page
            after = page[-1][0]

    @abstractmethod
    def many(self, statement: str, values: Iterable[Sequence[Any]]) -> int:
        """Execute once per row of values; answer with the number of rows changed by all of them."""

    def column(self, texts: Sequence[str]) -> Any | None:
        """Texts as one parameter that a statement reads as a table; None if it cannot be had for them."""
        return None

    @abstractmethod
    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        """The answers to one question asked with many values, in as few round trips as the driver can."""

    @abstractmethod
    def append(self, statement: str, values: Sequence[Any]) -> int:
        """Insert one journal row whose number the database chooses; answers with the number."""

    def take_time(self) -> None:
        """What follows in this transaction may think for long between two statements, though others wait for it."""
        return

    @abstractmethod
    def about(self) -> About:
        """For whoever examines the store."""

    @abstractmethod
    def damage(self) -> list[str]:
        """What is wrong with its files, by reading them: all on SQLite, the index of messages on PostgreSQL."""

    @abstractmethod
    def rebuild_indexes(self) -> None:
        """Make every index anew from its table."""

    @abstractmethod
    def journal_numbers(self, count: int) -> Sequence[int]:
        """The next ``count`` journal numbers: growing, and in commit order within each queue."""


class StoreTable:
    """A part of what is stored, read and changed inside of the transaction of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
