"""The store on PostgreSQL: for rooms that many machines share.

Every transaction locks the rows of the queues that it changes, so the order of a queue is the order of commits, and
correctness does not lean on serializable snapshots.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from postroom import faults
from postroom.errors import (
    ArgumentInvalid,
    PostroomError,
    RoomMissing,
    StoreBusy,
    StoreCorrupt,
    StoreFull,
    StoreNewer,
    StoreUnavailable,
)
from postroom.limits import BUSY_SECONDS, KEEPALIVE_SECONDS, RECHECK_SECONDS, RETRY_SECONDS, SETTLE_SECONDS
from postroom.model.moment import Clock, system_clock
from postroom.store.kernel.base import Conflict, Progress, Store, Waiter
from postroom.store.kernel.messages import DISCARD, MARK
from postroom.store.kernel.session import About, Row, Session
from postroom.store.kernel.slices import SPEND
from postroom.store.migrations import MIGRATIONS, for_postgres
from postroom.store.upkeep.archives import REMOVE_DEPARTED
from postroom.store.urls import pieces, public_url

_MIGRATION_LOCK = 5_067_614_001  # any number that no one else uses for pg_advisory_xact_lock
_ROOM_EXISTS = "SELECT to_regclass('postroom_schema') IS NOT NULL"
_NOW: LiteralString = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_CREATE_SCHEMA = "CREATE TABLE IF NOT EXISTS postroom_schema (version BIGINT PRIMARY KEY)"
_SCHEMA_VERSION = "SELECT coalesce(max(version), 0) FROM postroom_schema"
_ADD_VERSION = "INSERT INTO postroom_schema (version) VALUES (%s)"
_LASTING = """
SELECT name, setting FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit')
"""
_BACKEND = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
#: A process that stands still in a transaction is cut off before those who wait for its locks give up.
_IDLE: LiteralString = "idle_in_transaction_session_timeout"
_SETTINGS: tuple[LiteralString, ...] = (
    "SET lock_timeout = '10s'",
    f"SET {_IDLE} = '8s'",
    "SET synchronous_commit = on",  # durable, whatever the server's default
)
_READING: LiteralString = f"SET LOCAL {_IDLE} = '60s'"  # nobody waits for one who only reads
#: A machine that is gone says nothing: ask, so that neither side keeps a connection to it, and the locks of that.
_KEPT_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": KEEPALIVE_SECONDS,
    "keepalives_interval": KEEPALIVE_SECONDS,
    "keepalives_count": 3,
    "tcp_user_timeout": 4_000 * KEEPALIVE_SECONDS,
}
_MANY_NUMBERS = "SELECT nextval('journal_numbers') FROM generate_series(1, %s)"

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

_WORDS = {
    "max/*scalar*/(": "greatest(",
    "/*for update*/": "FOR NO KEY UPDATE",
    "/*for share*/": "FOR SHARE",
    "NOT INDEXED": "",
    "json_valid(m.body)": "true",
    "/*json*/": "::jsonb",
    "m.key IN (SELECT value FROM json_each(%s))": "m.key IN (SELECT json_array_elements_text(%s::json)::bigint)",
    "n.queue IN (SELECT value FROM json_each(%s))": "n.queue IN (SELECT json_array_elements_text(%s::json)::bigint)",
    "(SELECT value FROM json_each(%s))": "(SELECT json_array_elements_text(%s::json))",
    "/*bytes*/": 'COLLATE "C"',
}
_adapted: dict[str, sql.SQL] = {}

_BULK_ROWS = 8  # from so many rows on, one statement for all is quicker than one for each
#: Such a statement over many rows is a COPY, which takes a tenth of the time.
_PLAIN_INSERT = re.compile(r"\s*INSERT INTO (\w+)\s*\(([\w, ]+)\)\s*VALUES \(\?(?:, \?)*\)\s*$")
#: What a step does to each of its messages, for all of them at once.
_SETWISE: dict[str, LiteralString] = {
    MARK: """
        UPDATE messages m SET state = 0, position = v.position, last = NULL, processed = v.processed
        FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS v (position, processed, key, queue)
        WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1
    """,
    DISCARD: """
        DELETE FROM messages m USING unnest(%s::bigint[], %s::bigint[]) AS v (key, queue)
        WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1
    """,
    REMOVE_DEPARTED: "DELETE FROM departed d USING unnest(%s::bigint[]) AS v (key) WHERE d.key = v.key",
    SPEND: """
        INSERT INTO spent (message) SELECT m.key FROM messages m JOIN unnest(%s::bigint[]) AS v (key) ON m.key = v.key
        WHERE m.state = 0 AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.message = m.key)
        ON CONFLICT (message) DO NOTHING
    """,
}


def _copy(into: re.Match[str]) -> sql.Composed:
    table, columns = into.groups()
    names = sql.SQL(", ").join(sql.Identifier(name.strip()) for name in columns.split(","))
    return sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)


def _adapt(statement: str) -> sql.SQL:
    """A constant statement in PostgreSQL's words."""
    found = _adapted.get(statement)
    if found is None:
        words = statement.replace("?", "%s")
        for ours, theirs in _WORDS.items():
            words = words.replace(ours, theirs)
        found = _adapted[statement] = sql.SQL(words)
    return found


