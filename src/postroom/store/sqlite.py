"""The store on SQLite: one file, no server, every commit on disk before it returns.

Through ``apsw``, which carries its own SQLite: the same version on every machine, and half the cost of a statement.
"""

from __future__ import annotations

import contextlib
import os
import stat
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import apsw

from postroom import faults
from postroom.errors import (
    CommitUnknown,
    PostroomError,
    RoomMissing,
    StoreBusy,
    StoreCorrupt,
    StoreFull,
    StoreNewer,
    StoreReplaced,
    StoreUnavailable,
    UrlInvalid,
)
from postroom.limits import BACKUP_PAGES, BUSY_SECONDS
from postroom.model.message import Draft, Message, Stored, message_hash
from postroom.model.moment import Clock, system_clock
from postroom.store.files import guard, rights, wakeup
from postroom.store.files.doubt import Doubt
from postroom.store.files.reserve import EMPTYING, Reserve
from postroom.store.kernel.base import Conflict, Progress, Store, Waiter
from postroom.store.kernel.journal import line_digest, put_digest
from postroom.store.kernel.session import About, Row, Session
from postroom.store.kernel.transaction import Transaction
from postroom.store.migrations import MIGRATIONS, for_sqlite
from postroom.store.proof.schema import misdescribed

T = TypeVar("T")

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
        found = [row[0] for row in self.rows("PRAGMA integrity_check(10)") if row[0] != "ok"]
        return [*found, *misdescribed(self.connection)]

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
        self._doubt = Doubt(file)
        self._turn = False  # whether we may have the turn of the writers
        self._reads = False  # whether a reader is under way
        self._picture: guard.Picture | None = None  # what it sees, unless nothing can overtake it
        files = self._files = _Files(file, create)
        try:
            if mapped:
                files.connection.execute(_MAPPED).fetchall()
            files.take_turn()
            _migrate(files.connection, str(file), create)
            files.reserve.start(files.guard.check_files())
        except BaseException as error:
            files.close()
            raise _ours(error, file) from error
        files.reserve.end_turn()
        super().__init__(SqliteSession(files.connection, clock, str(file)), actor)
        self._finalizer = weakref.finalize(self, files.close)
        self._settle_others()

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
                self._take_turn("send")
                found: list[Any] = execute(_OPEN_ONE, (queue,)).fetchall()
                if not found:
                    execute("ROLLBACK")
                    transaction.keys.give_back(key)
                    return None
                self._files.guard.forbid_recovery()
                arrivals, departed = found[0]
                execute(_PUT_ONE, (now, key, queue, actor, digest, key, queue, arrivals + 1, now, *draft, hash))
                if faults.armed:
                    _reach_both("send")
                self._files.guard.check_lock()
                committing = True
                execute("COMMIT")
                self._files.check()
                if faults.armed:
                    faults.reach("send.committed")
            except Conflict:
                self._rollback()
                return None
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
                self._take_turn("receive")
                try:
                    stored = _first(execute(_RECEIVE_ONE, (now, queue)).fetchall())
                except UnicodeDecodeError:  # the long way reads what is left of it
                    stored = None
                if stored is None or not stored.sound:
                    execute("ROLLBACK")
                    return None
                self._files.guard.forbid_recovery()
                key, actor = stored.key, self._transaction.journal.actor
                line = (key, stored.last, queue, queue, actor)
                execute(_TAKE_ONE, (now, *line, line_digest(now, "take", *line), now, key, stored.number, queue))
                if faults.armed:
                    _reach_both("receive")
                self._files.guard.check_lock()
                committing = True
                execute("COMMIT")
                self._files.check()
                if faults.armed:
                    faults.reach("receive.committed")
            except (Conflict, apsw.FullError):  # the long way has the reserve
                self._rollback()
                return None
            except BaseException as error:
                self._fail_express("receive", error, committing)
            finally:
                self._leave()
            return Message(stored)

    def _fail_express(self, label: str, error: BaseException, committing: bool) -> NoReturn:
        if committing or isinstance(error, StoreReplaced):
            self._raise_uncommitted(label, error)
        self._rollback()
        self._raise_ours(error)

    def copy_to(self, file: Path, progress: Progress) -> None:
        # A connection of its own: nobody who shares this store waits for it.
        copy_file(Path(self.session.place), file, progress)

    def copy_from(self, file: Path, progress: Progress) -> None:
        with self._mutex, self._entered():
            try:
                self._take_turn("restore")
                with contextlib.closing(_connect(file)) as source:
                    _copy(source, self.session.connection, progress)
            except BaseException as error:
                self._raise_ours(error)
            self._stop("the room was restored; open it again")
        self._wake_after_commit()

    def waiter(self) -> AbstractContextManager[Waiter]:
        return wakeup.waiting(self._wake_directory)

    def _once(self, label: str, work: Callable[[Transaction], T]) -> T:
        try:
            self._take_turn(label)
            return super()._once(label, work)
        except StoreFull as full:
            if label in EMPTYING and self._files.reserve.give_up():
                # What is in the log can now be copied into the room's file, and the log be written from its beginning.
                with contextlib.suppress(apsw.Error):
                    self.session.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                raise Conflict("the disk is full; the reserve was given up") from full
            raise

    def _take_turn(self, label: str) -> None:
        files = self._files
        self._turn = True
        files.take_turn()
        files.reserve.admit(label)

    def _leave(self) -> None:
        if self._reads:  # it was interrupted
            self._end_reading()
        if self._turn:
            self._turn = False
            self._files.end_turn()
        super()._leave()

    def _begin(self) -> None:
        self._start("BEGIN IMMEDIATE")
        self._files.guard.forbid_recovery()

    def _begin_reading(self) -> None:
        if self._doubt.told() is not None:
            self._turn = True
            self._settle_others()
        self._end_reading()
        self._picture, self._reads = self._files.guard.begin_reading(), True
        self._start("BEGIN")

    def _check_reading(self) -> None:
        if not self._end_reading():
            raise Conflict("another program part of this process dropped the lock to read")

    def _end_reading(self) -> bool:
        """Whether what was read, if anything, is what one moment had."""
        reads, self._reads = self._reads, False
        return not reads or self._files.guard.end_reading(self._picture)

    def _start(self, statement: str) -> None:
        session = self.session
        try:
            session.execute(statement)
        except apsw.Error as error:
            raise _ours(error) from error
        session.now = session.clock()

    def _commit(self) -> None:
        self._files.guard.check_lock()
        self.session.execute("COMMIT")
        self._files.fit()
        self._files.check()

    def _settle(self, label: str) -> None:
        self._doubt.note(label)
        self._rollback()
        if self._commit_over():
            self._doubt.clear()

    def _settle_others(self) -> None:
        """If someone left a commit in doubt, settle it; else nobody may look."""
        label = self._doubt.told()
        if label is None:
            return
        try:
            self._files.take_turn()
            if not self._commit_over():
                raise CommitUnknown(label=label, why="the disk still refuses to settle it")
            self._doubt.clear()
        finally:
            self._files.end_turn()

    def _commit_over(self) -> bool:
        """One more commit: after it, the one before is there for all, or was written over and is gone."""
        execute = self.session.execute
        try:
            execute("BEGIN IMMEDIATE")
            self._files.guard.forbid_recovery()
            execute(_VERSION_STATEMENTS[_version(self.session.connection)])
            execute("COMMIT")
            self._files.check()
        except (apsw.Error, PostroomError, Conflict):
            self._rollback()
            return False
        return True

    def _rollback(self) -> None:
        if self.session.connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # the error that brought us here is the one to tell
                self.session.execute("ROLLBACK")

    def _translated(self, error: BaseException) -> BaseException:
        return _ours(error)

    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        if isinstance(error, Conflict):  # before anything was written
            return error
        # Only these two are certain: nothing was written, or there was no space for the record of the commit.
        if isinstance(error, (apsw.BusyError, apsw.FullError)):
            ours = _ours(error)
            assert isinstance(ours, PostroomError)
            return ours
        return None

    def _stop(self, why: str) -> None:
        super()._stop(why)
        self._finalizer()

    def _forked(self) -> None:
        super()._forked()
        self._finalizer.detach()
        self._files.forked()

    def _rewrite(self) -> None:
        self._take_turn("scrub")
        self.session.execute("VACUUM")
        self.session.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._files.check()

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


