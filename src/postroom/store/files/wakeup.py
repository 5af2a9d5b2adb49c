"""Wake-ups between processes that share a SQLite file: a pipe with a name for everyone who waits.

A waiter makes its pipe in ``FILE-wake/`` before it looks at the queue; a committer writes a byte into each pipe there.
Nobody polls. Named pipes rather than sockets, because a socket's path may have only about a hundred characters.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from time import monotonic

from postroom.errors import StoreUnavailable
from postroom.limits import RECHECK_SECONDS


class PipeWaiter:
    def __init__(self, reader: int) -> None:
        self._reader = reader
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        # A committer killed between its commit and its byte wakes nobody, so a long sleep is a few shorter ones.
        end = monotonic() + seconds
        left = min(seconds, RECHECK_SECONDS)
        if self._poll.poll(max(0.0, left) * 1000):
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 65536)
            return True
        return monotonic() < end

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is awake already
            os.write(self._reader, b"w")


@contextlib.contextmanager
def waiting(directory: Path) -> Iterator[PipeWaiter]:
    """A waiter whose pipe exists for as long as the ``with`` block."""
    try:
        pipe, reader = _make_pipe(directory)
    except OSError as error:
        raise StoreUnavailable(why=f"cannot wait for messages: {directory}: {error.strerror}") from error
    try:
        yield PipeWaiter(reader)
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            pipe.unlink()
        with contextlib.suppress(OSError):
            directory.rmdir()


def _make_pipe(directory: Path) -> tuple[Path, int]:
    """A pipe that is open before anyone can see it: one that nobody reads would be taken for a dead one's."""
    name = f"{os.getpid()}-{token_hex(8)}"
    hidden, pipe = directory / f".{name}", directory / name
    while True:
        directory.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the last waiter left and took the directory with it
            folder = _open_folder(directory)
            try:
                os.mkfifo(hidden.name, 0o600, dir_fd=folder)
                # RDWR: a lone reader would see end-of-file after each writer
                reader = os.open(hidden.name, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                os.rename(hidden.name, pipe.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                os.close(folder)
            return pipe, reader


def _open_folder(directory: Path) -> int:
    """The directory itself and no link to one, and ours: in another's, names could lead anywhere."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(folder).st_uid != os.geteuid():
        os.close(folder)
        raise PermissionError(errno.EPERM, "it belongs to another user", str(directory))
    return folder


def wake(directory: Path) -> None:
    """Wake everyone who waits; clear away the pipes of those who died. Never raises: the commit has happened."""
    with contextlib.suppress(OSError):
        folder = _open_folder(directory)
        try:
            for name in os.listdir(folder):
                if not name.startswith("."):
                    _wake_one(name, folder)
        finally:
            os.close(folder)


def _wake_one(name: str, folder: int) -> None:
    try:
        if not _is_pipe_of_ours(os.lstat(name, dir_fd=folder)):
            return
        writer = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nobody reads it any more
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
        return
    with contextlib.suppress(OSError):  # full: it is awake already
        if _is_pipe_of_ours(os.fstat(writer)):
            os.write(writer, b"w")
    os.close(writer)


def _is_pipe_of_ours(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == os.geteuid()
