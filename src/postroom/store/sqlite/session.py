"""SQLite within one transaction."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, repeat
from operator import contains
from typing import Any

import apsw

from postroom.model.moment import Clock
from postroom.store.kernel.session import About, Row, Session
from postroom.store.kernel.statement import Statement
from postroom.store.proof.schema import misdescribed
from postroom.store.sqlite.connection import LAST_NUMBER, version

#: So many rows go into one statement: each lets go of Python's lock, and then has to wait for it.
ROWS_AT_ONCE = 64
_PLAIN_INSERT = re.compile(r"\s*(INSERT INTO \w+ \([\w, ]+\)\s*VALUES )(\([?, ]+\))\s*$")


class SqliteSession(Session):
    compares_json_numbers = True
    numbers_without_gaps = True
    counts_arrivals = True
    shares_queues = False

    def __init__(self, connection: apsw.Connection, clock: Clock, place: str) -> None:
        self.connection = connection
        self.place = place
        self.execute = connection.cursor().execute  # one cursor for all: every answer is read to its end at once
        self.clock = clock
        self.now = 0

    def lock(self, statement: str, *values: Any) -> bool:
        return True  # BEGIN IMMEDIATE has locked everything

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        self.execute(statement, values)
        return self.connection.changes()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        try:
            return self.execute(statement, values).fetchall()
        except UnicodeDecodeError:
            return self._readable(statement, values)

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def _readable(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Rows with invalid UTF-8, decoded with replacement characters.

        SQLite does not validate text; such a message fails its hash.
        """
        names: list[str] = []

        def look(cursor: apsw.Cursor, *_: Any) -> bool:
            names.extend(f"c{number}" for number in range(len(cursor.get_description())))
            return False  # it is not run

        looking = self.connection.cursor()
        looking.exec_trace = look
        with contextlib.suppress(apsw.ExecTraceAbort):
            looking.execute(statement, values)
        rows: list[Any] = self.execute(_as_bytes(names, statement), values).fetchall()
        return [tuple(map(_text, row[::2], row[1::2])) for row in rows]

    def many(self, statement: str, values: Iterable[Sequence[Any]]) -> int:
        before, rows = self.connection.total_changes(), values if isinstance(values, list) else list(values)
        several = with_rows(statement, ROWS_AT_ONCE) if len(rows) >= ROWS_AT_ONCE else None
        done = 0
        while several is not None and len(rows) - done >= ROWS_AT_ONCE:
            self.execute(several, tuple(chain.from_iterable(rows[done : done + ROWS_AT_ONCE])))
            done += ROWS_AT_ONCE
        self.connection.executemany(statement, rows[done:] if done else rows)
        return self.connection.total_changes() - before

    def column(self, texts: Sequence[str]) -> Any | None:
        if not texts or any(map(contains, texts, repeat("\0"))):  # there a text would end
            return None
        return apsw.carray(tuple(texts))

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        return [self.rows(statement, row) for row in values]

    def append(self, statement: str, values: Sequence[Any]) -> int:
        # An INTEGER PRIMARY KEY that is not given is the highest one plus one.
        self.execute(statement, values)
        return self.connection.last_insert_rowid()

    def about(self) -> About:
        settings = {"journal_mode": self.rows("PRAGMA journal_mode"), "synchronous": self.rows("PRAGMA synchronous")}
        words = {name: str(rows[0][0]) for name, rows in settings.items()}
        return About("SQLite", apsw.sqlite_lib_version(), version(self.connection), words)

    def damage(self) -> list[str]:
        damage = [row[0] for row in self.rows("PRAGMA integrity_check(10)") if row[0] != "ok"]
        return [*damage, *misdescribed(self.connection)]

    def rebuild_indexes(self) -> None:
        self.execute("REINDEX")

    def journal_numbers(self, count: int) -> Sequence[int]:
        # There is one writer at a time, so the numbers after the highest are ours.
        (last,) = self.rows(LAST_NUMBER)[0]
        first = last + 1
        return range(first, first + count)


@cache
def with_rows(statement: str, rows: int) -> str | None:
    """A statement for one row as one for several; None if there is no such form."""
    if isinstance(statement, Statement) and statement.several is not None:
        words, group = statement.several
        return words.format(rows=", ".join([group] * rows))
    plain = _PLAIN_INSERT.match(statement)
    return None if plain is None else plain.group(1) + ", ".join([plain.group(2)] * rows)


def _as_bytes(names: list[str], statement: str) -> str:
    """A statement whose texts are returned as bytes, each after its type name."""
    columns = ", ".join(
        f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in names
    )
    return f"WITH r ({', '.join(names)}) AS ({statement}) SELECT {columns} FROM r"


def _text(type: str, value: Any) -> Any:
    return value.decode(errors="surrogateescape") if type == "text" else value
