"""A temporary room, in memory where possible, else in a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

from postroom.errors import ArgumentInvalid
from postroom.model.moment import Clock, in_microseconds, system_clock
from postroom.room import Postroom, open

_IN_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it


class HandClock:
    """A clock that only moves when it is turned. It begins now, or at ``microseconds`` since 1970."""

    def __init__(self, microseconds: int | None = None) -> None:
        if microseconds is not None and (isinstance(microseconds, bool) or not isinstance(microseconds, int)):
            raise ArgumentInvalid(argument="microseconds", why="a whole number is expected, microseconds since 1970")
        self._now = system_clock() if microseconds is None else microseconds

    def __call__(self) -> int:
        self._now += 1  # two commits are never at the same time
        return self._now

    def turn(self, seconds: float) -> None:
        """Advance the clock: leases expire, and delayed messages become due."""
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < inf:
            raise ArgumentInvalid(argument="seconds", why="a number of 0 or more is expected: no clock is turned back")
        self._now += in_microseconds(seconds)


@contextmanager
def temporary_room(clock: Clock = system_clock) -> Iterator[Postroom]:
    """A new, empty room, removed after the block."""
    folder = tempfile.mkdtemp(prefix="postroom", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
    try:
        with open(Path(folder) / "room.db", clock=clock, actor="test") as room:
            yield room
    finally:
        shutil.rmtree(folder, ignore_errors=True)
