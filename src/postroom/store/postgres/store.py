"""The store on PostgreSQL: for rooms that many machines share.

Every transaction locks the queues that it changes, so the order of a queue is the order of commits, without
serializable snapshots. Only the fast paths of send and receive lock them shared (``express.py``, decision 0054), and
steps of the engine where they do no more (``Queues.shared``, decision 0090).
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, TransactionStatus

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
from postroom.model.message import Draft, Message
from postroom.model.moment import Clock, system_clock
from postroom.model.progress import OnProgress
from postroom.store.kernel.base import Conflict, Lent, Lines, Receipt, Waiter
from postroom.store.kernel.interrupts import deferring
from postroom.store.kernel.session import Row
from postroom.store.kernel.transaction import Transaction
from postroom.store.migrations import MIGRATIONS, for_postgres
from postroom.store.postgres.express import Lanes, PostgresExpress
from postroom.store.postgres.session import IDLE, READING, PostgresSession, version
from postroom.store.proof.replay import Replay
from postroom.store.proof.verification import COUNTS, beginning, tables
from postroom.store.urls import pieces, public_url

_MIGRATION_LOCK = 5_067_614_001  # any number that no one else uses for pg_advisory_xact_lock
_ROOM_EXISTS = "SELECT to_regclass('postroom_schema') IS NOT NULL"
_NOW: LiteralString = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_CREATE_SCHEMA = "CREATE TABLE IF NOT EXISTS postroom_schema (version BIGINT PRIMARY KEY)"
_ADD_VERSION = "INSERT INTO postroom_schema (version) VALUES (%s)"
_ROLLBACKS_MAX = 3  # the cancellation of a statement may hit its rollback
_COPYING = (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH)
_BACKEND = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
_SETTINGS: LiteralString = f"""
SET lock_timeout = '10s'; SET {IDLE} = '8s';
SET synchronous_commit = on;  -- durable, whatever the server's default
SET default_transaction_isolation = 'read committed';  -- whoever waited for a lock must see what it was held for
"""
# Whoever stands in the line of a queue holds a lock of it, shared, in the connection that listens, and has a channel of
# its own; what ends leases is told to the first of a line and to all who stand in none.
_WAIT: LiteralString = "LISTEN postroom; LISTEN postroom_ended; SELECT postroom_wait()"
_WAIT_IN_LINE = """
LISTEN postroom; LISTEN {channel};
SELECT postroom_wait(), pg_advisory_lock_shared('messages'::regclass::oid::int, {line})
"""
_STOP_WAITING: LiteralString = "UNLISTEN *; SELECT pg_advisory_unlock_all()"
_WAKE_ALL: LiteralString = "SELECT pg_notify('postroom', '')"
_WAKE_OTHERS: LiteralString = "SELECT pg_notify('postroom_ended', '')"
#: Who came first has been idle for the longest: it has said nothing since it stands in its line.
_WAKE_LINE: LiteralString = """
SELECT pg_notify('postroom_' || f.pid, '') FROM (
    SELECT l.pid FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = 'messages'::regclass::oid
        AND l.objid::bigint = %s AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY a.state_change, l.pid LIMIT %s
) f
"""
#: A machine that is gone says nothing: ask, so that neither side keeps a connection to it, and the locks of that.
_KEPT_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": KEEPALIVE_SECONDS,
    "keepalives_interval": KEEPALIVE_SECONDS,
    "keepalives_count": 3,
    "tcp_user_timeout": 4_000 * KEEPALIVE_SECONDS,
}


class PostgresStore(PostgresExpress):
    def __init__(self, url: str, *, actor: str, create: bool = True, clock: Clock = system_clock) -> None:
        self._url = url
        connection = _connect(url)
        try:
            made = _migrate(connection, url, create)
        except BaseException as error:
            connection.close()
            raise _ours(error) from error
        self._backend = connection.info.backend_pid
        self._resting: list[psycopg.Connection[Row]] = []  # of those who waited
        self._lanes = Lanes(lambda: PostgresStore(url, actor=actor, create=False, clock=clock))
        self._own_actor = actor
        super().__init__(PostgresSession(connection, clock, public_url(url)), actor)
        self.made = made

    @property
    def address(self) -> str:
        return self._url

    @contextlib.contextmanager
    def waiter(self, line: int | None = None) -> Iterator[Waiter]:
        connection = self._listener(line)
        waiter = ListenWaiter(connection)
        try:
            with contextlib.closing(waiter):
                yield waiter
        except BaseException:
            waiter.pass_on()  # what it was woken for it has perhaps not looked at
            raise
        finally:
            self._rest(connection, line, waiter.passes)

    def _rest(self, connection: psycopg.Connection[Row], line: int | None, passes: bool) -> None:
        """Return a listening connection to the pool, without notifications, for the next waiter."""
        try:
            connection.execute(_STOP_WAITING)
            own = f"postroom_{connection.info.backend_pid}"
            passes |= any(told.channel == own for told in list(connection.notifies(timeout=0)))
            if line is not None and passes:
                connection.execute(_WAKE_LINE, (line, 1))
        except psycopg.Error:
            connection.close()  # the next wait makes another, and tells what is wrong
            return
        if self.stopped:
            connection.close()
        else:
            self._resting.append(connection)

    def _listener(self, line: int | None) -> psycopg.Connection[Row]:
        """A connection that gets notifications, reused if one still works."""
        while self._resting:
            connection = self._resting.pop()
            try:
                _begin_waiting(connection, line)
                return connection
            except psycopg.Error:
                connection.close()
        connection = _connect(self._url)
        try:
            _begin_waiting(connection, line)
        except psycopg.Error as error:
            connection.close()
            raise _ours(error) from error
        return connection

    def copy_to(self, file: Path, progress: OnProgress) -> None:
        from postroom.store.upkeep.portable import Counted, write

        try:
            with contextlib.closing(_connect(self._url)) as connection:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                tx = Transaction(PostgresSession(connection, self.session.clock, self.session.place), self.actor)
                replay = Replay(beginning(tx), tables(tx))
                for line in tx.journal.lines():
                    replay.hear(line)
                numbers = {**replay.left, **{key: place.number for key, place in replay.told.messages.items()}}
                queues = {row[0]: row[1:] for row in tx.session.rows(COUNTS)}
                write(connection, Counted(numbers, queues), file, progress)
        except psycopg.Error as error:
            raise _ours(error) from error

    def copy_from(self, file: Path, progress: OnProgress) -> None:
        from postroom.store.upkeep.portable import read

        with self._mutex, self._entered():
            try:
                with self.session.connection.transaction():
                    read(self.session.connection, file, progress)
            except psycopg.Error as error:
                self._raise_ours(error)
            self._stop("the room was restored; open it again")

    # Threads that share this store take turns, but for what has a lane: a commit waits for the disk, and others may go
    # along with it.

    @deferring
    def send_one(self, queue: int, draft: Draft, receipt: Receipt | None = None) -> int | None:
        if self._mutex.acquire(blocking=False):
            try:
                return super().send_one(queue, draft, receipt)
            finally:
                self._mutex.release()
        with self._lane() as lane:
            return PostgresExpress.send_one(lane, queue, draft, receipt)

    @deferring
    def send_some(self, queue: int, drafts: Sequence[Draft]) -> Sequence[int] | None:
        with self._lane() as lane:
            return PostgresExpress.send_some(lane, queue, drafts)

    @deferring
    def receive_one(self, queue: int) -> Message | None:
        if self._mutex.acquire(blocking=False):
            try:
                return super().receive_one(queue)
            finally:
                self._mutex.release()
        with self._lane() as lane:
            return PostgresExpress.receive_one(lane, queue)

    @deferring
    def lease_one(self, queue: int, owner: str, microseconds: int) -> Lent | None:
        with self._lane() as lane:
            return PostgresExpress.lease_one(lane, queue, owner, microseconds)

    @deferring
    def lease_some(self, queue: int, owner: str, microseconds: int, most: int) -> list[Lent] | None:
        with self._lane() as lane:
            return PostgresExpress.lease_some(lane, queue, owner, microseconds, most)

    @deferring
    def done_one(self, fence: int) -> bool:
        with self._lane() as lane:
            return PostgresExpress.done_one(lane, fence)

    @deferring
    def turn_one(self, fence: int, queue: int, owner: str, microseconds: int) -> tuple[bool, Lent | None]:
        with self._lane() as lane:
            return PostgresExpress.turn_one(lane, fence, queue, owner, microseconds)

    @deferring
    def done_some(self, fences: Sequence[int]) -> bool:
        with self._lane() as lane:
            return PostgresExpress.done_some(lane, fences)

    @contextlib.contextmanager
    def _lane(self) -> Iterator[PostgresExpress]:
        """This store if it is idle, else one with its own connection."""
        if self._mutex.acquire(blocking=False):
            try:
                yield self
            finally:
                self._mutex.release()
        elif self.stopped or self.actor != self._own_actor:  # someone acts for another: wait until that is over
            yield self
        else:
            with self._lanes.one() as lane:
                yield lane or self

    def _begin(self) -> None:
        self._start(f"BEGIN ISOLATION LEVEL READ COMMITTED; {_NOW}")

    def _begin_reading(self) -> None:
        self._start(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_NOW}; {READING}")

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
        if clock is system_clock and told:
            self.session.now = told[0]
            self._set_time(told[0])
        else:
            self.session.now = clock()

    def _commit(self) -> None:
        self.session.connection.execute("COMMIT")

    def _rollback(self) -> None:
        connection = self.session.connection
        for _ in range(_ROLLBACKS_MAX):
            if connection.closed:
                break
            with contextlib.suppress(psycopg.Error):  # the error that brought us here is the one to tell
                _end_statement(connection)
                connection.execute("ROLLBACK")
            if connection.info.transaction_status == TransactionStatus.IDLE:
                return
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
        """Wait until the server has ended the transaction, either way."""
        self.session.connection.close()
        end = monotonic() + SETTLE_SECONDS
        with contextlib.suppress(psycopg.Error, StoreUnavailable), contextlib.closing(_connect(self._url)) as other:
            while other.execute(_BACKEND, (self._backend,)).fetchone() is not None and monotonic() < end:
                sleep(RETRY_SECONDS / 10)

    def _stop(self, why: str) -> None:
        super()._stop(why)
        self.session.connection.close()
        while self._resting:
            self._resting.pop().close()
        self._lanes.close()

    def _rewrite(self) -> None:
        self.session.connection.execute("VACUUM FULL nodes")

    def _wake_with_commit(self, lines: Lines | None = None) -> None:
        execute = self.session.connection.execute
        execute(_WAKE_ALL if lines is None else _WAKE_OTHERS)
        for queue, count in (lines or {}).items():
            execute(_WAKE_LINE, (queue, count))


def _end_statement(connection: psycopg.Connection[Row]) -> None:
    """Cancel a statement whose result nobody has fetched, because the program was interrupted."""
    if connection.info.transaction_status == TransactionStatus.ACTIVE:
        connection.cancel_safe()
        while (result := connection.pgconn.get_result()) is not None:
            if result.status in _COPYING:  # there is no end to it
                connection.close()
                return


def _begin_waiting(connection: psycopg.Connection[Row], line: int | None) -> None:
    if line is None:
        connection.execute(_WAIT)
    else:
        channel = sql.Identifier(f"postroom_{connection.info.backend_pid}")
        connection.execute(sql.SQL(_WAIT_IN_LINE).format(channel=channel, line=sql.Literal(line)))


class ListenWaiter:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._alarm, self._alarmed = os.pipe()
        os.set_blocking(self._alarmed, False)
        self._closing = Lock()
        self._closed = False
        self.passes = False  # whether the next of its line is to be woken when this one leaves
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
        """End the wait, from any thread.

        Does nothing after closing, because another file may have the number by now.
        """
        with self._closing, contextlib.suppress(BlockingIOError):  # full: it is awake already
            if not self._closed:
                os.write(self._alarmed, b"w")

    def pass_on(self) -> None:
        self.passes = True

    def close(self) -> None:
        with self._closing:
            self._closed = True
            os.close(self._alarm)
            os.close(self._alarmed)

    def _notified(self) -> bool:
        """Whether there was a notification since the last look."""
        try:
            return any(True for _ in self._connection.notifies(timeout=0, stop_after=1))
        except psycopg.Error as error:
            raise _ours(error) from error


def _connect(url: str) -> psycopg.Connection[Row]:
    try:
        chosen = conninfo_to_dict(url)
        ours: dict[str, Any] = {name: value for name, value in _KEPT_ALIVE.items() if name not in chosen}
        ours["client_encoding"] = "UTF8"  # whatever the environment says
        connection: psycopg.Connection[Row] = psycopg.connect(url, autocommit=True, connect_timeout=10, **ours)
        connection.execute(_SETTINGS)
    except psycopg.ProgrammingError:  # its text may quote any part of the URL, the password too
        raise StoreUnavailable(why="the URL of the room is malformed") from None
    except (psycopg.Error, UnicodeError) as error:
        raise StoreUnavailable(why=_without_secrets(_why(error), url)) from None
    connection.prepare_threshold = 2
    return connection


def _migrate(connection: psycopg.Connection[Row], url: str, create: bool) -> bool:
    """Bring the schema up to date; whether that made the room."""
    made = False
    exists = connection.execute(_ROOM_EXISTS).fetchone() == (True,)
    if not exists and not create:
        raise RoomMissing(url=public_url(url))
    done = version(connection) if exists else 0
    if done > len(MIGRATIONS):
        raise StoreNewer(found=done, known=len(MIGRATIONS))
    while done < len(MIGRATIONS):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(_CREATE_SCHEMA)
            done = version(connection)  # another process may have been first
            made = made or done == 0
            if done < len(MIGRATIONS):
                for statement in map(for_postgres, MIGRATIONS[done]):
                    faults.reach("migrate.statement")
                    connection.execute(sql.SQL(statement))
                done += 1
                connection.execute(_ADD_VERSION, (done,))
                faults.reach("migrate.statement")
    return made


@contextlib.contextmanager
def two_phase(url: str) -> Iterator[Any]:
    """A connection to another database with possible prepared transactions."""
    if not url.startswith(("postgresql://", "postgres://")):  # libpq takes other words for a database of this machine
        raise ArgumentInvalid(argument="url", why="give the URL of a PostgreSQL database: postgresql://HOST/DATABASE")
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except psycopg.ProgrammingError:  # its text may quote any part of the URL, the password too
        raise StoreUnavailable(why="the URL of the database is malformed") from None
    except (psycopg.Error, UnicodeError) as error:
        raise StoreUnavailable(why=_without_secrets(_why(error), url)) from None
    with contextlib.closing(connection):
        try:
            yield connection
        except psycopg.Error as error:
            raise _ours(error) from error


def schema_of(url: str) -> int:
    """The number of a room's last migration; migrates nothing."""
    with contextlib.closing(_connect(url)) as connection:
        try:
            if connection.execute(_ROOM_EXISTS).fetchone() != (True,):
                raise RoomMissing(url=public_url(url))
            return version(connection)
        except psycopg.Error as error:
            raise _ours(error) from error


def _without_secrets(why: str, url: str) -> str:
    """The error of a failed connection, unless it may quote a password of a malformed URL."""
    if any(piece in why for piece in pieces(url)):
        return f"no connection to {public_url(url)}; why is not told, because it would show a part of the password"
    return why


def _why(error: BaseException) -> str:
    """The first line of the server's error."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _ours(error: BaseException) -> BaseException:
    """PostgreSQL's error as ours, by its SQLSTATE, never by its text."""
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
