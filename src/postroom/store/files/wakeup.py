"""Wake-ups between processes that share a SQLite file: a named pipe for each waiting process.

A waiter makes its pipe in ``FILE-wake/`` before it looks at the queue; a committer writes a byte into each pipe there.
Those that wait for one queue form a line: their pipes' names have the queue's number and the time, and a committer with
one message wakes the first. There is no polling.

Named pipes rather than sockets, because a socket's path may have only about a hundred characters.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from threading import Lock
from time import monotonic, monotonic_ns

from postroom.errors import StoreUnavailable
from postroom.limits import RECHECK_SECONDS

_LINE = "line-"  # how the names of pipes begin whose waiters stand in a line


class PipeWaiter:
    def __init__(self, reader: int) -> None:
        self._reader = reader
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)
        self._closing = Lock()
        self._closed = False
        self.passes = False  # whether the next of its line is to be woken when this one leaves

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
        """End the wait, from any thread.

        Does nothing after closing, because another file may have the number by now.
        """
        with self._closing, contextlib.suppress(BlockingIOError):  # full: it is awake already
            if not self._closed:
                os.write(self._reader, b"w")

    def pass_on(self) -> None:
        self.passes = True

    def close(self) -> None:
        """Remove the pipe; a wake-up since the last look is passed on to the next in line."""
        with self._closing:
            self._closed = True
            with contextlib.suppress(BlockingIOError):
                self.passes |= bool(os.read(self._reader, 65536))
            os.close(self._reader)


@contextlib.contextmanager
def waiting(directory: Path, line: int | None = None) -> Iterator[PipeWaiter]:
    """A waiter whose pipe exists during the ``with`` block, in the line of a queue if one is given."""
    try:
        pipe, reader = _make_pipe(directory, line)
    except OSError as error:
        raise StoreUnavailable(why=f"cannot wait for messages: {directory}: {error.strerror}") from error
    waiter = PipeWaiter(reader)
    try:
        yield waiter
    except BaseException:
        waiter.pass_on()  # what it was woken for it has perhaps not looked at
        raise
    finally:
        with contextlib.suppress(OSError):
            pipe.unlink()
        waiter.close()
        if line is not None and waiter.passes:
            wake(directory, {line: 1}, others=False)
        with contextlib.suppress(OSError):
            directory.rmdir()


def _make_pipe(directory: Path, line: int | None) -> tuple[Path, int]:
    """A pipe, opened before it is visible: one without a reader would be taken for a dead one."""
    place = "" if line is None else f"{_LINE}{line}-{monotonic_ns():020}-"
    name = f"{place}{os.getpid()}-{token_hex(8)}"
    hidden, pipe = directory / f".{name}", directory / name
    while True:
        with contextlib.suppress(FileExistsError):  # it may be gone again: Path.mkdir would look for it, and complain
            os.mkdir(directory, 0o700)
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
    """Open the directory itself, not a link, and only if it is ours."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(folder).st_uid != os.geteuid():
        os.close(folder)
        raise PermissionError(errno.EPERM, "it belongs to another user", str(directory))
    return folder


def wake(directory: Path, lines: Mapping[int, int] | None = None, *, others: bool = True) -> None:
    """Wake all waiters, and remove pipes of dead processes.

    Never raises, because the commit has happened. With ``lines``, wake only so many of each line, and all ``others``.
    """
    with contextlib.suppress(OSError):
        folder = _open_folder(directory)
        left = None if lines is None else dict(lines)
        try:
            for name in sorted(os.listdir(folder)):
                if name.startswith("."):
                    continue
                line = _line_of(name)
                if left is None or (others and line is None):
                    _wake_one(name, folder)
                elif line is not None and left.get(line, 0) > 0:
                    left[line] -= _wake_one(name, folder)
        finally:
            os.close(folder)


def _line_of(name: str) -> int | None:
    """The queue of a waiter's line."""
    number = name.removeprefix(_LINE).partition("-")[0]
    return int(number) if name.startswith(_LINE) and number.isdecimal() else None


def _wake_one(name: str, folder: int) -> bool:
    """Whether there was a waiter to wake."""
    try:
        if not _is_pipe_of_ours(os.lstat(name, dir_fd=folder)):
            return False
        writer = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nobody reads it any more
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
        return False
    with contextlib.suppress(OSError):  # full: it is awake already
        if _is_pipe_of_ours(os.fstat(writer)):
            os.write(writer, b"w")
    os.close(writer)
    return True


def _is_pipe_of_ours(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == os.geteuid()
