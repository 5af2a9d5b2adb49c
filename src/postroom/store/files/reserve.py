"""Space that is kept for the day when the disk is full: to receive, to settle and to open a room needs a little.

``FILE-reserve`` takes it up as long as all is well. Whoever finds the disk full and has work that empties the room
gives the space up; from then on nobody adds to the room until the reserve can be made again. Writers take turns on the
same file.
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
    "query-open query-close hand-out done release extend fail".split()
)


class Reserve:
    """The reserve of one room, with a handle of our own on it."""

    def __init__(self, file: Path, mode: int) -> None:
        self._name = f"{file}-reserve"
        self._mode = mode
        self._wanted = RESERVE_BYTES
        self._size = 0
        self._looked = 0.0  # when its size was last asked for
        self._tried = 0.0  # when it was last tried to make it again
        self._handle: int | None = None

    def open(self, create: bool) -> None:
        """Have a handle. On a full disk there may be no way to make the file: then there is no reserve, either."""
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
        """In our turn: refuse work that adds to the room while the reserve is given up, and make it again if we can."""
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
        """In our turn: to copy the log into the room's file takes at most its size once more; that must be possible."""
        wanted = RESERVE_BYTES + (log_size if log_size > RESERVE_BYTES else 0)
        if wanted > self._wanted:
            self._wanted = wanted
            self._make()

    def start(self, log_size: int) -> None:
        """In our turn, after opening: as large as it should be."""
        self.fit(log_size)
        if self._handle is not None and self._size > self._wanted:
            os.ftruncate(self._handle, self._wanted)
        self._make()

    def give_up(self, whole: bool = False) -> bool:
        """Let the space go, all but what it takes to open the room; False if there is none."""
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
    """Space on the disk, not a hole."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, begin, end - begin)
    else:
        block = bytes(1024 * 1024)
        while begin < end:
            begin += os.pwrite(handle, block[: end - begin], begin)
