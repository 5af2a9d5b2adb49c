"""The store on SQLite: one file, no server, every commit on disk before it returns.

Through ``apsw``, which carries its own SQLite: the same version on every machine, and half the cost of a statement.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

import apsw

from postroom import faults
from postroom.errors import (
    PostroomError,
    RoomMissing,
    StoreBusy,
    StoreCorrupt,
    StoreFull,
    StoreNewer,
    StoreUnavailable,
    UrlInvalid,
)
from postroom.limits import BACKUP_PAGES, BUSY_SECONDS
from postroom.model.message import Draft, Message, Stored, message_hash
from postroom.model.moment import Clock, system_clock
from postroom.store import wakeup
from postroom.store.base import Conflict, Progress, Store, Waiter
from postroom.store.journal import line_digest, put_digest
from postroom.store.migrations import MIGRATIONS, for_sqlite
from postroom.store.session import About, Row, Session

_LAST_NUMBER = "SELECT coalesce(max(seq), 0) FROM journal"

# The express lane: as few calls as can be. Its effect is that of the long way, and a test compares the two.
_OPEN_ONE = """
BEGIN IMMEDIATE;
SELECT max(q.arrived, coalesce((
    SELECT m.number FROM messages m WHERE m.queue = q.id AND m.state = 1 ORDER BY m.position DESC LIMIT 1
), 0)), q.departed
FROM queues q WHERE q.id = ? AND q.hold = 0 AND q.retired = 0 AND q.command IS NULL AND q.door = 0
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
"""
_PUT_ONE = """
INSERT INTO journal (at, verb, message, target, actor, digest) VALUES (?, 'put', ?, ?, ?, ?);
INSERT INTO messages (key, queue, position, number, created, body, format, type, properties, hash)
VALUES (?, ?, last_insert_rowid(), ?, ?, ?, ?, ?, ?, ?)
"""
_RECEIVE_ONE = """
BEGIN IMMEDIATE;
SELECT m.key, q.name, m.created, ?, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position,
       m.number, coalesce(m.last, m.position)
FROM queues q CROSS JOIN messages m ON m.key = (
    SELECT i.key FROM messages i WHERE i.queue = q.id AND i.state = 1 ORDER BY i.position LIMIT 1
) AND m.queue = q.id AND m.state = 1 AND m.number <= q.departed + 1
WHERE q.id = ? AND q.hold < 2 AND q.retired = 0 AND q.keep = 1
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
    AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q.id)
"""
_TAKE_ONE = """
INSERT INTO journal (at, verb, message, prior, source, target, actor, digest)
VALUES (?, 'take', ?, ?, ?, ?, ?, ?);
UPDATE messages SET state = 0, position = last_insert_rowid(), last = NULL, processed = ? WHERE key = ?;
UPDATE queues SET departed = departed + 1, processed = processed + 1, arrived = max(arrived, ?) WHERE id = ?
"""


class SqliteSession(Session):
    compares_json_numbers = True
    numbers_without_gaps = True

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
        found = self.rows(statement, values)
        return found[0] if found else None

    def _readable(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """The same rows, of which some text is no text any more: bytes that are none become characters that are none.

        SQLite looks at no byte of a text. What such a character is in does not match its hash, and is not believed.
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
        before = self.connection.total_changes()
        self.connection.executemany(statement, values)
        return self.connection.total_changes() - before

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Row]]:
        return [self.rows(statement, each) for each in values]

    def append(self, statement: str, values: Sequence[Any]) -> int:
        # An INTEGER PRIMARY KEY that is not given is the highest one plus one.
        self.execute(statement, values)
        return self.connection.last_insert_rowid()

    def about(self) -> About:
        settings = {"journal_mode": self.rows("PRAGMA journal_mode"), "synchronous": self.rows("PRAGMA synchronous")}
        said = {name: str(rows[0][0]) for name, rows in settings.items()}
        return About("SQLite", apsw.sqlite_lib_version(), _version(self.connection), said)

    def damage(self) -> list[str]:
        return [row[0] for row in self.rows("PRAGMA integrity_check(10)") if row[0] != "ok"]

    def rebuild_indexes(self) -> None:
        self.execute("REINDEX")

    def journal_numbers(self, count: int) -> Sequence[int]:
        # There is one writer at a time, so the numbers after the highest are ours.
        (last,) = self.rows(_LAST_NUMBER)[0]
        first = last + 1
        return range(first, first + count)