def _misled(queue: int, state: int, count: int, places: int, found: int, found_places: int) -> str:
    """How the index of messages differs from the table, for the messages of a queue in a state."""
    what = f"of {count} message(s) of queue {queue} in state {state}, index messages_chain leads to {found}"
    return what if count != found else f"{what}, at other places ({found_places}, not {places}, in sum)"


class PostgresSession(Session):
    compares_json_numbers = False
    numbers_without_gaps = False

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
        with self.connection.cursor() as cursor:
            into = _PLAIN_INSERT.match(statement) if len(rows) >= _BULK_ROWS else None
            if into is not None:
                with cursor.copy(_copy(into)) as copy:
                    for row in rows:
                        copy.write_row(row)
            elif statement in _SETWISE and len(rows) >= _BULK_ROWS:
                cursor.execute(_SETWISE[statement], [list(column) for column in zip(*rows, strict=True)])
            else:
                cursor.executemany(_adapt(statement), rows)
            return cursor.rowcount

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        if not values:
            return []
        with self.connection.cursor() as cursor:
            cursor.executemany(_adapt(statement), values, returning=True)
            found = [cursor.fetchall()]
            while cursor.nextset():
                found.append(cursor.fetchall())
            return found

    def append(self, statement: str, values: Sequence[Any]) -> int:
        # The number is drawn after the queue's row is locked, so within a queue numbers grow in the order of commits.
        return int(self.connection.execute(_adapt(statement + " RETURNING seq"), values).fetchall()[0][0])

    def take_time(self) -> None:
        self.connection.execute(_READING)

    def about(self) -> About:
        said = {row[0]: row[1] for row in self.connection.execute(_LASTING)}
        return About("PostgreSQL", said.pop("server_version"), _version(self.connection), said)

    def damage(self) -> list[str]:
        """Whether the index that messages are taken by has what the table has; pg_amcheck on the server sees more."""
        wrong = [f"index {name} is not valid" for (name,) in self.connection.execute(_INVALID)]
        self.connection.execute(_BY_ROWS_ALONE)
        by_rows = {(row[0], row[1]): row[2:] for row in self.connection.execute(_GROUPS)}
        self.connection.execute(_BY_INDEX_ALONE)
        unprocessed = [(row[0], 1) for row in self.connection.execute(_QUEUE_IDS)]
        groups = sorted({*by_rows, *unprocessed})
        by_index = {group: self.connection.execute(_GROUP, group).fetchall()[0] for group in groups}
        self.connection.execute(_AS_EVER)
        pairs = [(group, by_rows.get(group, (0, 0)), found) for group, found in by_index.items()]
        return wrong + [_misled(*group, *told, *found) for group, told, found in pairs if told != found]

    def rebuild_indexes(self) -> None:
        self.connection.execute(_REBUILD)

    def journal_numbers(self, count: int) -> Sequence[int]:
        return sorted(row[0] for row in self.connection.execute(_MANY_NUMBERS, (count,)))


