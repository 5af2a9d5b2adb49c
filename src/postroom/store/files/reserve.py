"""Reserved disk space: receiving, settling and opening a room need a little even on a full disk.

``FILE-reserve`` occupies it. On a full disk, work that empties the room releases it; then nothing can be added to the
room until the reserve is back. Writers take turns on the same file.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from postroom.errors import StoreFull
from postroom.limits import LOOK_SECONDS, RESERVE_BYTES, RESERVE_OPEN_BYTES, RESERVE_SECONDS
from postroom.store.files import guard

#: Work that takes messages out, ends what was begun, or keeps someone alive. All other work adds to the room.
EMPTYING = frozenset(
    "receive segment unlock hold sweep release-lease lease heartbeat check compensate acknowledge settle conclude "
    "sphere-committing sphere-committed sphere-aborting outbox-attempt outbox-result outbox-drop remove-queue "
    "query-open query-close hand-out confirm give-back done release extend fail archive".split()
)


class Reserve:
    """The reserve of one room, with its own file handle."""

    def __init__(self, file: Path, mode: int) -> None:
        self._name = f"{file}-reserve"
        self._mode = mode
        self._wanted = RESERVE_BYTES
        self._size = 0
        self._looked = 0.0  # when its size was last asked for
        self._tried = 0.0  # when it was last tried to make it again
        self._handle: int | None = None

    def open(self, create: bool) -> None:
        """Open or create the file. On a full disk that may fail: then there is no reserve."""
        if self._handle is not None:
            return
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        try:
            self._handle = os.open(self._name, flags, self._mode)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOSPC, errno.EDQUOT):
                raise
        else:
            self._size = os.fstat(self._handle).st_size

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def take_turn(self) -> None:
        if self._handle is not None:
            guard.take_turn(self._handle)
            now = time.monotonic()
            if now - self._looked > LOOK_SECONDS:
                self._looked = now
                status = os.fstat(self._handle)
                self._size = status.st_size
                if status.st_nlink == 0:  # somebody removed it: take turns on the one that is there
                    self.close()
                    self.open(create=True)
                    self.take_turn()

    def end_turn(self) -> None:
        if self._handle is not None:
            guard.end_turn(self._handle)

    def admit(self, label: str) -> None:
        """In our turn: refuse work that adds to the room while there is no reserve, and restore it if possible."""
        if self._size >= self._wanted or label in EMPTYING:
            return
        now = time.monotonic()
        if now - self._tried >= RESERVE_SECONDS:
            self._tried = now
            self._make()
        if self._size < self._wanted:
            missing = self._wanted - self._size
            raise StoreFull(why=f"{missing} bytes of disk space that are kept for receiving are missing")

    def fit(self, log_size: int) -> None:
        """In our turn: make sure there is space to copy the log into the room's file, at most its size again."""
        wanted = RESERVE_BYTES + (log_size if log_size > RESERVE_BYTES else 0)
        if wanted > self._wanted:
            self._wanted = wanted
            self._make()

    def start(self, log_size: int) -> None:
        """In our turn, after opening: adjust the size."""
        self.fit(log_size)
        if self._handle is not None and self._size > self._wanted:
            os.ftruncate(self._handle, self._wanted)
        self._make()

    def give_up(self, whole: bool = False) -> bool:
        """Release the space, except what opening the room needs; False if there is none."""
        if self._handle is None:
            return False
        left = 0 if whole else RESERVE_OPEN_BYTES
        self._size = os.fstat(self._handle).st_size
        if self._size <= left:
            return False
        os.ftruncate(self._handle, left)
        self._size = left
        self._tried = time.monotonic()
        return True

    def _make(self) -> None:
        if self._handle is None:
            self.open(create=True)
        if self._handle is None:
            return
        self._size = os.fstat(self._handle).st_size
        if self._size >= self._wanted:
            return
        try:
            _allocate(self._handle, self._size, self._wanted)
        except OSError as error:
            os.ftruncate(self._handle, self._size)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
        else:
            self._size = self._wanted


def _allocate(handle: int, begin: int, end: int) -> None:
    """Allocate real disk space, no sparse file."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, begin, end - begin)
    else:
        block = bytes(1024 * 1024)
        while begin < end:
            begin += os.pwrite(handle, block[: end - begin], begin)
