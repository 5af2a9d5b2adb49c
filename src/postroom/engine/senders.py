"""The sender process: it tries the effects of the outbox and evaluates nothing.

One runs at a time, and while it lives the engines of the room send nothing (``effects_lease.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from postroom.engine.beating import beating
from postroom.engine.dispatch import Dispatch, Gateway, Report
from postroom.engine.effects_lease import SENDERS, EffectsLease
from postroom.errors import LeaseHeld, LeaseLost
from postroom.limits import ENGINE_LEASE_SECONDS
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

_IDLE_SECONDS = 0.5  # a wake-up ends a sleep at once; a stop ends it within this


class Senders:
    """The sender process. ``gateways`` is called when they are needed, because their imports take a moment."""

    def __init__(self, store: Store, gateways: Callable[[], Iterable[Gateway]], owner: str) -> None:
        self._store = store
        self._gateways = gateways
        self._owner = f"{owner}/senders"  # an engine of the same room is another owner
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._fence = 0
        self._lost: LeaseLost | None = None

    def stop(self) -> None:
        """Finish the running effects and end. May be called by a signal handler or a thread."""
        self._stop.set()

    def run(self, *, until_idle: bool = False, report: Report | None = None) -> int:
        """Send until stopped, or until nothing is left to send; returns the number of effects tried.

        Raises ``LeaseHeld`` if another sender process runs, ``LeaseLost`` if one took over.
        """
        if not self._running.acquire(blocking=False):
            raise LeaseHeld(lease=SENDERS, owner="another thread of this room", until="it ends")
        self._stop.clear()
        self._lost = None
        try:
            with self._announced():
                tried = self._send(until_idle, report)
        finally:
            self._running.release()
        if self._lost is not None:
            raise self._lost
        return tried

    def _send(self, until_idle: bool, report: Report | None) -> int:
        lease = EffectsLease(self._store, self._owner, alone=True)
        with self._store.waiter() as waiter, Dispatch(self._store, self._gateways(), lease, report) as dispatch:
            while not self._stop.is_set():
                dispatch.check()
                if until_idle and self._store.read(lambda tx: tx.outbox.next_due()) is None:
                    break
                waiter.wait(_IDLE_SECONDS)
        return dispatch.tried

    @contextmanager
    def _announced(self) -> Iterator[None]:
        """Announce this process, so that engines stop sending."""
        self._fence = self._store.transact("lease", self._begin)
        try:
            with beating(self._store, self._renew, self._lose):
                yield
        finally:
            if not self._store.stopped:
                self._store.transact("release-lease", self._end)

    def _begin(self, tx: Transaction) -> int:
        fence = tx.leases.acquire(SENDERS, self._owner, ENGINE_LEASE_SECONDS)
        tx.wake()
        return fence

    def _renew(self) -> None:
        self._store.transact("lease", lambda tx: tx.leases.renew(SENDERS, self._fence, ENGINE_LEASE_SECONDS))

    def _lose(self, lost: LeaseLost) -> None:
        self._lost = lost
        self._stop.set()

    def _end(self, tx: Transaction) -> None:
        tx.leases.release(SENDERS, self._fence)
        tx.wake()
