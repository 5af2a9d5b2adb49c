"""Commands that work until they are stopped: they open the room again when its database was away.

PostgreSQL closes all connections when it is restarted or fails over. A command that answers once reports that; one that
is to go on for months waits until the database is back. A SQLite room that stopped has a disk that failed: the command
ends, and whoever runs it decides.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, TypeVar

from postroom.errors import PostroomError, StoreUnavailable
from postroom.interfaces.cli import output
from postroom.limits import REOPEN_SECONDS, REOPEN_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from postroom.room import Postroom

T = TypeVar("T")


class Lasting:
    """A room that is opened again if its database was away, until someone stops it."""

    def __init__(
        self, open: Callable[[], Postroom], end: Callable[[Postroom], None] | None = None, *, once: bool = False
    ) -> None:
        """``end`` ends the work with a room. ``once``: the work is to come to an end, and fails with the database."""
        self._open = open
        self._end = end
        self._once = once
        self._ended = threading.Event()
        self._room: Postroom | None = None

    def run(self, work: Callable[[Postroom], T]) -> T | None:
        """Work with the room until the work ends; None if it was stopped while the database was away."""
        room: Postroom | None = self._open()
        while room is not None:
            with room:
                self._room = room
                if self._ended.is_set():
                    return None
                try:
                    return work(room)
                except PostroomError as error:
                    if self._once or not _is_away(room):
                        raise
                    output.note(f"postroom: {error.code}: {error}; waiting for the database")
            room = self._opened_again()
        return None

    def stop(self) -> None:
        """End the work that is under way, and do not begin again."""
        self._ended.set()
        if self._room is not None and self._end is not None:
            self._end(self._room)

    def _opened_again(self) -> Postroom | None:
        pause = REOPEN_SECONDS
        while not self._ended.wait(pause):
            try:
                room = self._open()
            except StoreUnavailable:
                pause = min(2 * pause, REOPEN_SECONDS_MAX)
                continue
            output.note("the database is back: going on")
            return room
        return None


def stop_on_signals(stop: Callable[[], None], what: str) -> None:
    """Let SIGTERM and Ctrl-C end the work when ``what`` is under way is done."""

    def stopping(*_: object) -> None:
        stop()
        output.note(f"stopping after the current {what}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping)


def _is_away(room: Postroom) -> bool:
    return room.url.startswith(("postgresql://", "postgres://")) and room.store.stopped