class SqliteStore(Store):
    session: SqliteSession

    def __init__(
        self, file: Path, *, actor: str, create: bool = True, clock: Clock = system_clock, mapped: bool = False
    ) -> None:
        self._wake_directory = file.with_name(file.name + "-wake")
        connection = _connect(file, create)
        if mapped:
            connection.execute(_MAPPED).fetchall()
        try:
            _migrate(connection, str(file), create)
        except BaseException as error:
            connection.close()
            raise _ours(error, file) from error
        super().__init__(SqliteSession(connection, clock, str(file)), actor)

    def send_one(self, queue: int, draft: Draft) -> int | None:
        with self._mutex:
            self._enter()
            committing = False
            try:
                transaction, execute = self._transaction, self.session.execute
                key = transaction.keys.ready()
                if key is None:
                    return None
                now = self.session.clock()
                actor, hash = transaction.journal.actor, message_hash(key, now, None, *draft)
                digest = put_digest(now, key, queue, actor)
                found: list[Any] = execute(_OPEN_ONE, (queue,)).fetchall()
                if not found:
                    execute("ROLLBACK")
                    transaction.keys.give_back(key)
                    return None
                arrivals, departed = found[0]
                execute(_PUT_ONE, (now, key, queue, actor, digest, key, queue, arrivals + 1, now, *draft, hash))
                if faults.armed:
                    _reach_both("send")
                committing = True
                execute("COMMIT")
                if faults.armed:
                    faults.reach("send.committed")
            except BaseException as error:
                self._fail_express("send", error, committing)
            finally:
                self._leave()
            if arrivals == departed:
                self._wake_after_commit()
            return key

    def receive_one(self, queue: int) -> Message | None:
        with self._mutex:
            self._enter()
            committing = False
            try:
                execute, now = self.session.execute, self.session.clock()
                try:
                    stored = _first(execute(_RECEIVE_ONE, (now, queue)).fetchall())
                except UnicodeDecodeError:  # the long way reads what is left of it
                    stored = None
                if stored is None or not stored.sound:
                    execute("ROLLBACK")
                    return None
                key, actor = stored.key, self._transaction.journal.actor
                line = (key, stored.last, queue, queue, actor)
                execute(_TAKE_ONE, (now, *line, line_digest(now, "take", *line), now, key, stored.number, queue))
                if faults.armed:
                    _reach_both("receive")
                committing = True
                execute("COMMIT")
                if faults.armed:
                    faults.reach("receive.committed")
            except BaseException as error:
                self._fail_express("receive", error, committing)
            finally:
                self._leave()
            return Message(stored)

    def _fail_express(self, label: str, error: BaseException, committing: bool) -> NoReturn:
        if committing:
            self._raise_uncommitted(label, error)
        self._rollback()
        self._raise_ours(error)

    def copy_to(self, file: Path, progress: Progress) -> None:
        # A connection of its own: nobody who shares this store waits for it.
        copy_file(Path(self.session.place), file, progress)

    def copy_from(self, file: Path, progress: Progress) -> None:
        with self._mutex, self._entered():
            try:
                with contextlib.closing(_connect(file, create=False)) as source:
                    _copy(source, self.session.connection, progress)
            except BaseException as error:
                self._raise_ours(error)
            self._stop("the room was restored; open it again")
        self._wake_after_commit()

    def waiter(self) -> AbstractContextManager[Waiter]:
        return wakeup.waiting(self._wake_directory)

    def _begin(self, statement: str = "BEGIN IMMEDIATE") -> None:
        session = self.session
        try:
            session.execute(statement)
        except apsw.Error as error:
            raise _ours(error) from error
        session.now = session.clock()

    def _begin_reading(self) -> None:
        self._begin("BEGIN")

    def _commit(self) -> None:
        self.session.execute("COMMIT")

    def _rollback(self) -> None:
        if self.session.connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # the error that brought us here is the one to tell
                self.session.execute("ROLLBACK")

    def _translated(self, error: BaseException) -> BaseException:
        return _ours(error)

    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        # Only these two are certain: nothing was written, or there was no space for the record of the commit.
        if isinstance(error, (apsw.BusyError, apsw.FullError)):
            ours = _ours(error)
            assert isinstance(ours, PostroomError)
            return ours
        return None

    def _stop(self, why: str) -> None:
        super()._stop(why)
        self.session.connection.close(True)

    def _rewrite(self) -> None:
        self.session.execute("VACUUM")
        self.session.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _wake_with_commit(self) -> None:
        pass

    def _wake_after_commit(self) -> None:
        wakeup.wake(self._wake_directory)


def _as_bytes(names: list[str], statement: str) -> str:
    """A statement whose texts come as bytes, each behind the name of its type."""
    each = ", ".join(
        f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in names
    )
    return f"WITH r ({', '.join(names)}) AS ({statement}) SELECT {each} FROM r"  # noqa: S608  # constants alone


def _text(type: str, value: Any) -> Any:
    return value.decode(errors="surrogateescape") if type == "text" else value


def _first(rows: list[Any]) -> Stored | None:
    return Stored(*rows[0]) if rows else None


