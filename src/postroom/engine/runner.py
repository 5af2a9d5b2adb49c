"""The run loop: one engine per room, by a lease with a number that every commit shows.

It drains the outbox. An effect is recorded as attempted, then done, then recorded as done: whoever dies in between
leaves a row that the next engine tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from postroom import faults
from postroom.errors import LeaseHeld, LeaseLost, PostroomError
from postroom.limits import ENGINE_LEASE_SECONDS, OUTBOX_ATTEMPTS_MAX, OUTBOX_BACKOFF_SECONDS
from postroom.store.base import Store
from postroom.store.outbox import Effect
from postroom.store.transaction import Transaction

LEASE = "engine"
IDLE_SECONDS = 0.5  # a wake-up ends a sleep at once; a stop ends it within this


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an effect; ``result`` goes into the journal as it is."""

    done: bool
    result: Mapping[str, Any]


class Gateway(Protocol):
    """A way out of the room."""

    kind: str

    def act(self, effect: Effect) -> Outcome: ...


#: Told after each effect: the effect, its outcome, and whether it will be tried again.
Report = Callable[[Effect, Outcome, bool], None]


class Runner:
    def __init__(self, store: Store, gateways: Iterable[Gateway], owner: str) -> None:
        self._store = store
        self._gateways = {gateway.kind: gateway for gateway in gateways}
        self._owner = owner
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._fence = 0
        self._lost: LeaseLost | None = None

    def stop(self) -> None:
        """Finish the effect at hand and leave; safe to call from a signal handler or another thread."""
        self._stop.set()

    def run(self, *, until_idle: bool = False, report: Report | None = None) -> int:
        """Work until stopped, or until nothing is left to do; answers with the number of effects tried."""
        if not self._running.acquire(blocking=False):
            raise LeaseHeld(lease=LEASE, owner="another thread of this room", until="it ends")
        try:
            return self._run(until_idle, report)
        finally:
            self._running.release()

    def _run(self, until_idle: bool, report: Report | None) -> int:
        tried = 0
        self._stop.clear()
        self._lost = None
        with self._leased(), self._store.waiter() as waiter:
            while not self._stop.is_set():
                due = self._store.read(lambda tx: tx.outbox.next_due())
                if due is None and until_idle:
                    break
                pause = IDLE_SECONDS if due is None else (due - self._store.session.clock()) / 1_000_000
                if pause > 0:
                    waiter.wait(min(pause, IDLE_SECONDS))
                elif self._step(report):
                    tried += 1
        if self._lost is not None:
            raise self._lost
        return tried

    def _step(self, report: Report | None) -> bool:
        effect = self._store.transact("outbox-attempt", self._next_effect)
        if effect is None:
            return False
        outcome = self._outcome_of(effect)
        if faults.armed:
            faults.reach("gateway.ran")
        attempts = effect.attempts + 1
        again = not outcome.done and attempts < OUTBOX_ATTEMPTS_MAX

        def record(tx: Transaction) -> None:
            tx.leases.check(LEASE, self._fence)
            if outcome.done:
                tx.outbox.done(effect, outcome.result)
            else:
                pause = int(OUTBOX_BACKOFF_SECONDS * 2 ** (attempts - 1) * 1_000_000)
                tx.outbox.failed(effect, outcome.result, tx.now + pause if again else None)

        self._store.transact("outbox-result", record)
        if report is not None:
            report(effect, outcome, again)
        return True

    def _next_effect(self, tx: Transaction) -> Effect | None:
        tx.leases.check(LEASE, self._fence)
        effect = tx.outbox.due()
        if effect is not None:
            tx.outbox.attempt(effect)
        return effect

    def _outcome_of(self, effect: Effect) -> Outcome:
        if effect.attempts >= OUTBOX_ATTEMPTS_MAX:
            return Outcome(False, {"outcome": f"given up: {effect.attempts} attempts ended without a result"})
        gateway = self._gateways.get(effect.kind)
        if gateway is None:
            return Outcome(False, {"outcome": f"no gateway of this engine does {effect.kind!r}"})
        return gateway.act(effect)

    @contextmanager
    def _leased(self) -> Iterator[None]:
        transact = self._store.transact
        self._fence = transact("lease", lambda tx: tx.leases.acquire(LEASE, self._owner, ENGINE_LEASE_SECONDS))
        ended = threading.Event()
        beat = threading.Thread(target=self._renew, args=(ended,), name="postroom-lease", daemon=True)
        beat.start()
        try:
            yield
        finally:
            ended.set()
            beat.join()
            if not self._store.stopped:
                transact("release-lease", lambda tx: tx.leases.release(LEASE, self._fence))

    def _renew(self, ended: threading.Event) -> None:
        """Keep the lease while an effect takes long. If it is lost, no commit will pass: then stop and say so."""
        while not ended.wait(ENGINE_LEASE_SECONDS / 5):
            try:
                self._store.transact("lease", lambda tx: tx.leases.renew(LEASE, self._fence, ENGINE_LEASE_SECONDS))
            except LeaseLost as lost:
                self._lost = lost
                self._stop.set()
                return
            except PostroomError:  # busy or gone for a moment: there are more turns before the lease runs out
                if self._store.stopped:
                    return
