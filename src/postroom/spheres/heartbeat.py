"""Heartbeats: each thread that owns spheres has a message in ALIVE.Q and a count that grows while the thread lives.

A heartbeat writes only the count of its own thread, so it never blocks others. One background thread writes the
heartbeats of all threads that are alive.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from postroom.errors import ArgumentInvalid, HeartbeatTooSlow, PostroomError
from postroom.limits import CHECK_SECONDS, WAIT_SECONDS_MAX
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.model.moment import in_microseconds
from postroom.spheres.outcome import begin_abort
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import thread_token
from postroom.store.kernel.queues import ALIVE, Keep
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ALIVE_QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_serial = count(1)


class Heart:
    """The heartbeat of one thread, and the spheres that depend on it."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.owner = thread_token(next(_serial))
        self.intervals: dict[str, float] = {}  # by what depends on it
        self.given_up: set[str] = set()  # spheres whose owner let them go without an end
        self.due = monotonic()
        self.beat: int | None = None  # the key of its message in ALIVE.Q

    @property
    def late(self) -> bool:
        """Whether it must beat before another sphere depends on it; else the next regular beat is in time."""
        return self.beat is None or self.due <= monotonic()

    @property
    def pause(self) -> float:
        """Seconds between beats: two in an interval, so that one late beat does not count as death."""
        return min(self.intervals.values(), default=1.0) / 2


class Hearts:
    """The heartbeats of all threads of an open room."""

    def __init__(self, store: Store, open: Callable[[], Store]) -> None:
        self._store = store
        self._open = open
        self._lock = threading.Lock()
        self._hearts: dict[int, Heart] = {}  # by thread
        self._changed = threading.Event()
        self._wakes = 0.0  # when the thread looks again by itself
        self._beating: threading.Thread | None = None
        self._process = os.getpid()
        self._stopped = False

    def mine(self) -> Heart:
        """The heart of this thread. It beats once something depends on it."""
        with self._lock:
            if self._process != os.getpid():  # a child of the one that opened the room
                self._process, self._hearts, self._beating = os.getpid(), {}, None
            ident = threading.get_ident()
            heart = self._hearts.get(ident)
            if heart is None or heart.thread is not threading.current_thread():
                heart = self._hearts[ident] = Heart()
            return heart

    def depend(self, heart: Heart, what: str, seconds: float, *, beaten: bool) -> None:
        """Note that something depends on a heart until ``release``; ``beaten`` if it has just beaten, in the same
        commit."""
        with self._lock:
            heart.intervals[what] = seconds
            next = monotonic() + heart.pause
            heart.due = next if beaten else min(heart.due, next)
            early = heart.due < self._wakes
            if self._beating is None or not self._beating.is_alive():
                self._beating = threading.Thread(target=self._beat_on, name="postroom-heart", daemon=True)
                self._beating.start()
        if early:
            self._changed.set()

    def release(self, heart: Heart, what: str) -> None:
        with self._lock:
            heart.intervals.pop(what, None)

    def give_up(self, heart: Heart, sphere: str) -> None:
        """The owner dropped its sphere without ending it: abort it with the next beat.

        The garbage collector may call this in a thread that holds the lock, so it must not take it.
        """
        if sphere in heart.intervals:
            heart.given_up.add(sphere)

    def stop(self) -> None:
        """Stop all beats. A thread without a heartbeat in ALIVE.Q owns nothing, even if it lives."""
        with self._lock:
            self._stopped = True
            beating = self._beating
            beats = [heart.beat for heart in self._hearts.values() if heart.beat is not None]
        self._changed.set()
        if beating is not None and beating is not threading.current_thread():
            beating.join()
        if beats:
            self._store.transact("heartbeat", lambda tx: still(tx, beats))

    def _beat_on(self) -> None:
        own: Store | None = None  # a connection that no owner keeps waiting
        while not self._stopped:
            self._changed.clear()
            self._changed.wait(self._pause())
            due = self._due()
            if due is None:
                break
            if due and not self._stopped:
                own = self._beat(own, due)
        if own is not None:
            own.close()

    def _beat(self, own: Store | None, due: list[Heart]) -> Store | None:
        """Write the due beats over a connection made on demand; returns it."""
        try:
            if own is None or own.stopped:
                own = self._open()
            own.transact("heartbeat", partial(beat, hearts=due))
            self._abort_given_up(own, due)
        except PostroomError:  # busy or gone for a moment: there are more beats before anyone worries
            pass
        return own

    def _abort_given_up(self, store: Store, hearts: Iterable[Heart]) -> None:
        for heart in hearts:
            for sphere in list(heart.given_up):
                store.transact(
                    "sphere-aborting", partial(begin_abort, id=sphere, reason="its owner let it go without an end")
                )
                heart.given_up.discard(sphere)
                self.release(heart, sphere)

    def _pause(self) -> float:
        with self._lock:
            now = monotonic()
            pause = max(0.0, min((heart.due - now for heart in self._living()), default=1.0))
            self._wakes = now + pause
            return pause

    def _due(self) -> list[Heart] | None:
        """The hearts that are due; None if nothing depends on any, which ends the thread."""
        with self._lock:
            living = self._living()
            if not living:
                self._beating = None
                return None
            now = monotonic()
            due = [heart for heart in living if heart.due <= now]
            for heart in due:
                heart.due = now + heart.pause
            return due

    def _living(self) -> list[Heart]:
        """The hearts of live threads with dependants; other spheres are left to the compensation engine."""
        dead = [ident for ident, heart in self._hearts.items() if not heart.thread.is_alive()]
        for ident in dead:
            del self._hearts[ident]
        return [heart for heart in self._hearts.values() if heart.intervals]


def check_seconds(argument: str, seconds: float, least: float = 0) -> None:
    if not isinstance(seconds, (int, float)) or not least <= seconds <= WAIT_SECONDS_MAX:
        raise ArgumentInvalid(argument=argument, why=f"seconds from {least:g} to {WAIT_SECONDS_MAX:.0f}")


def check_heartbeat(tx: Transaction, microseconds: int) -> None:
    """Raise if a heartbeat is slower than the check interval."""
    check = tx.spheres.announced() or in_microseconds(CHECK_SECONDS)
    if microseconds >= check:
        raise HeartbeatTooSlow(heartbeat=microseconds / 1_000_000, check=check / 1_000_000)


def beat(tx: Transaction, hearts: Iterable[Heart]) -> None:
    """Beat each heart. The first beat puts its message into ALIVE.Q."""
    for heart in hearts:
        stored = None if heart.beat is None else tx.messages.find(heart.beat)
        # The key of a beat that was rolled back may be another's now.
        if stored is None or stored.queue != ALIVE_QUEUE or stored.body != heart.owner:
            alive = tx.queues.own(ALIVE_QUEUE, ALIVE, Keep.NOTHING)
            heart.beat = tx.messages.put(alive, Draft(heart.owner, "text", None, NO_PROPERTIES))
        tx.spheres.beat(heart.owner)


def still(tx: Transaction, beats: Iterable[int]) -> None:
    """Remove hearts of threads that have ended, or own nothing, from ALIVE.Q."""
    alive = tx.queues.own(ALIVE_QUEUE, ALIVE, Keep.NOTHING)
    for stored in tx.messages.find_many(list(beats)).values():
        tx.messages.remove(alive, stored, "discard")
        tx.spheres.still(stored.body)
