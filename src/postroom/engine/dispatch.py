"""Effects beside the steps of an engine, or in a process of their own: several at a time, in order per destination.

An effect is recorded as attempted, then done, then recorded as done: if a process dies in between, the next one tries
the row again. The rows of one destination are tried in their order; one that waits for its next attempt keeps those
behind it waiting, and one whose attempts are used up does not. Rows of one destination that follow each other are a
run: recorded as attempted in one commit, and as done in another.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import takewhile
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from postroom import faults
from postroom.engine.beating import beating
from postroom.engine.effects_lease import EFFECTS, EffectsLease
from postroom.errors import LeaseLost
from postroom.limits import (
    EFFECTS_AT_ONCE,
    OUTBOX_ATTEMPTS_MAX,
    OUTBOX_BACKOFF_SECONDS,
    OUTBOX_BACKOFF_SECONDS_MAX,
    OUTBOX_RECORD_SECONDS,
)
from postroom.model.moment import in_microseconds
from postroom.store.kernel.base import Store, Waiter
from postroom.store.kernel.outbox import Effect
from postroom.store.kernel.transaction import Transaction

_LOOK_SECONDS = 0.5  # a wake-up ends a sleep at once


class Attempts(NamedTuple):
    """The retry policy of an effect."""

    most: int
    backoff_seconds: float  # doubled per attempt

    def pause(self, attempts: int) -> float:
        """Seconds to the next attempt, after so many."""
        return min(self.backoff_seconds * float(2 ** min(attempts, 60)), OUTBOX_BACKOFF_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt; ``result`` goes into the journal as it is."""

    done: bool
    result: Mapping[str, Any]
    attempts: Attempts | None = None  # None: the room's own
    final: bool = False  # another attempt would fail the same way
    tried: bool = True  # False: nothing was attempted, so it does not count
    after_seconds: float = 0.0  # not to be tried again before
    found: Any = None  # what the gateway itself wants to record

    def again(self, attempts: int) -> bool:
        """Whether to try again, after so many attempts before this one."""
        most = OUTBOX_ATTEMPTS_MAX if self.attempts is None else self.attempts.most
        return not self.done and not self.final and (not self.tried or attempts + 1 < most)

    def pause(self, attempts: int) -> float:
        policy = self.attempts or Attempts(OUTBOX_ATTEMPTS_MAX, OUTBOX_BACKOFF_SECONDS)
        return max(self.after_seconds, policy.pause(attempts) if self.tried else 0.0)


#: Effects that were tried, and what came of each.
Tried = list[tuple[Effect, Outcome]]


class _Ready(NamedTuple):
    """A destination with an effect that is due."""

    destination: str
    heads: list[Effect]  # the first of each queue that leads there, the next effect first


class Gateway(ABC):
    """An outgoing gateway of the room."""

    kind: ClassVar[str]
    run: ClassVar[int] = 1  # how many effects of one destination it takes at a time

    @abstractmethod
    def act(self, effect: Effect) -> Outcome:
        """Perform an effect; called from several threads at a time."""

    def destination(self, tx: Transaction, effect: Effect) -> str:
        """Where an effect goes. Effects with one destination are tried in order, even from several queues."""
        return effect.destination

    def attempting(self, tx: Transaction, run: Sequence[Effect]) -> None:  # noqa: B027  most need nothing
        """Record what must be stored before the attempts, in the commit that notes them."""

    def act_together(self, run: Sequence[Effect]) -> list[Outcome] | None:
        """Perform several effects of one destination at once; None if they have to be done one by one."""
        return None

    def recorded(self, run: Sequence[Effect]) -> None:  # noqa: B027  most need nothing
        """Called when the results of a run are committed."""

    def judged(self, tx: Transaction, effect: Effect, outcome: Outcome) -> Outcome:
        """The result of an attempt under the policy of its queue, in the commit that records it."""
        return outcome

    def failed(self, tx: Transaction, effect: Effect, outcome: Outcome) -> None:  # noqa: B027  most need nothing
        """Record a failed attempt with what it was about, in the commit that records it."""

    def conclude(self, tx: Transaction, ended: Tried) -> None:  # noqa: B027  most need nothing
        """Record the consequences of effects that are done or have failed, in the commit that records them."""


class _Nobody(Gateway):
    """Stands in for a gateway that this engine does not have."""

    def act(self, effect: Effect) -> Outcome:
        return Outcome(False, {"outcome": f"no gateway of this engine does {effect.kind!r}"})


_NOBODY = _Nobody()

#: Told after each effect: the effect, its outcome, and whether it will be tried again. One call at a time.
Report = Callable[[Effect, Outcome, bool], None]


