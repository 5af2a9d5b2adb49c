"""Effects beside the steps of an engine: several at a time, one after another to each destination.

An effect is recorded as attempted, then done, then recorded as done: whoever dies in between leaves a row that the
next engine tries again. The rows of one destination are tried in their order; one that waits for its next attempt keeps
those behind it waiting, and one whose attempts are used up does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from postroom import faults
from postroom.engine.steps.step import LEASE
from postroom.limits import EFFECTS_AT_ONCE, OUTBOX_ATTEMPTS_MAX, OUTBOX_BACKOFF_SECONDS
from postroom.model.moment import in_microseconds
from postroom.store.kernel.base import Store, Waiter
from postroom.store.kernel.outbox import Effect
from postroom.store.kernel.transaction import Transaction

_LOOK_SECONDS = 0.5  # a wake-up ends a sleep at once


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an effect; ``result`` goes into the journal as it is."""

    done: bool
    result: Mapping[str, Any]


class Gateway(Protocol):
    """A way out of the room."""

    kind: str

    def act(self, effect: Effect) -> Outcome:
        """Do it; called from several threads at a time."""


#: Told after each effect: the effect, its outcome, and whether it will be tried again. One call at a time.
Report = Callable[[Effect, Outcome, bool], None]


class Dispatch(AbstractContextManager["Dispatch"]):
    """Tries what is due for as long as the ``with`` block; its end waits for what has begun.

    Its thread is started by the first ``check`` that finds an effect: most engines never have one.
    """

    def __init__(self, store: Store, gateways: Iterable[Gateway], fence: int, report: Report | None) -> None:
        self._store = store
        self._gateways = {gateway.kind: gateway for gateway in gateways}
        self._fence = fence
        self._report = report
        self._begun: set[int] = set()  # effects under way
        self._ended = threading.Event()
        self._telling = threading.Lock()
        self._waking = threading.Lock()
        self._error: BaseException | None = None
        self.tried = 0
        self._pool = ThreadPoolExecutor(EFFECTS_AT_ONCE, "postroom-effect")
        self._looker: threading.Thread | None = None
        self._waiter: Waiter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._looker is not None:
            with self._waking:
                if self._waiter is not None:
                    self._waiter.wake()
            self._looker.join()
        self._pool.shutdown()
        if kind is None and self._error is not None:
            raise self._error

    def check(self) -> None:
        """Begin to look if there is an effect; raise what went wrong with the room while effects were tried."""
        if self._error is not None:
            raise self._error
        if self._looker is None and self._store.read(lambda tx: tx.outbox.next_due()) is not None:
            self._looker = threading.Thread(target=self._look, name="postroom-effects", daemon=True)
            self._looker.start()

    def _look(self) -> None:
        try:
            with self._store.waiter() as waiter:
                self._waiter = waiter
                try:
                    while self._error is None and not self._ended.is_set():
                        self._begin_due(waiter)
                finally:
                    with self._waking:  # whoever wakes it does so before it is closed
                        self._waiter = None
        except BaseException as error:
            self._error = self._error or error

    def _begin_due(self, waiter: Waiter) -> None:
        """Begin what is due and may begin; then sleep until something is."""
        due = self._store.read(lambda tx: tx.outbox.next_due())
        now = self._store.session.clock()
        if due is not None and due <= now and len(self._begun) < EFFECTS_AT_ONCE:
            some = self._store.read(lambda tx: tx.outbox.due(EFFECTS_AT_ONCE + len(self._begun)))
            free = [effect for effect in some if effect.id not in self._begun]
            for effect in free[: EFFECTS_AT_ONCE - len(self._begun)]:
                if self._store.transact("outbox-attempt", partial(self._attempt, effect=effect)):
                    self._begun.add(effect.id)
                    self._pool.submit(self._try, effect)
        later = (due - now) / 1_000_000 if due is not None and due > now else _LOOK_SECONDS
        waiter.wait(min(_LOOK_SECONDS, later))

    def _attempt(self, tx: Transaction, effect: Effect) -> bool:
        """Note the attempt before the act; False if someone has dropped or revived it meanwhile."""
        tx.leases.check(LEASE, self._fence)
        if tx.outbox.find(effect.id) != effect:
            return False
        tx.outbox.attempt(effect)
        return True

    def _try(self, effect: Effect) -> None:
        try:
            outcome = self._outcome_of(effect)
            if faults.armed:
                faults.reach("gateway.ran")
            again = not outcome.done and effect.attempts + 1 < OUTBOX_ATTEMPTS_MAX
            self._store.transact("outbox-result", lambda tx: self._record(tx, effect, outcome, again))
            with self._telling:
                self.tried += 1
                if self._report is not None:
                    self._report(effect, outcome, again)
            self._begun.discard(effect.id)
        except BaseException as error:  # its row stays pending, for an engine that still has the lease
            self._error = self._error or error

    def _outcome_of(self, effect: Effect) -> Outcome:
        if effect.attempts >= OUTBOX_ATTEMPTS_MAX:
            return Outcome(False, {"outcome": f"given up: {effect.attempts} attempts ended without a result"})
        gateway = self._gateways.get(effect.kind)
        if gateway is None:
            return Outcome(False, {"outcome": f"no gateway of this engine does {effect.kind!r}"})
        return gateway.act(effect)

    def _record(self, tx: Transaction, effect: Effect, outcome: Outcome, again: bool) -> None:
        tx.leases.check(LEASE, self._fence)
        if outcome.done:
            tx.outbox.done(effect, outcome.result)
        else:
            pause = in_microseconds(OUTBOX_BACKOFF_SECONDS * 2**effect.attempts)
            tx.outbox.failed(effect, outcome.result, tx.now + pause if again else None)
        tx.wake()  # the next to this destination may begin, and an engine that waits for the last one may end