class PostgresStore(Store):
    session: PostgresSession

    def __init__(self, url: str, *, actor: str, create: bool = True, clock: Clock = system_clock) -> None:
        self._url = url
        connection = _connect(url)
        try:
            _migrate(connection, url, create)
        except BaseException as error:
            connection.close()
            raise _ours(error) from error
        self._backend = connection.info.backend_pid
        super().__init__(PostgresSession(connection, clock, public_url(url)), actor)

    @property
    def address(self) -> str:
        return self._url

    @contextlib.contextmanager
    def _listening(self) -> Iterator[Waiter]:
        with contextlib.closing(_connect(self._url)) as connection:
            try:
                connection.execute("LISTEN postroom")
            except psycopg.Error as error:
                raise _ours(error) from error
            with contextlib.closing(ListenWaiter(connection)) as waiter:
                yield waiter

    def copy_to(self, file: Path, progress: Progress) -> None:
        from postroom.store.upkeep.portable import write

        try:
            with contextlib.closing(_connect(self._url)) as connection:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                write(connection, file, progress)
        except psycopg.Error as error:
            raise _ours(error) from error

    def copy_from(self, file: Path, progress: Progress) -> None:
        from postroom.store.upkeep.portable import read

        with self._mutex, self._entered():
            try:
                with self.session.connection.transaction():
                    read(self.session.connection, file, progress)
            except psycopg.Error as error:
                self._raise_ours(error)
            self._stop("the room was restored; open it again")

    def waiter(self) -> AbstractContextManager[Waiter]:
        return self._listening()

    def _begin(self) -> None:
        self._start(f"BEGIN ISOLATION LEVEL READ COMMITTED; {_NOW}")

    def _begin_reading(self) -> None:
        self._start(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_NOW}; {_READING}")

    def _start(self, statements: LiteralString) -> None:
        try:
            answer = self.session.connection.execute(statements)
            answer.nextset()
            told = answer.fetchone()
        except psycopg.Error as error:
            if self.session.connection.closed:
                self._stop(f"the connection to the database is gone ({_why(error)})")
            raise _ours(error) from error
        # The server's time: clocks of many machines differ, and leases must not. A test's clock wins.
        clock = self.session.clock
        self.session.now = told[0] if clock is system_clock and told else clock()

    def _commit(self) -> None:
        self.session.connection.execute("COMMIT")

    def _rollback(self) -> None:
        if not self.session.connection.closed:
            with contextlib.suppress(psycopg.Error):  # the error that brought us here is the one to tell
                self.session.connection.execute("ROLLBACK")
        else:
            self._stop("the connection to the database is gone")

    def _translated(self, error: BaseException) -> BaseException:
        return _ours(error)

    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        # The server answered with an error: it rolled back. No answer at all has no SQLSTATE.
        if isinstance(error, psycopg.Error) and error.sqlstate and not error.sqlstate.startswith(("57P", "08", "XX")):
            ours = _ours(error)
            assert isinstance(ours, (PostroomError, Conflict))
            return ours
        return None

    def _settle(self, label: str) -> None:
        """The server's part of the connection may still be at it: wait until it has ended, one way or the other."""
        self.session.connection.close()
        end = monotonic() + SETTLE_SECONDS
        with contextlib.suppress(psycopg.Error, StoreUnavailable), contextlib.closing(_connect(self._url)) as other:
            while other.execute(_BACKEND, (self._backend,)).fetchone() is not None and monotonic() < end:
                sleep(RETRY_SECONDS / 10)

    def _stop(self, why: str) -> None:
        super()._stop(why)
        self.session.connection.close()

    def _rewrite(self) -> None:
        self.session.connection.execute("VACUUM FULL nodes")

    def _wake_with_commit(self) -> None:
        self.session.connection.execute("SELECT pg_notify('postroom', '')")

    def _wake_after_commit(self) -> None:
        pass


