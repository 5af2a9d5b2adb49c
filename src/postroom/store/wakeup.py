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
    pipe = _make_pipe(directory)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # RDWR: a lone reader would see end-of-file after each writer
    try:
        yield PipeWaiter(reader)
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            pipe.unlink()
        with contextlib.suppress(OSError):
            directory.rmdir()


def _make_pipe(directory: Path) -> Path:
    pipe = directory / f"{os.getpid()}-{token_hex(8)}"
    while True:
        directory.mkdir(exist_ok=True)
        try:
            os.mkfifo(pipe, 0o600)
        except FileNotFoundError:  # the last waiter left and took the directory with it
            continue
        return pipe


def wake(directory: Path) -> None:
    """Wake everyone who waits; clear away the pipes of those who died."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    for name in names:
        pipe = directory / name
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nobody reads it any more
                with contextlib.suppress(OSError):
                    pipe.unlink()
            continue
        with contextlib.suppress(OSError):  # full: it is awake already
            os.write(writer, b"w")
        os.close(writer)
