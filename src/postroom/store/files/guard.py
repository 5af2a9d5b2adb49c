"""Protects a SQLite room and its log against other programs that open the file.

SQLite's locks belong to the process, and the system drops them as soon as *any* handle of the file is closed in it: by
another SQLite (the standard library's, in a notebook), or by whoever copies the file. Unprotected, that other SQLite
takes itself for the last user, and removes the log that we write to. So we hold *open file description* locks as well,
which only closing their own handle drops. See decision 0027.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from postroom.errors import StoreBusy, StoreReplaced
from postroom.limits import (
    BUSY_SECONDS,
    LOG_AHEAD_BYTES,
    LOG_AHEAD_FRAMES,
    LOG_AHEAD_TIMES,
    LOOK_SECONDS,
)
from postroom.store.kernel import owner
from postroom.store.kernel.base import Conflict

#: Where the system has no such locks, the check before each answer is what is left.
_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_GET: int = getattr(fcntl, "F_OFD_GETLK", 0)

# Bytes that SQLite locks; their places are part of its file format.
_SHARED_FIRST, _SHARED_COUNT = 0x40000002, 510  # of the room's file: held for as long as it is open
_WRITER = 120  # of the index of the log: who writes
_RECOVERY = 122  # who makes the index anew from the log
_FILE_ALONE = 123  # readers for whom the whole log is in the file: nobody may copy more into it
_OPEN = 128  # whoever can lock it alone takes the index for a dead one's, and empties it
_FRAME_HEADER = 24  # bytes before each page in the log
_PAUSE_SECONDS = 0.0002
_PAUSE_SECONDS_MAX = 0.002  # turns are short: whoever sleeps longer than one keeps those behind it waiting
_LONG_SECONDS, _LONG_PAUSE_SECONDS = 0.25, 0.02  # unless one is not
_ABSENT_SECONDS = 0.1  # whoever is the next and leaves a free turn for longer does not run


class Identity(NamedTuple):
    device: int
    inode: int


def _lock(kind: int, first: int, count: int, process: int = 0) -> bytes:
    """A ``struct flock``. The process is set in results; in queries it must be 0."""
    if sys.platform == "darwin":
        return struct.pack("@qqihh", first, count, process, kind, os.SEEK_SET)
    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, first, count, process)


def _is_free(handle: int, lock: bytes) -> bool:
    """Whether no other handle holds a conflicting lock."""
    return _holder(handle, lock) is None


def _holder(handle: int, lock: bytes) -> int | None:
    """The process with a conflicting lock; -1 for an open file description lock, None if there is none."""
    answer = fcntl.fcntl(handle, _GET, lock)
    places = "@16xih" if sys.platform == "darwin" else "@h22xi"
    first, second = struct.unpack_from(places, answer)
    process, kind = (first, second) if sys.platform == "darwin" else (second, first)
    return None if kind == fcntl.F_UNLCK else process


_FILE_HELD, _FILE_LEFT = (_lock(kind, _SHARED_FIRST, _SHARED_COUNT) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_INDEX_HELD, _INDEX_LEFT = (_lock(kind, _OPEN, 1) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_RECOVERY_HELD, _RECOVERY_LEFT = (_lock(kind, _RECOVERY, 1) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_ALONE_HELD, _ALONE_LEFT = (_lock(kind, _FILE_ALONE, 1) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_WRITER_ASKED = _lock(fcntl.F_WRLCK, _WRITER, 1)
_TURN_TAKEN, _TURN_OVER = (_lock(kind, 0, 1) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK))
#: Of the same file: who waits for the turn, and is the next to have it.
_NEXT_TAKEN, _NEXT_OVER = (_lock(kind, 1, 1) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK))
_BOTH_TAKEN = _lock(fcntl.F_WRLCK, 0, 2)  # nobody writes, and nobody waits
_ANY_ASKED = _lock(fcntl.F_WRLCK, 0, 0)


def _try(handle: int, lock: bytes) -> bool:
    if _SET is None:
        return True
    try:
        fcntl.fcntl(handle, _SET, lock)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _pauses(why: str) -> Iterator[None]:
    """Yield for each attempt until the time limit, with growing pauses."""
    began, pause = time.monotonic(), _PAUSE_SECONDS
    while True:
        yield
        waited = time.monotonic() - began
        if waited > BUSY_SECONDS:
            raise StoreBusy(seconds=BUSY_SECONDS, why=why)
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX if waited < _LONG_SECONDS else _LONG_PAUSE_SECONDS)


def _await_lock(handle: int, lock: bytes, why: str) -> None:
    for _ in _pauses(why):
        if _try(handle, lock):
            return


def _await_next(handle: int) -> None:
    """Wait to be next in line. A stopped process (SIGSTOP) that is next does not block the others."""
    free_since: float | None = None
    for _ in _pauses("other processes write"):
        if _try(handle, _NEXT_TAKEN):
            return
        if not _is_free(handle, _TURN_TAKEN):
            free_since = None
        elif free_since is None:
            free_since = time.monotonic()
        elif time.monotonic() - free_since > _ABSENT_SECONDS:
            return


def _await_turn(handle: int) -> None:
    if not _try(handle, _NEXT_TAKEN):
        _await_next(handle)
    _await_lock(handle, _TURN_TAKEN, "another process writes")


def take_turn(handle: int) -> None:
    """Become the only writer, even if SQLite's lock is dropped meanwhile.

    One waiting process is next in line, so the last writer cannot overtake it.
    """
    if _SET is not None:
        try:
            fcntl.fcntl(handle, _SET, _BOTH_TAKEN)
        except OSError:
            _await_turn(handle)
        finally:
            fcntl.fcntl(handle, _SET, _NEXT_OVER)


def end_turn(handle: int) -> None:
    """Let the next one write; may be called twice."""
    if _SET is not None:
        fcntl.fcntl(handle, _SET, _TURN_OVER)


class Guard:
    """The locks of one file, shared by all rooms of this process on it.

    Closing any handle of the file drops SQLite's locks in the process. So all rooms share one, and it stays open while
    anything else in the process has the file open.
    """

    def __init__(self, file: Path) -> None:
        self._names = (os.fspath(file), f"{file}-wal")
        self._file = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        self._index = self._log = -1  # not open yet
        self._map(self._index)
        self._fitting = LOG_AHEAD_FRAMES  # so many pages the log may have before it is made longer
        self.identity = _identity(self._file)
        self._writer = _lock(fcntl.F_WRLCK, _WRITER, 1, os.getpid())
        self._looked = 0.0  # when the room's file was last looked for
        self._readers = 0  # that hold the file as it is
        self._counting = threading.Lock()
        self.users = 0

    @property
    def has_log(self) -> bool:
        """Whether the file uses a write-ahead log, and no rollback journal is pending."""
        return os.pread(self._file, 2, 18) == b"\2\2" and not os.path.lexists(f"{self._names[0]}-journal")

    def hold_file(self) -> None:
        """From now on nobody can remove the log. Called before SQLite opens it."""
        _await_lock(self._file, _FILE_HELD, "another process opens or closes the room")

    def hold_index(self) -> None:
        """From now on nobody can truncate the index of the log. Called after SQLite has created it."""
        before, self._index = self._index, _reopened(self._index, f"{self._names[0]}-shm")
        if self._index != before:
            self._unmap()
            self._map(self._index)
        self._log = _reopened(self._log, self._names[1])
        _await_lock(self._index, _INDEX_HELD, "another process opens or closes the room")

    def let_go(self) -> None:
        """Release the locks when the last room of the process closes, so that SQLite may clean up."""
        if _SET is not None:
            fcntl.fcntl(self._file, _SET, _FILE_LEFT)
            if self._index >= 0:
                fcntl.fcntl(self._index, _SET, _INDEX_LEFT)

    def close(self, sure: bool = False) -> bool:
        """Close the handles, unless another user of the file in this process would lose its locks."""
        handles = [handle for handle in (self._index, self._file) if handle >= 0]
        if not sure and _SET is not None:
            for handle in handles:
                if not _is_free(handle, _ANY_ASKED):
                    return False
        self._unmap()
        for handle in [*handles, *([self._log] if self._log >= 0 else [])]:
            os.close(handle)
        return True

    def _map(self, index: int) -> None:
        self.shown = mmap.mmap(index, _PICTURE.size, prot=mmap.PROT_READ)
        self._numbers = memoryview(self.shown)[: HEAD.stop].cast("I")

    def _unmap(self) -> None:
        self._numbers.release()
        self.shown.close()  # and with it a handle of its own

    def await_writer(self) -> None:
        """Wait for another SQLite library of this process that writes: SQLite's lock does not exclude it."""
        if _SET is not None and fcntl.fcntl(self._index, _GET, _WRITER_ASKED) == self._writer:
            for _ in _pauses("another program part of this process writes to the file of the room"):
                if not self._writes():
                    return

    def who_writes(self) -> str | None:
        """The process with the write lock, in words; None if there is none or it is unknown."""
        process = _holder(self._index, _WRITER_ASKED) if _SET is not None else None
        if process is None or process <= 0:
            return None
        if owner.is_stopped(owner.process_token(process)):
            return f"process {process} writes, and is stopped: let it go on (kill -CONT {process}), or end it"
        return f"process {process} writes"

    def forbid_recovery(self) -> None:
        """After a change has begun: nobody may recover the index, which is just being written."""
        if not _try(self._index, _RECOVERY_HELD):
            raise Conflict("another program part of this process makes the index of the log anew")

    def allow_recovery(self) -> None:
        if _SET is not None:
            fcntl.fcntl(self._index, _SET, _RECOVERY_LEFT)

    def check_lock(self) -> None:
        """Before a commit: check that SQLite still has the write lock, and make room in the log.

        Without the lock nothing is written, and the work is repeated.
        """
        if _SET is not None and fcntl.fcntl(self._index, _GET, _WRITER_ASKED) != self._writer:
            raise Conflict("another program part of this process dropped the lock to write")
        if self._numbers[_FRAMES] > self._fitting:
            self._lengthen()
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self.check_files()

    def _lengthen(self) -> None:
        """Make the log longer before it has to be.

        A commit that makes the file longer waits twice as long: its sync has the file system write its journal, too.
        """
        frames, (page,) = self._numbers[_FRAMES] + LOG_AHEAD_FRAMES, _PAGE.unpack_from(self.shown)
        size, frame = os.fstat(self._log).st_size, (page & 0xFE00 | (page & 1) << 16) + _FRAME_HEADER
        if size < frames * frame:
            with contextlib.suppress(OSError):  # on a full disk the log grows by itself, or does not
                for _ in range(LOG_AHEAD_TIMES):  # the system keeps what is written at once as one: slower to change
                    size += os.pwrite(self._log, bytes(LOG_AHEAD_BYTES), size)
        self._fitting = max(frames, size // frame) - LOG_AHEAD_FRAMES

    def check_committed(self) -> None:
        """After a commit, before returning: check that the log was not removed; with our locks only a person can do
        that."""
        if _SET is None:
            self.check_files()

    def _writes(self) -> bool:
        """Whether any SQLite library in this process has the write lock."""
        return _SET is not None and fcntl.fcntl(self._index, _GET, _WRITER_ASKED) == self._writer

    def check_files(self) -> int:
        """Check that the open files are those that a new process would open. Returns the size of the log."""
        self._looked = time.monotonic()
        for name, handle in zip(self._names, (self._file, self._log), strict=True):
            if _identity(name) != _identity(handle):
                raise StoreReplaced(file=name)
        return os.fstat(self._log).st_size

    @property
    def replaced(self) -> bool:
        """Whether the files were replaced."""
        try:
            self.check_files()
        except StoreReplaced:
            return True
        return False

    def picture(self) -> Overview:
        """The state of the log that readers see now."""
        return Overview(*_PICTURE.unpack_from(self.shown))

    def begin_reading(self) -> Overview | None:
        """Before a read: the state to compare afterwards; None if the read cannot be invalidated.

        If the whole log is checkpointed, SQLite reads only the file, and only a lock keeps it unchanged, because the
        log may restart any number of times. Then we hold that lock as well.
        """
        seen = self.picture()
        if _SET is None or seen.copied != seen.frames:
            return seen
        with self._counting:
            if self._readers or _try(self._index, _ALONE_HELD):
                self._readers += 1
                return None
        return seen  # someone is about to copy

    def end_reading(self, seen: Overview | None) -> bool:
        """After a read, once; whether it is still valid."""
        if seen is not None:
            return seen.lasts(self.picture())
        with self._counting:
            self._readers -= 1
            if not self._readers and _SET is not None:
                fcntl.fcntl(self._index, _SET, _ALONE_LEFT)
        return True


class Overview(NamedTuple):
    """The header of a log's index."""

    frames: int  # committed pages in the log
    salt: bytes  # changes when the log begins anew
    copied: int  # pages that are in the room's file for certain
    copying: int  # and those that somebody began to copy

    def lasts(self, now: Overview) -> bool:
        """Whether a read that began here is still valid: its pages were not overwritten.

        When a log restarts, it was copied completely, and how much was added before is unknown.
        """
        return now.salt == self.salt and now.copying <= self.frames


_PICTURE = struct.Struct("@16xI12x8s56xI28xI")


#: What every commit changes there: how many there were, what is in the log, and checksums of all of it.
HEAD = slice(8, 48)
_FRAMES = 4  # the place of the pages in the log, in numbers of 32 bits
_PAGE = struct.Struct("@14xH")  # the size of a page; 65,536 is 1


def _reopened(handle: int, name: str) -> int:
    """A handle of the current file: a guard that was kept without a room may have an old one."""
    if handle >= 0 and _identity(handle) == _identity(name):
        return handle
    opened = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    if handle >= 0:
        os.close(handle)
    return opened


def _identity(file: str | int) -> Identity | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return Identity(status.st_dev, status.st_ino)


_registry = threading.RLock()
#: By the file and its place: one that was moved while it is open has its log under another name.
_guards: dict[tuple[Identity | None, str], Guard] = {}


@contextlib.contextmanager
def registry() -> Iterator[None]:
    """Opens and closes rooms of one process one at a time."""
    with _registry:
        yield


def acquire(file: Path) -> Guard:
    """The guard of a file, without locks unless another room of this process has it."""
    place = os.path.realpath(file)
    guard = _guards.get((_identity(place), place))
    if guard is None:
        guard = Guard(file)
        _guards[guard.identity, place] = guard
    guard.users += 1
    return guard


def release(guard: Guard) -> None:
    """Release one room's use; call it before SQLite closes, and ``tidy`` after."""
    guard.users -= 1
    if guard.users == 0:
        guard.let_go()


def tidy() -> None:
    """Close unused handles."""
    for key, guard in list(_guards.items()):
        if guard.users == 0 and guard.close():
            del _guards[key]


def _forget() -> None:
    """In a child process: close copies of the parent's locks."""
    global _registry
    _registry = threading.RLock()
    for guard in _guards.values():
        guard.close(sure=True)
    _guards.clear()


os.register_at_fork(after_in_child=_forget)
