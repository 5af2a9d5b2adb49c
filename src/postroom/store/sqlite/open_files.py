"""The files of an open room: SQLite's connection, and our locks."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw

from postroom.errors import StoreBusy
from postroom.limits import BUSY_SECONDS
from postroom.store.files import guard
from postroom.store.files.reserve import Reserve
from postroom.store.sqlite.connection import connect, make_sure
from postroom.store.sqlite.errors import translated


class OpenFiles:
    def __init__(self, file: Path, create: bool) -> None:
        try:
            make_sure(file, create)
            self.reserve = Reserve(file, stat.S_IMODE(file.stat().st_mode) & 0o666)
            self.reserve.open(create=False)
        except (apsw.Error, OSError) as error:
            raise translated(error, file) from error
        try:
            with guard.registry():
                self._open(file)
        except BaseException as error:
            self.reserve.close()
            raise translated(error, file) from error
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
        try:
            self.reserve.take_turn()
        except StoreBusy:
            if (why := self.guard.who_writes()) is None:
                raise
            raise StoreBusy(seconds=BUSY_SECONDS, why=why) from None
        self.guard.await_writer()

    def end_turn(self) -> None:
        if not self._closed:
            self.guard.allow_recovery()
            self.reserve.end_turn()

    def check(self) -> None:
        """Before returning: check that the files on disk are the open ones."""
        self.guard.check_committed()

    def fit(self) -> None:
        """After a possibly large change: check the disk space."""
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
        """In a child process: drop its copy of the parent's write turn."""
        self.reserve.close()


def _connect_guarded(file: Path) -> tuple[apsw.Connection, guard.Guard]:
    held = guard.acquire(file)
    try:
        if not held.has_log:
            connect(file).close()  # to turn the log on, SQLite needs the file for itself
        held.hold_file()
        connection = connect(file)
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
