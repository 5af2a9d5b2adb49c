"""Recent arrivals and departures of queues, counted while a room is served, even if no page is open."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from threading import Event, Lock, Thread
from typing import NamedTuple
from weakref import WeakKeyDictionary

from postroom.errors import PostroomError
from postroom.limits import COUNTED_SECONDS, OVERVIEW_RATE_SECONDS, SPARK_BARS, SPARK_SECONDS
from postroom.model.moment import to_datetime
from postroom.store.kernel.base import Store

log = logging.getLogger("postroom.web")
#: What came, and what left.
Moved = tuple[int, int]


class Counts(NamedTuple):
    """The total arrivals and departures of each queue, at one moment."""

    at: datetime
    queues: Mapping[str, Moved]


def counts(store: Store) -> Counts:
    """The current counts."""
    return store.read(
        lambda tx: Counts(
            to_datetime(tx.now), {queue.name: (queue.arrivals, queue.departed) for queue in tx.queues.all()}
        )
    )


def moved(before: Counts, after: Counts, queue: str) -> Moved:
    """The difference of two counts. A new queue starts at 0, and so does one that was created again."""
    then, now = before.queues.get(queue, (0, 0)), after.queues.get(queue, (0, 0))
    return max(now[0] - then[0], 0), max(now[1] - then[1], 0)


class History:
    """The history of one room. Idle queues take no memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lately: deque[Counts] = deque(maxlen=3)
        self._opened: Counts | None = None  # when the newest interval began
        self._over: deque[tuple[datetime, dict[str, Moved]]] = deque(maxlen=SPARK_BARS - 1)

    def take(self, now: Counts) -> None:
        with self._lock:
            self._lately.append(now)
            opened = self._opened
            if opened is not None and (now.at - opened.at).total_seconds() < SPARK_SECONDS:
                return
            if opened is not None:
                told = {queue: moved(opened, now, queue) for queue in now.queues}
                self._over.append((opened.at, {queue: pair for queue, pair in told.items() if any(pair)}))
            self._opened = now

    def rates(self, now: Counts) -> dict[str, tuple[float, float]]:
        """Messages per second of each queue in about the last minute; empty if the history is too short."""
        with self._lock:
            known = [past for past in self._lately if (now.at - past.at).total_seconds() >= OVERVIEW_RATE_SECONDS]
        if not known:
            return {}
        seconds = (now.at - known[-1].at).total_seconds()
        told = {queue: moved(known[-1], now, queue) for queue in now.queues}
        return {queue: (came / seconds, left / seconds) for queue, (came, left) in told.items()}

    def intervals(self, now: Counts, queue: str) -> tuple[float, list[Moved]]:
        """The seconds covered, and arrivals and departures in each interval, oldest first; the last one is
        incomplete."""
        with self._lock:
            over, opened = list(self._over), self._opened
        if opened is None:
            return 0.0, []
        first = over[0][0] if over else opened.at
        told = [pairs.get(queue, (0, 0)) for _, pairs in over]
        return (now.at - first).total_seconds(), [*told, moved(opened, now, queue)]


_histories: WeakKeyDictionary[Store, History] = WeakKeyDictionary()


def history_of(store: Store) -> History:
    """The history of a served room; an empty one if nothing counts."""
    return _histories.setdefault(store, History())


class Counting:
    """A thread that counts at an interval."""

    def __init__(self, store: Store, seconds: float = COUNTED_SECONDS) -> None:
        self._store = store
        self._seconds = seconds
        self._end = Event()
        self._thread = Thread(target=self._run, name="postroom-counting", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        history = history_of(self._store)
        while not self._store.stopped:
            try:
                history.take(counts(self._store))
            except PostroomError as error:  # next time
                log.info("the queues were not counted: %s", error.code)
            if self._end.wait(self._seconds):
                return

    def close(self) -> None:
        self._end.set()
        self._thread.join(5)
