"""What keeps a SQLite room and its log together while this process has them open, whoever else opens the file.

SQLite's locks belong to the process, and the system drops them as soon as *any* handle of the file is closed in it: by
another SQLite (the standard library's, in a notebook), or by whoever copies the file. Unprotected, that other SQLite
takes itself for the last user, and removes the log that we write to. So we hold locks of our own beside SQLite's:
*open file description* locks, which only their own handle drops. Decision 0027 has the argument.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from postroom.errors import StoreBusy, StoreReplaced
from postroom.limits import BUSY_SECONDS
from postroom.store.base import Conflict

#: Where the system has no such locks, the check before each answer is what is left.
_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_GET: int = getattr(fcntl, "F_OFD_GETLK", 0)

# Bytes that SQLite locks; their places are part of its file format.
_SHARED_FIRST, _SHARED_COUNT = 0x40000002, 510  # of the room's file: held for as long as it is open
_WRITER = 120  # of the index of the log: who writes
_OPEN = 128  # whoever can lock it alone takes the index for a dead one's, and empties it
_PAUSE_SECONDS = 0.0002
_PAUSE_SECONDS_MAX = 0.02


class Identity(NamedTuple):
    device: int
    inode: int


def _lock(kind: int, first: int, count: int) -> bytes:
    """A ``struct flock``; its process must be 0 in these calls."""
    if sys.platform == "darwin":
        return struct.pack("@qqihh", first, count, 0, kind, os.SEEK_SET)
    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, first, count, 0)


def _holder(answer: bytes) -> tuple[int, int]:
    """Of a lock that is in the way: its kind, and the process that has it."""
    if sys.platform == "darwin":
        _, _, process, kind, _ = struct.unpack("@qqihh", answer)
    else:
        kind, _, _, _, process = struct.unpack("@hhqqi4x", answer)
    return kind, process


_FILE_HELD, _FILE_LEFT = (_lock(kind, _SHARED_FIRST, _SHARED_COUNT) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_INDEX_HELD, _INDEX_LEFT = (_lock(kind, _OPEN, 1) for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK))
_WRITER_ASKED = _lock(fcntl.F_WRLCK, _WRITER, 1)
_TURN_TAKEN, _TURN_OVER = (_lock(kind, 0, 1) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK))
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
    """Tries until the time of a writer is up; the pauses between them grow."""
    end, pause = time.monotonic() + BUSY_SECONDS, _PAUSE_SECONDS
    while True:
        yield
        if time.monotonic() > end:
            raise StoreBusy(seconds=BUSY_SECONDS, why=why)
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)


def _await_lock(handle: int, lock: bytes, why: str) -> None:
    for _ in _pauses(why):
        if _try(handle, lock):
            return


def take_turn(handle: int) -> None:
    """Be the only Postroom that writes, also if SQLite's lock is dropped in the middle."""
    if not _try(handle, _TURN_TAKEN):
        _await_lock(handle, _TURN_TAKEN, "another process writes")


def end_turn(handle: int) -> None:
    """Let the next one write; does no harm twice."""
    if _SET is not None:
        fcntl.fcntl(handle, _SET, _TURN_OVER)