class _Files:
    """The files of an open room: SQLite's connection to them, and what we hold beside it."""

    def __init__(self, file: Path, create: bool) -> None:
        try:
            _make_sure(file, create)
            self.reserve = Reserve(file, stat.S_IMODE(file.stat().st_mode) & 0o666)
            self.reserve.open(create=False)
        except (apsw.Error, OSError) as error:
            raise _ours(error, file) from error
        try:
            with guard.registry():
                self._open(file)
        except BaseException as error:
            self.reserve.close()
            raise _ours(error, file) from error
        self._closed = False

    def _open(self, file: Path) -> None:
        while True:
            try:
                self.connection, self.guard = _connect_guarded(file)
                break
            except (apsw.IOError, apsw.FullError):
                # On a full disk there is no space for the index of the log: the rest of the reserve is for that.
                if not self.reserve.give_up(whole=True):
                    raise
        self.reserve.open(create=True)

    def take_turn(self) -> None:
        self.reserve.take_turn()
        self.guard.await_writer()

    def end_turn(self) -> None:
        if not self._closed:
            self.guard.allow_recovery()
            self.reserve.end_turn()

    def check(self) -> None:
        """Before an answer: what was written is where the next one will look for it."""
        self.guard.check_committed()

    def fit(self) -> None:
        """After what may have been a large change."""
        self.reserve.fit(self.guard.check_files())

    def close(self) -> None:
        with guard.registry():
            self.end_turn()
            self._closed = True
            if self.guard.replaced:  # what we have in our log must not be copied over what others have written since
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            guard.release(self.guard)
            self.connection.close(True)
            guard.tidy()
            self.reserve.close()

    def forked(self) -> None:
        """In a child process: its copy of the turn must not outlive the parent's."""
        self.reserve.close()