class ListenWaiter:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._alarm, self._alarmed = os.pipe()
        self._poll = select.poll()
        for source in (connection.fileno(), self._alarm):
            self._poll.register(source, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        # A lock whose owner dies or whose lease ends notifies nobody, so a long sleep is a few shorter ones.
        if self._notified():
            return True
        ready = {source for source, _ in self._poll.poll(max(0.0, min(seconds, RECHECK_SECONDS)) * 1000)}
        if self._alarm in ready:
            os.read(self._alarm, 65536)
            return True
        return self._notified() if ready else seconds > RECHECK_SECONDS

    def wake(self) -> None:
        os.write(self._alarmed, b"w")

    def close(self) -> None:
        os.close(self._alarm)
        os.close(self._alarmed)

    def _notified(self) -> bool:
        """Whether the server has told of a change since the last look."""
        try:
            return any(True for _ in self._connection.notifies(timeout=0, stop_after=1))
        except psycopg.Error as error:
            raise _ours(error) from error


def _connect(url: str) -> psycopg.Connection[Row]:
    try:
        chosen = conninfo_to_dict(url)
        ours: dict[str, Any] = {name: value for name, value in _KEPT_ALIVE.items() if name not in chosen}
        connection: psycopg.Connection[Row] = psycopg.connect(url, autocommit=True, connect_timeout=10, **ours)
        for setting in _SETTINGS:
            connection.execute(setting)
    except psycopg.ProgrammingError:  # its text may quote any part of the URL, the password too
        raise StoreUnavailable(why="the URL of the room is malformed") from None
    except (psycopg.Error, UnicodeError) as error:
        raise StoreUnavailable(why=_without_secrets(_why(error), url)) from None
    connection.prepare_threshold = 2
    return connection


def _migrate(connection: psycopg.Connection[Row], url: str, create: bool) -> None:
    exists = connection.execute(_ROOM_EXISTS).fetchone() == (True,)
    if not exists and not create:
        raise RoomMissing(url=public_url(url))
    done = _version(connection) if exists else 0
    if done > len(MIGRATIONS):
        raise StoreNewer(found=done, known=len(MIGRATIONS))
    while done < len(MIGRATIONS):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(_CREATE_SCHEMA)
            done = _version(connection)  # another process may have been first
            if done < len(MIGRATIONS):
                for statement in map(for_postgres, MIGRATIONS[done]):
                    faults.reach("migrate.statement")
                    connection.execute(sql.SQL(statement))
                done += 1
                connection.execute(_ADD_VERSION, (done,))
                faults.reach("migrate.statement")


@contextlib.contextmanager
def two_phase(url: str) -> Iterator[Any]:
    """A connection to a database of others, which may have something in doubt."""
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except psycopg.ProgrammingError:  # its text may quote any part of the URL, the password too
        raise StoreUnavailable(why="the URL of the database is malformed") from None
    except (psycopg.Error, UnicodeError) as error:
        raise StoreUnavailable(why=_why(error)) from None
    with contextlib.closing(connection):
        try:
            yield connection
        except psycopg.Error as error:
            raise _ours(error) from error


def schema_of(url: str) -> int:
    """The number of a room's last migration; nothing is migrated."""
    with contextlib.closing(_connect(url)) as connection:
        try:
            if connection.execute(_ROOM_EXISTS).fetchone() != (True,):
                raise RoomMissing(url=public_url(url))
            return _version(connection)
        except psycopg.Error as error:
            raise _ours(error) from error


def _version(connection: psycopg.Connection[Row]) -> int:
    row = connection.execute(_SCHEMA_VERSION).fetchone()
    assert row is not None
    return int(row[0])


def _without_secrets(why: str, url: str) -> str:
    """What was said of a connection that failed, unless it quotes what may be a password: a URL can be read amiss."""
    if any(piece in why for piece in pieces(url)):
        return f"no connection to {public_url(url)}; why is not told, because it would show a part of the password"
    return why


def _why(error: BaseException) -> str:
    """The first line of what the server said."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _ours(error: BaseException) -> BaseException:
    """PostgreSQL's error as ours. By its SQLSTATE, never by its text."""
    if not isinstance(error, psycopg.Error):
        return error
    state = error.sqlstate or ""
    if isinstance(error, psycopg.DataError) and not state:  # its driver's word: a text with a NUL
        return ArgumentInvalid(argument="text", why=_why(error))
    why = f"{_why(error)} ({state})" if state else _why(error)
    if state in ("40001", "40P01", "23505"):  # serialization, deadlock, two who created the same thing at once
        return Conflict(why)
    if state in ("55P03", "57014"):
        return StoreBusy(seconds=BUSY_SECONDS, why=why)
    if state.startswith("53"):  # out of disk, memory or connections
        return StoreFull(why=why)
    if state in ("XX001", "XX002"):
        return StoreCorrupt(why=why)
    return StoreUnavailable(why=why)