def _reach_both(label: str) -> None:
    """The express lane begins and is about to commit in one breath."""
    faults.reach(f"{label}.begun")
    faults.reach(f"{label}.committing")


def _connect(file: Path, create: bool) -> apsw.Connection:
    try:
        if not create and not file.exists():
            raise RoomMissing(url=str(file))
        if not file.parent.is_dir():
            raise StoreUnavailable(why=f"the directory {file.parent} does not exist")
        connection = apsw.Connection(os.fspath(file))
    except (apsw.Error, OSError) as error:
        raise _ours(error, file) from error
    try:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        _check_ours(connection, file)
        # One plan per statement, whatever its values; else SQLite plans anew at every execution, 5 times slower.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
    except BaseException as error:
        connection.close()
        raise _ours(error, file) from error
    return connection


def copy_file(source: Path, target: Path, progress: Progress) -> None:
    """Copy a room's file with all that is committed, as it is in one moment; the target is a file that is empty."""
    connection = _connect(source, create=False)
    try:
        into = apsw.Connection(os.fspath(target))
        try:
            # One picture for all pages: else every commit of others would begin the copy anew.
            connection.execute("BEGIN")
            connection.execute(_LAST_NUMBER if _version(connection) else _ANYTHING).fetchall()
            _copy(connection, into, progress)
        finally:
            into.close()
    except BaseException as error:
        raise _ours(error, source) from error
    finally:
        connection.close()


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Progress) -> None:
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(BACKUP_PAGES)
            progress(copying.page_count - copying.remaining, copying.page_count)


_ANYTHING = "SELECT count(*) FROM sqlite_master"
_SETTINGS = (
    # Small pages: a durable send changes three, and their bytes are what the disk waits for.
    "PRAGMA page_size = 1024",
    "PRAGMA journal_mode = WAL",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS alone has a weaker sync, and this turns it off
    "PRAGMA cache_size = -32768",
)
# Who reads much reads from memory that is the file: with small pages, every third of its time was calls of the system.
_MAPPED = "PRAGMA mmap_size = 1099511627776"
_APPLICATION = 0x506F7374  # "Post", written into the header of the file


def _check_ours(connection: apsw.Connection, file: Path) -> None:
    """Touch no database of another program, not even to ask it for a write-ahead log."""
    objects = connection.execute("SELECT count(*) FROM sqlite_master").get
    if objects and connection.execute("PRAGMA application_id").get != _APPLICATION:
        raise UrlInvalid(url=str(file), why="the file is a SQLite database of another program")


def _migrate(connection: apsw.Connection, name: str, create: bool) -> None:
    found = _version(connection)
    if found > len(MIGRATIONS):
        raise StoreNewer(found=found, known=len(MIGRATIONS))
    if found == 0 and not create:
        raise RoomMissing(url=name)
    while found < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)  # another process may have been first
            if found < len(MIGRATIONS):
                for statement in map(for_sqlite, MIGRATIONS[found]):
                    faults.reach("migrate.statement")
                    connection.execute(statement)
                found += 1
                connection.execute(_VERSION_STATEMENTS[found])
                connection.execute(_APPLICATION_STATEMENT)
                faults.reach("migrate.statement")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def schema_of(file: Path) -> int:
    """The number of a room's last migration; nothing is migrated, and 0 means that the file is empty."""
    connection = _connect(file, create=False)
    try:
        return _version(connection)
    except apsw.Error as error:
        raise _ours(error, file) from error
    finally:
        connection.close()


#: PRAGMA takes no parameters, and statements are constants here.
_APPLICATION_STATEMENT = "PRAGMA application_id = " + str(_APPLICATION)
_VERSION_STATEMENTS = {n: "PRAGMA user_version = " + str(n) for n in range(1, len(MIGRATIONS) + 1)}


def _version(connection: apsw.Connection) -> int:
    version = connection.execute("PRAGMA user_version").get
    assert isinstance(version, int)
    return version


def _ours(error: BaseException, file: Path | None = None) -> BaseException:
    """SQLite's error as ours. By its kind, never by its text."""
    if isinstance(error, OSError):
        return StoreUnavailable(why=f"{file}: {error.strerror or error}")
    if not isinstance(error, apsw.Error):
        return error
    why = str(error)
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreBusy(seconds=BUSY_SECONDS, why=why)
    if isinstance(error, apsw.FullError):
        return StoreFull(why=why)
    if isinstance(error, apsw.NotADBError) and file is not None:
        return UrlInvalid(url=str(file), why="the file is not a SQLite database, or its head is damaged")
    if isinstance(error, apsw.NotADBError):
        return StoreCorrupt(why=why)
    if isinstance(error, (apsw.CorruptError, apsw.SQLError)):  # statements are constants: it is the schema that is not
        return StoreCorrupt(why=why)
    return StoreUnavailable(why=f"{why} ({type(error).__name__})")
