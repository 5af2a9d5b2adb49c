"""Long-running commands reopen the room after its database was down.

PostgreSQL closes all connections when it is restarted or fails over. A command that answers once reports that; a
long-running one waits until the database is back. For a SQLite room, it means that the disk failed: the command ends.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from postroom.errors import PostroomError, StoreUnavailable
from postroom.interfaces.cli import output
from postroom.limits import REOPEN_SECONDS, REOPEN_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from postroom.room import Postroom

T = TypeVar("T")
_LOOK_SECONDS: Final = 0.2


class Lasting:
    """A room that is reopened after its database was down, until stopped."""

    def __init__(
        self, open: Callable[[], Postroom], end: Callable[[Postroom], None] | None = None, *, once: bool = False
    ) -> None:
        """``end`` stops the work with a room. With ``once``, the work ends by itself and fails with the database."""
        self._open = open
        self._end = end
        self._once = once
        self._ended = threading.Event()
        self._over = threading.Event()
        self._room: Postroom | None = None

    def run(self, work: Callable[[Postroom], T]) -> T | None:
        """Run ``work`` with the room until it ends; None if stopped while the database was down."""
        try:
            return self._run(work)
        finally:
            self._over.set()

    def _run(self, work: Callable[[Postroom], T]) -> T | None:
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
        """Stop the current work and do not start again."""
        self._ended.set()
        if self._room is not None and self._end is not None:
            self._end(self._room)

    def finish(self) -> None:
        """Stop, also work that is just about to begin, and wait until it has ended."""
        self.stop()
        while not self._over.wait(_LOOK_SECONDS):
            self.stop()

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
    """On SIGTERM and Ctrl-C, call ``stop``, which finishes ``what`` first."""

    def stopping(*_: object) -> None:
        by_signal(stop)
        output.note(f"stopping after the current {what}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping)


def by_signal(stop: Callable[[], None]) -> None:
    """Call ``stop`` from a signal handler. The signal may have come in the midst of loading or making what it needs, so
    another thread waits for that."""
    threading.Thread(target=stop, name="postroom-stop", daemon=True).start()


def _is_away(room: Postroom) -> bool:
    return room.url.startswith(("postgresql://", "postgres://")) and room.store.stopped
