"""A room on PostgreSQL as a SQLite file, table by table, and back: both have the same tables and columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import psycopg
from psycopg import sql

from postroom import faults
from postroom.errors import StoreCorrupt
from postroom.limits import BACKUP_ROWS
from postroom.model.progress import OnProgress
from postroom.store.kernel.session import Row
from postroom.store.sqlite.store import SqliteStore

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_COLUMNS = "SELECT name, type FROM pragma_table_info(?) ORDER BY cid"
_COUNTED = "SELECT name, seq FROM sqlite_sequence"
_COUNT_ON = "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)"
_FORGET_COUNTS = "DELETE FROM sqlite_sequence"
_NUMBERED = "SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE name = ?"
_LAST_ID = "SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, 'id')::regclass)"
_SET_ID = "SELECT setval(pg_get_serial_sequence(%s, 'id')::regclass, %s)"
_SET_NUMBER = "SELECT setval('journal_numbers', greatest((SELECT max(seq) FROM journal), 1))"
# PostgreSQL skips numbers of the journal; SQLite, which does not, has to know up to where.
_NOTE_GAPS = """
INSERT INTO counters (name, value) SELECT 'gaps', coalesce(max(seq), 0) FROM journal WHERE true
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_PG_TYPES = {"INTEGER": "int8", "TEXT": "text", "BLOB": "bytea"}
# Messages of SQLite are numbered by counting; what PostgreSQL knows of it beside them is made anew.
_HAS_TALLIES = "SELECT to_regclass('tallies') IS NOT NULL"
_FORGET_TALLIES = "DELETE FROM tallies"
_TALLY = """
SELECT postroom_set_tally(q.id, greatest(q.arrived, coalesce((
    SELECT m.number FROM messages m WHERE m.queue = q.id AND m.state = 1 ORDER BY m.position DESC LIMIT 1
), 0)), q.departed, q.processed) FROM queues q
"""
_CHANGED = "SELECT nextval(to_regclass('queue_changes'))"  # an earlier schema has none, and draws none
_RESTORING = "SET LOCAL postroom.restoring = 'on'"  # nobody is beside it: its triggers need no locks of queues
#: Answers of executors, whom nobody knows in the copy; and what is made again when it is asked for.
_PASSING = ("staged", "selected", "selections")
_HAS_SELECTIONS = "SELECT to_regclass('selections') IS NOT NULL"
_FORGET_SELECTIONS = "TRUNCATE selected, selections"


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    numbered: bool  # whether its rows get their numbers from a counter

    @property
    def names(self) -> sql.Composed:
        return sql.SQL(", ").join(map(sql.Identifier, self.columns))

    def insert(self) -> str:
        marks = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks})"

    def select(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def delete(self) -> str:
        return f"DELETE FROM {self.name}"

    def counted(self) -> str:
        return f"SELECT count(*) FROM {self.name}"


_NUMBERED_AT = {"messages": 4, "handouts": 3}  # the column with the number of an arrival; the first is the message


class Counted(NamedTuple):
    """Counts that SQLite stores and PostgreSQL does not."""

    numbers: Mapping[int, int]  # of messages
    queues: Mapping[int, Row]  # arrivals, departed, processed

    def row(self, table: str, row: Row) -> Row:
        """A row of a table in SQLite's form."""
        if table == "queues":
            return (*row[:9], *self.queues[row[0]], *row[12:])
        at = _NUMBERED_AT.get(table)
        number = None if at is None else self.numbers.get(row[0])
        return row if at is None or number is None else (*row[:at], number, *row[at + 1 :])


def write(connection: psycopg.Connection[Row], counted: Counted, file: Path, progress: OnProgress) -> None:
    """Write all rows that a connection sees to a new room in a file."""
    SqliteStore(file, actor="backup").close()  # the tables
    with closing(apsw.Connection(os.fspath(file))) as room:
        tables = _tables(room)
        total = sum(_counted(connection, table) for table in tables)
        done = 0
        room.execute("BEGIN IMMEDIATE")
        for table in tables:
            room.execute(table.delete())
            for rows in _pages(counted.row(table.name, row) for row in _copied(connection, table)):
                room.executemany(table.insert(), rows)
                done += len(rows)
                progress(done, total)
        room.execute(_NOTE_GAPS)
        room.execute(_FORGET_COUNTS)
        for table in tables:
            last = _last_id(connection, table)
            if last is not None:
                room.execute(_COUNT_ON, (table.name, last))
        room.execute("COMMIT")


def read(connection: psycopg.Connection[Row], file: Path, progress: OnProgress) -> None:
    """Replace the content of a connection's room by the rows in a file."""
    with closing(apsw.Connection(os.fspath(file))) as room:
        tables = _tables(room)
        total = sum(room.execute(table.counted()).get for table in tables)
        done = 0
        everything = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
        connection.execute(sql.SQL("TRUNCATE {}").format(everything))
        connection.execute(_RESTORING)
        if connection.execute(_HAS_SELECTIONS).fetchone() == (True,):  # an earlier schema has none
            connection.execute(_FORGET_SELECTIONS)
        for table in tables:
            into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), table.names)
            with connection.cursor().copy(into) as copy:
                for rows in _pages(iter(room.execute(table.select()))):
                    for row in rows:
                        copy.write_row(row)
                    done += len(rows)
                    progress(done, total)
        for name, last in room.execute(_COUNTED):
            connection.execute(_SET_ID, (name, last)) if last else None
        connection.execute(_SET_NUMBER)
        if connection.execute(_HAS_TALLIES).fetchone() == (True,):  # an earlier schema has none
            connection.execute(_FORGET_TALLIES)
            connection.execute(_TALLY)
        connection.execute(_CHANGED)
    faults.reach("restore.committing")


def _tables(room: apsw.Connection) -> list[Table]:
    tables = []
    for (name,) in room.execute(_TABLES).fetchall():
        if name not in _PASSING:
            columns = [(str(column), str(type)) for column, type in room.execute(_COLUMNS, (name,))]
            types = tuple(_PG_TYPES[type] for _, type in columns)
            numbered = bool(room.execute(_NUMBERED, (name,)).get)
            tables.append(Table(str(name), tuple(column for column, _ in columns), types, numbered))
    return tables


def _counted(connection: psycopg.Connection[Row], table: Table) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))).fetchone()
    return 0 if row is None else int(row[0])


def _copied(connection: psycopg.Connection[Row], table: Table) -> Iterator[Row]:
    out = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table.name), table.names)
    with connection.cursor().copy(out) as copy:
        copy.set_types(table.types)
        yield from copy.rows()


def _pages(rows: Iterator[Any]) -> Iterator[list[Row]]:
    while page := list(islice(rows, BACKUP_ROWS)):
        yield page


def _last_id(connection: psycopg.Connection[Row], table: Table) -> int | None:
    """The highest id ever assigned, even if its row is gone."""
    if not table.numbered:
        return None
    row = connection.execute(_LAST_ID, (table.name,)).fetchone()
    if row is None:
        raise StoreCorrupt(why=f"{table.name} has no counter")
    return None if row[0] is None else int(row[0])
