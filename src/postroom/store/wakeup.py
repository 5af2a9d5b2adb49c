"""Wake-ups between processes that share a SQLite file: a pipe with a name for everyone who waits.

A waiter makes its pipe in ``FILE-wake/`` before it looks at the queue; a committer writes a byte into each pipe there.
Nobody polls. Named pipes rather than sockets, because a socket's path may have only about a hundred characters.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
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
        directory.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the last waiter left and took the directory with it
            os.mkfifo(hidden, 0o600)
            break
    reader = os.open(hidden, os.O_RDWR | os.O_NONBLOCK)  # RDWR: a lone reader would see end-of-file after each writer
    hidden.rename(pipe)
    return pipe, reader


def wake(directory: Path) -> None:
    """Wake everyone who waits; clear away the pipes of those who died. Never raises: the commit has happened."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if not name.startswith("."):
                _wake_one(directory / name)


def _wake_one(pipe: Path) -> None:
    try:
        writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nobody reads it any more
            with contextlib.suppress(OSError):
                pipe.unlink()
        return
    with contextlib.suppress(OSError):  # full: it is awake already
        os.write(writer, b"w")
    os.close(writer)