class Guard:
    """The locks of one file, for all rooms of this process that are open on it. Its handles are closed with the last.

    To close a handle drops SQLite's locks, ours as any other: that is why there is one for all, and why it stays open
    while someone else of the process has the file open.
    """

    def __init__(self, file: Path) -> None:
        self._names = (os.fspath(file), f"{file}-wal")
        self._file = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        self._index: int | None = None
        found = os.fstat(self._file)
        self.identity = Identity(found.st_dev, found.st_ino)
        self._log: Identity | None = None
        self.users = 0

    @property
    def has_log(self) -> bool:
        """Whether the file says that it has a log, and no journal of another kind waits to be rolled back."""
        return os.pread(self._file, 2, 18) == b"\2\2" and not os.path.lexists(f"{self._names[0]}-journal")

    def hold_file(self) -> None:
        """From now on nobody can remove the log. Before SQLite opens it."""
        _await_lock(self._file, _FILE_HELD, "another process opens or closes the room")

    def hold_index(self) -> None:
        """From now on nobody can empty the index of the log. After SQLite has made it."""
        if self._index is None:
            self._index = os.open(f"{self._names[0]}-shm", os.O_RDWR | os.O_CLOEXEC)
        _await_lock(self._index, _INDEX_HELD, "another process opens or closes the room")
        self._log = _identity(self._names[1])

    def let_go(self) -> None:
        """The last room of the process closes: SQLite may tidy up."""
        if _SET is not None:
            fcntl.fcntl(self._file, _SET, _FILE_LEFT)
            if self._index is not None:
                fcntl.fcntl(self._index, _SET, _INDEX_LEFT)

    def close(self, sure: bool = False) -> bool:
        """Close the handles, unless another user of the file in this process would lose its locks by that."""
        handles = [handle for handle in (self._index, self._file) if handle is not None]
        if not sure and _SET is not None:
            for handle in handles:
                if _holder(fcntl.fcntl(handle, _GET, _ANY_ASKED))[0] != fcntl.F_UNLCK:
                    return False
        for handle in handles:
            os.close(handle)
        return True

    def await_writer(self) -> None:
        """Wait for another SQLite of this process that writes: SQLite's lock does not keep two of one process apart."""
        if self._writer()[1] == os.getpid():
            for _ in _pauses("another program part of this process writes to the file of the room"):
                if self._writer()[1] != os.getpid():
                    return

    def check_lock(self) -> None:
        """Before a commit: SQLite still has the lock to write. Else nothing is written, and the work is done again."""
        if _SET is not None and self._writer() != (fcntl.F_WRLCK, os.getpid()):
            raise Conflict("another program part of this process dropped the lock to write")

    def _writer(self) -> tuple[int, int]:
        if _SET is None or self._index is None:
            return fcntl.F_UNLCK, 0
        return _holder(fcntl.fcntl(self._index, _GET, _WRITER_ASKED))

    def check_files(self) -> int:
        """Before an answer: the files that were written are those that the next one to open the room will find.

        Answers with the size of the log.
        """
        room, log = self._names
        found = _found(log)
        if found is None or (found.st_dev, found.st_ino) != self._log:
            raise StoreReplaced(file=log)
        if _identity(room) != self.identity:
            raise StoreReplaced(file=room)
        return found.st_size

    def picture(self) -> Picture:
        """Which state of the log readers see now."""
        assert self._index is not None
        return Picture(*_PICTURE.unpack(os.pread(self._index, _PICTURE.size, 0)))


class Picture(NamedTuple):
    """What the index of a log says in its head."""

    frames: int  # committed pages in the log
    salt: bytes  # changes when the log begins anew
    copied: int  # pages that are in the room's file for certain
    copying: int  # and those that somebody began to copy

    def lasts(self, now: Picture) -> bool:
        """Whether a reader who began here has not been overtaken: its pages were not written over."""
        if now.salt == self.salt:
            return now.copying <= self.frames
        return self.copied == self.frames and now.copying == 0


_PICTURE = struct.Struct("@16xI12x8s56xI28xI")


def _found(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except OSError:
        return None


def _identity(name: str) -> Identity | None:
    found = _found(name)
    return Identity(found.st_dev, found.st_ino) if found else None


_registry = threading.RLock()
_guards: dict[Identity, Guard] = {}


@contextlib.contextmanager
def registry() -> Iterator[None]:
    """Rooms of one process are opened and closed one after another."""
    with _registry:
        yield


def acquire(file: Path) -> Guard:
    """The guard of a file, which holds nothing yet unless another room of this process has it."""
    known = _identity(os.fspath(file))
    guard = _guards.get(known) if known else None
    if guard is None:
        guard = Guard(file)
        _guards[guard.identity] = guard
    guard.users += 1
    return guard


def release(guard: Guard) -> None:
    """One room less; call it before SQLite closes, and ``tidy`` after."""
    guard.users -= 1
    if guard.users == 0:
        guard.let_go()


def tidy() -> None:
    """Close the handles that nobody needs any more."""
    for identity, guard in list(_guards.items()):
        if guard.users == 0 and guard.close():
            del _guards[identity]


def _forget() -> None:
    """In a child process: the locks are the parent's, and must not outlive it here."""
    global _registry
    _registry = threading.RLock()
    for guard in _guards.values():
        guard.close(sure=True)
    _guards.clear()


os.register_at_fork(after_in_child=_forget)