def _make_sure(file: Path, create: bool) -> None:
    """There is a file, or may be one."""
    if not create and not file.exists():
        raise RoomMissing(url=str(file))
    if not file.parent.is_dir():
        raise StoreUnavailable(why=f"the directory {file.parent} does not exist")
    if not file.exists():
        rights.make_private(file)


def _connect_guarded(file: Path) -> tuple[apsw.Connection, guard.Guard]:
    held = guard.acquire(file)
    try:
        if not held.has_log:
            _connect(file).close()  # to turn the log on, SQLite needs the file for itself
        held.hold_file()
        connection = _connect(file)
        try:
            held.hold_index()
        except BaseException:
            connection.close()
            raise
    except BaseException:
        guard.release(held)
        guard.tidy()
        raise
    return connection, held


def _connect(file: Path) -> apsw.Connection:
    connection = apsw.Connection(os.fspath(file))
    try:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        _check_ours(connection, file)
        # One plan per statement, whatever its values; else SQLite plans anew at every execution, 5 times slower.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def copy_file(source: Path, target: Path, progress: Progress) -> None:
    """Copy a room's file with all that is committed, as it is in one moment; the target is a file that is empty."""
    try:
        _make_sure(source, create=False)
        connection = _connect(source)
    except (apsw.Error, OSError) as error:
        raise _ours(error, source) from error
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
    try:
        _make_sure(file, create=False)
        with contextlib.closing(_connect(file)) as connection:
            return _version(connection)
    except (apsw.Error, OSError) as error:
        raise _ours(error, file) from error


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
