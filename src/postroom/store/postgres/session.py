"""A connection to PostgreSQL inside of one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from postroom.model.moment import Clock
from postroom.store.kernel.session import About, Row, Session
from postroom.store.kernel.statement import Statement, postgres_words

_SCHEMA_VERSION = "SELECT coalesce(max(version), 0) FROM postroom_schema"
_LASTING = """
SELECT name, setting FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit')
"""
#: A process that stands still in a transaction is cut off before those who wait for its locks give up.
IDLE: LiteralString = "idle_in_transaction_session_timeout"
READING: LiteralString = f"SET LOCAL {IDLE} = '60s'"  # nobody waits for one who only reads
_MANY_NUMBERS = "SELECT postroom_draw(%s)"

# The index over messages by queue, state and place: what it leads to, and what there is.
_INVALID = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid IN ('messages'::regclass, 'journal'::regclass, 'queues'::regclass)
    AND NOT (i.indisvalid AND i.indisready AND i.indislive)
"""
_BY_ROWS_ALONE = """
SELECT set_config(name, 'off', true) FROM unnest(ARRAY['enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan'])
AS s (name)
"""
_BY_INDEX_ALONE = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
    set_config('enable_indexonlyscan', 'on', true)
"""
_AS_EVER = "SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT"
_GROUPS = "SELECT queue, state, count(*), sum(position)::bigint FROM messages GROUP BY queue, state"
_QUEUE_IDS = "SELECT id FROM queues"
_GROUP = "SELECT count(*), coalesce(sum(position), 0)::bigint FROM messages WHERE queue = %s AND state = %s"
_REBUILD = "REINDEX TABLE messages"

_BULK_ROWS = 8  # from so many rows on, one statement for all is quicker than one for each
#: Such a statement over many rows is a COPY, which takes a tenth of the time.
_PLAIN_INSERT = re.compile(r"\s*INSERT INTO (\w+)\s*\(([\w, ]+)\)\s*VALUES \(\?(?:, \?)*\)\s*$")


def _copy(into: re.Match[str]) -> sql.Composed:
    table, columns = into.groups()
    names = sql.SQL(", ").join(sql.Identifier(name.strip()) for name in columns.split(","))
    return sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)


def _adapt(statement: str) -> sql.SQL:
    """A constant statement in the driver's syntax."""
    return _with_marks(postgres_words(statement))


@cache
def _with_marks(words: str) -> sql.SQL:
    return sql.SQL(words.replace("?", "%s"))


def _misled(queue: int, state: int, count: int, places: int, indexed: int, indexed_places: int) -> str:
    """How the index of messages differs from the table, for a queue and state."""
    what = f"of {count} message(s) of queue {queue} in state {state}, index messages_chain leads to {indexed}"
    return what if count != indexed else f"{what}, at other places ({indexed_places}, not {places}, in sum)"


class PostgresSession(Session):
    compares_json_numbers = False
    numbers_without_gaps = False
    counts_arrivals = False
    shares_queues = True

    def __init__(self, connection: psycopg.Connection[Row], clock: Clock, place: str) -> None:
        self.connection = connection
        self.place = place
        self.clock = clock
        self.now = 0

    def lock(self, statement: str, *values: Any) -> bool:
        return self.connection.execute(_adapt(statement), values).fetchone() is not None

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.connection.execute(_adapt(statement), values).rowcount

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.connection.execute(_adapt(statement), values).fetchall()

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        return self.connection.execute(_adapt(statement), values).fetchone()

    def many(self, statement: str, values: Iterable[Sequence[Any]]) -> int:
        rows = values if isinstance(values, list) else list(values)
        if not rows:
            return 0
        with self.connection.cursor() as cursor:
            into = _PLAIN_INSERT.match(statement) if len(rows) >= _BULK_ROWS else None
            if into is not None:
                with cursor.copy(_copy(into)) as copy:
                    for row in rows:
                        copy.write_row(row)
            elif isinstance(statement, Statement) and statement.setwise and len(rows) >= _BULK_ROWS:
                cursor.execute(_with_marks(statement.setwise), [list(column) for column in zip(*rows, strict=True)])
            else:
                cursor.executemany(_adapt(statement), rows)
            return cursor.rowcount

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        if not values:
            return []
        with self.connection.cursor() as cursor:
            cursor.executemany(_adapt(statement), values, returning=True)
            answers = [cursor.fetchall()]
            while cursor.nextset():
                answers.append(cursor.fetchall())
            return answers

    def append(self, statement: str, values: Sequence[Any]) -> int:
        # The number is drawn after the queue's row is locked, so within a queue numbers grow in the order of commits.
        return int(self.connection.execute(_adapt(statement), values).fetchall()[0][0])

    def take_time(self) -> None:
        self.connection.execute(READING)

    def about(self) -> About:
        settings = {row[0]: row[1] for row in self.connection.execute(_LASTING)}
        return About("PostgreSQL", settings.pop("server_version"), version(self.connection), settings)

    def damage(self) -> list[str]:
        """Whether the index by which messages are taken matches the table; pg_amcheck on the server checks more."""
        wrong = [f"index {name} is not valid" for (name,) in self.connection.execute(_INVALID)]
        self.connection.execute(_BY_ROWS_ALONE)
        by_rows = {(row[0], row[1]): row[2:] for row in self.connection.execute(_GROUPS)}
        self.connection.execute(_BY_INDEX_ALONE)
        unprocessed = [(row[0], 1) for row in self.connection.execute(_QUEUE_IDS)]
        groups = sorted({*by_rows, *unprocessed})
        by_index = {group: self.connection.execute(_GROUP, group).fetchall()[0] for group in groups}
        self.connection.execute(_AS_EVER)
        pairs = [(group, by_rows.get(group, (0, 0)), indexed) for group, indexed in by_index.items()]
        return wrong + [_misled(*group, *told, *indexed) for group, told, indexed in pairs if told != indexed]

    def rebuild_indexes(self) -> None:
        self.connection.execute(_REBUILD)

    def journal_numbers(self, count: int) -> Sequence[int]:
        numbers: list[int] = self.connection.execute(_MANY_NUMBERS, (count,)).fetchall()[0][0]
        return sorted(numbers)


def version(connection: psycopg.Connection[Row]) -> int:
    row = connection.execute(_SCHEMA_VERSION).fetchone()
    assert row is not None
    return int(row[0])