class Dispatch(AbstractContextManager["Dispatch"]):
    """Tries due effects during the ``with`` block, while it has ``lease``; its end waits for running attempts.

    The threads start with the first ``check`` that finds an effect: most engines never have one.
    """

    def __init__(self, store: Store, gateways: Iterable[Gateway], lease: EffectsLease, report: Report | None) -> None:
        self._store = store
        self._gateways = {gateway.kind: gateway for gateway in gateways}
        self._lease = lease
        self._report = report
        self._begun: set[str] = set()  # destinations under way
        self._ended = threading.Event()
        self._making_way = threading.Event()  # for another process, which is to try effects
        self._telling = threading.Lock()
        self._waking = threading.Lock()
        self._error: BaseException | None = None
        self.tried = 0
        self._pool = ThreadPoolExecutor(EFFECTS_AT_ONCE, "postroom-effect")
        self._at_end = ExitStack()
        self._looker: threading.Thread | None = None
        self._waiter: Waiter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._wake()
        with self._at_end:
            if self._looker is not None:
                self._looker.join()
            self._pool.shutdown()
        if kind is None and self._error is not None:
            raise self._error

    def check(self) -> None:
        """Start the threads if there is an effect; raise an error of the room that they met."""
        if self._error is not None:
            raise self._error
        if self._looker is None and self._store.read(lambda tx: tx.outbox.next_due()) is not None:
            self._at_end.callback(self._lease.give_up)
            self._at_end.enter_context(beating(self._store, self._lease.renew, self._lose))
            self._looker = threading.Thread(target=self._look, name="postroom-effects", daemon=True)
            self._looker.start()

    def _wake(self) -> None:
        with self._waking:
            if self._waiter is not None:
                self._waiter.wake()

    def _look(self) -> None:
        try:
            with self._store.waiter() as waiter:
                self._waiter = waiter
                try:
                    while self._error is None and not self._ended.is_set():
                        self._look_once(waiter)
                finally:
                    with self._waking:  # whoever wakes it does so before it is closed
                        self._waiter = None
        except BaseException as error:
            self._error = self._error or error

    def _look_once(self, waiter: Waiter) -> None:
        """Start due effects, or sleep until one is due."""
        due, makes_way = self._store.read(lambda tx: (tx.outbox.next_due(), self._lease.makes_way(tx)))
        now = self._store.session.clock()
        is_due = due is not None and due <= now
        if makes_way:
            self._make_way()
        else:
            self._making_way.clear()
            if is_due and len(self._begun) < EFFECTS_AT_ONCE and self._lease.take() and self._begin():
                return
        later = (due - now) / 1_000_000 if due is not None and not is_due else _LOOK_SECONDS
        waiter.wait(min(_LOOK_SECONDS, later))

    def _make_way(self) -> None:
        """Start nothing more; release the lease when all running attempts have ended."""
        self._making_way.set()
        if not self._begun:
            self._lease.give_up()

    def _begin(self) -> bool:
        """Start due effects at idle destinations; False if there are none."""
        under_way, fence = frozenset(self._begun), self._lease.fence
        ready = self._store.read(self._ready)
        free = [one.destination for one in ready if one.destination not in under_way]
        if not free:
            return False
        some = frozenset(free[: EFFECTS_AT_ONCE - len(under_way)])
        try:
            runs = self._store.transact("outbox-attempt", lambda tx: self._attempt(tx, fence, some))
        except LeaseLost as lost:
            self._lose(lost)
            return False
        for destination, run in runs.items():
            self._begun.add(destination)
            self._pool.submit(self._try, destination, run, fence)
        return bool(runs)

    def _gateway(self, kind: str) -> Gateway:
        return self._gateways.get(kind, _NOBODY)

    def _ready(self, tx: Transaction) -> list[_Ready]:
        """Destinations whose next effect is due. An effect that waits for a retry blocks its destination."""
        heads: dict[str, list[Effect]] = {}
        for head in sorted(tx.outbox.heads(), key=lambda head: head.id):
            heads.setdefault(self._gateway(head.kind).destination(tx, head), []).append(head)
        ready = [_Ready(destination, several) for destination, several in heads.items() if several[0].due <= tx.now]
        return sorted(ready, key=lambda one: (one.heads[0].due, one.heads[0].id))

    def _lose(self, lost: LeaseLost) -> None:
        """Another process has the lease now: an engine goes on without effects, a sender process ends."""
        if self._lease.alone:
            self._error = self._error or lost
        else:
            self._lease.forget(lost.facts["ours"])

    def _attempt(self, tx: Transaction, fence: int, destinations: Collection[str]) -> dict[str, list[Effect]]:
        """Note the attempts before they are made: for each destination the first due effect and those that follow
        it."""
        tx.leases.check(EFFECTS, fence)
        runs = {}
        for destination, heads in self._ready(tx):  # someone may have dropped one, or put a queue on hold
            if destination in destinations:
                runs[destination] = self._run_of(tx, heads)
        for run in runs.values():
            for effect in run:
                tx.outbox.attempt(effect)
            self._gateway(run[0].kind).attempting(tx, run)
        return runs

    def _run_of(self, tx: Transaction, heads: Sequence[Effect]) -> list[Effect]:
        """The next due effects of some queues in order, as many as make one run."""
        kind = heads[0].kind
        most = self._gateway(kind).run
        rows = tx.outbox.run_of(heads[0].destination, most)
        others = heads[1:]
        if others and (len(rows) < most or rows[-1].id > others[0].id):  # else all of them come later
            rows += [effect for head in others for effect in tx.outbox.run_of(head.destination, most)]
            rows.sort(key=lambda effect: effect.id)
        return list(takewhile(lambda effect: effect.kind == kind and effect.due <= tx.now, rows[:most]))

    def _try(self, destination: str, run: Sequence[Effect], fence: int) -> None:
        """Try a run under the lease number ``fence``; if the number is outdated, nothing is recorded."""
        try:
            if not self._try_together(run, fence):
                self._try_each(run, fence)
            self._gateway(run[0].kind).recorded(run)
        except LeaseLost as lost:
            self._lose(lost)
        except BaseException as error:  # its row stays pending, for a process that still has the lease
            self._error = self._error or error
        self._begun.discard(destination)
        self._wake()

    def _try_together(self, run: Sequence[Effect], fence: int) -> bool:
        outcomes = self._gateway(run[0].kind).act_together(run)
        if outcomes is None:
            return False
        if faults.armed:
            faults.reach("gateway.ran")
        self._record(list(zip(run, outcomes, strict=True)), (), fence)
        return True

    def _try_each(self, run: Sequence[Effect], fence: int) -> None:
        tried: Tried = []
        began, left = monotonic(), list(run)
        while left and self._lease.is_sure(fence):
            effect = left.pop(0)
            outcome = self._gateway(effect.kind).act(effect)
            if faults.armed:
                faults.reach("gateway.ran")
            tried.append((effect, outcome))
            failed = not outcome.done
            if (failed and outcome.again(effect.attempts)) or self._ended.is_set() or self._making_way.is_set():
                break
            if failed or outcome.found is not None or monotonic() - began > OUTBOX_RECORD_SECONDS:
                self._record(tried, (), fence)
                began, tried = monotonic(), []
        if tried or left:
            self._record(tried, left, fence)

    def _record(self, tried: Tried, spared: Sequence[Effect], fence: int) -> None:
        """Record the results of attempts, and which noted attempts were not made."""
        told = self._store.transact("outbox-result", lambda tx: self._write(tx, tried, spared, fence))
        with self._telling:
            self.tried += len(tried)
            for effect, outcome in told if self._report is not None else ():
                assert self._report is not None
                self._report(effect, outcome, outcome.again(effect.attempts))

    def _write(self, tx: Transaction, tried: Tried, spared: Sequence[Effect], fence: int) -> Tried:
        tx.leases.check(EFFECTS, fence)
        tried = [(effect, self._gateway(effect.kind).judged(tx, effect, outcome)) for effect, outcome in tried]
        ended = [(effect, outcome) for effect, outcome in tried if self._write_one(tx, effect, outcome)]
        for kind in dict.fromkeys(effect.kind for effect, _ in ended):
            self._gateway(kind).conclude(tx, [one for one in ended if one[0].kind == kind])
        for effect in spared:
            tx.outbox.postpone(effect, effect.due, "not tried: it waits for the one before it")
        if tx.outbox.next_due() is None:
            tx.wake()  # an engine that waits for the last one may end
        return tried

    def _write_one(self, tx: Transaction, effect: Effect, outcome: Outcome) -> bool:
        """Record the result of an attempt; True if it was the last one."""
        if outcome.again(effect.attempts):
            due = tx.now + in_microseconds(outcome.pause(effect.attempts))
            if outcome.tried:
                tx.outbox.failed(effect, outcome.result, due)
                self._gateway(effect.kind).failed(tx, effect, outcome)
            else:
                tx.outbox.postpone(effect, due, str(outcome.result.get("outcome", "")))
            return False
        if outcome.done:
            tx.outbox.done(effect, outcome.result)
        else:
            tx.outbox.failed(effect, outcome.result, None)
            self._gateway(effect.kind).failed(tx, effect, outcome)
        return True
