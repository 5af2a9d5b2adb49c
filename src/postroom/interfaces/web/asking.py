"""Background work of pages: each runs in a thread, and the user who started it can follow and stop it.

The result is kept for a while, so that a page can show another part of it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sized
from concurrent.futures import Future, wait
from typing import Any

from postroom.errors import TooManyRequests
from postroom.interfaces.http.handling.request_threads import RequestThreads
from postroom.limits import ASKING_SECONDS, ASKINGS_AT_ONCE, ASKINGS_KEPT_MAX, ASKINGS_KEPT_ROWS_MAX, ASKINGS_OF_ONE
from postroom.model.progress import OnProgress


class Stopped(Exception):
    """The user has stopped the work."""


class Asking:
    """Work in the background; ``about`` identifies what was asked for."""

    def __init__(self, user: str, about: Any) -> None:
        self.id = secrets.token_urlsafe(9)
        self.user = user
        self.about = about
        self.done = 0
        self.total = 0  # until it is known
        self.began = time.monotonic()
        self._stop = threading.Event()
        self._coming: Future[Any] = Future()

    def progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if self._stop.is_set():
            raise Stopped

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    @property
    def is_over(self) -> bool:
        return self._coming.done()

    def wait(self) -> bool:
        """Whether it is over; waits a moment for it."""
        return bool(wait([self._coming], ASKING_SECONDS).done)

    def whole(self) -> Any:
        """Wait for the result."""
        wait([self._coming])
        return self.result()

    def result(self) -> Any:
        """The result, or raise its error; None if it was stopped."""
        try:
            return self._coming.result(0)
        except Stopped:  # a page was waiting for it meanwhile
            return None

    @property
    def rows(self) -> int:
        """The size of its kept result."""
        if not self.is_over or self._coming.exception() is not None:
            return 0
        kept = self._coming.result()
        return len(kept) if isinstance(kept, Sized) else 1

    def stop(self) -> None:
        """Stop: no more progress is reported, and queued work never starts."""
        self._stop.set()

    def run(self, work: Callable[[OnProgress], Any]) -> None:
        try:
            self.progress(0, 0)
            self._coming.set_result(work(self.progress))
        except BaseException as error:
            self._coming.set_exception(error)


class Askings:
    """All background work for pages of one server, with its results."""

    def __init__(self) -> None:
        self._pool = RequestThreads(ASKINGS_AT_ONCE, "postroom-asking")
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Asking] = OrderedDict()

    def begin(self, user: str, about: Any, work: Callable[[OnProgress], Any]) -> Asking:
        asking = Asking(user, about)
        with self._lock:
            running = [other for other in self._known.values() if other.user == user and not other.is_over]
            if len(running) >= ASKINGS_OF_ONE:
                raise TooManyRequests(who=user, seconds=1)
            self._known[asking.id] = asking
            self._forget()
        self._pool.submit(asking.run, work)
        return asking

    def known(self, user: str, id: str) -> Asking | None:
        """The work that a user has started and not stopped."""
        with self._lock:
            asking = self._known.get(id)
        return asking if asking is not None and asking.user == user else None

    def stop(self, user: str, id: str) -> bool:
        """Stop work; returns whether there was any."""
        with self._lock:
            asking = self._known.get(id)
            if asking is None or asking.user != user:
                return False
            del self._known[id]
        asking.stop()
        return not asking.is_over

    def _forget(self) -> None:
        """Drop the oldest results until few enough are left."""
        over = [asking for asking in self._known.values() if asking.is_over]
        rows = sum(asking.rows for asking in over)
        for asking in over:
            if len(self._known) <= ASKINGS_KEPT_MAX and rows <= ASKINGS_KEPT_ROWS_MAX:
                return
            rows -= asking.rows
            del self._known[asking.id]

    def close(self, seconds: float) -> bool:
        """Stop everything; returns whether it ended in this time."""
        with self._lock:
            for asking in self._known.values():
                asking.stop()
            self._known.clear()
        return self._pool.end(seconds)
