"""The store on SQLite: write turns, durable commits, and unconfirmed ones."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from postroom.errors import CommitUnknown, PostroomError, StoreFull
from postroom.model.moment import Clock, system_clock
from postroom.model.progress import OnProgress
from postroom.store.files import guard, wakeup
from postroom.store.files.doubt import Doubt
from postroom.store.files.reserve import EMPTYING
from postroom.store.kernel.base import Conflict, Lines, Waiter
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite.connection import MAPPED, VERSION_STATEMENTS, connect, copy, copy_file, migrate, version
from postroom.store.sqlite.errors import translated
from postroom.store.sqlite.express import ExpressLane
from postroom.store.sqlite.open_files import OpenFiles
from postroom.store.sqlite.session import SqliteSession

T = TypeVar("T")


class SqliteStore(ExpressLane):
    def __init__(
        self, file: Path, *, actor: str, create: bool = True, clock: Clock = system_clock, mapped: bool = False
    ) -> None:
        self._wake_directory = file.with_name(file.name + "-wake")
        self._doubt = Doubt(file)
        self._turn = False  # whether we may have the turn of the writers
        self._reads = False  # whether a reader is under way
        self._picture: guard.Overview | None = None  # what it sees, unless nothing can overtake it
        files = self._files = OpenFiles(file, create)
        try:
            if mapped:
                files.connection.execute(MAPPED).fetchall()
            files.take_turn()
            made = migrate(files.connection, str(file), create)
            files.reserve.start(files.guard.check_files())
        except BaseException as error:
            files.close()
            raise translated(error, file) from error
        files.reserve.end_turn()
        super().__init__(SqliteSession(files.connection, clock, str(file)), actor)
        self.made = made
        self._finalizer = weakref.finalize(self, files.close)
        self._settle_others()

    def copy_to(self, file: Path, progress: OnProgress) -> None:
        # A connection of its own: nobody who shares this store waits for it.
        copy_file(Path(self.session.place), file, progress)

    def copy_from(self, file: Path, progress: OnProgress) -> None:
        with self._mutex, self._entered():
            try:
                self._take_turn("restore")
                with contextlib.closing(connect(file)) as source:
                    copy(source, self.session.connection, progress)
            except BaseException as error:
                self._raise_ours(error)
            self._stop("the room was restored; open it again")
        self._wake_after_commit()

    def waiter(self, line: int | None = None) -> AbstractContextManager[Waiter]:
        return wakeup.waiting(self._wake_directory, line)

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
        """Whether the reads were one consistent snapshot."""
        reads, self._reads = self._reads, False
        return not reads or self._files.guard.end_reading(self._picture)

    def _start(self, statement: str) -> None:
        session = self.session
        try:
            session.execute(statement)
        except apsw.Error as error:
            raise translated(error) from error
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
        """Settle an unconfirmed commit of another process; raises if that is not possible."""
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
        """Make another commit: afterwards the previous one is visible to all, or was overwritten."""
        execute = self.session.execute
        try:
            execute("BEGIN IMMEDIATE")
            self._files.guard.forbid_recovery()
            execute(VERSION_STATEMENTS[version(self.session.connection)])
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
        return translated(error)

    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        if isinstance(error, Conflict):  # before anything was written
            return error
        # Only these two are certain: nothing was written, or there was no space for the record of the commit.
        if isinstance(error, (apsw.BusyError, apsw.FullError)):
            ours = translated(error)
            assert isinstance(ours, PostroomError)
            return ours
        return None

    def _stop(self, why: str) -> None:
        super()._stop(why)
        self._finalizer()

    def _forked(self) -> None:
        super()._forked()
        self._waiting.clear()
        self._finalizer.detach()
        self._files.forked()

    def _rewrite(self) -> None:
        self._take_turn("scrub")
        self.session.execute("VACUUM")
        self.session.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._files.check()

    def _wake_after_commit(self, lines: Lines | None = None) -> None:
        wakeup.wake(self._wake_directory, lines)
