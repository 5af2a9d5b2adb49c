"""The run loop: one engine leads, by a lease whose number every commit checks; others may share queues with it.

It works in steps over the messages of watched queues. Effects on other systems run beside the steps (``dispatch.py``),
so a slow one delays no step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from postroom.engine.beating import beating
from postroom.engine.blocked import Blocked, note
from postroom.engine.dispatch import Dispatch, Gateway, Report
from postroom.engine.effects_lease import EffectsLease
from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE, Divided, Holding
from postroom.engine.spark.executor_store import AnswerStore
from postroom.engine.steps.attempts import bring_due
from postroom.engine.steps.lanes import Lanes
from postroom.engine.steps.stage import Beside, Result, Stage, Turn
from postroom.engine.steps.watching import WatchingStage
from postroom.errors import LeaseHeld, LeaseLost
from postroom.limits import (
    ENGINE_BALANCE_SECONDS,
    ENGINE_LEASE_SECONDS,
    LANE_SECONDS,
    STEP_CREATED_MAX,
    STEP_MESSAGES_MAX,
    STEP_SECONDS,
    SWEEP_IDLE_SECONDS,
    UPKEEP_SECONDS,
    WARM_SECONDS,
)
from postroom.store.kernel.base import Store, Waiter
from postroom.store.kernel.batch import Admit, Stale, admit_nothing
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUSY_SECONDS = 0.02  # between two looks at a step that takes long
IDLE_SECONDS = 0.5  # a wake-up ends a sleep at once; a stop ends it within this
_STEP_MESSAGES_MIN = 16
_STEP_MESSAGES_FIRST = 1_024
_GROWTH_MAX = 16  # from one step to the next


@dataclass
class Totals:
    """Totals of an engine since its start."""

    steps: int = 0
    messages: int = 0
    created: int = 0
    failures: int = 0
    effects: int = 0
    waiting: dict[str, str] = field(default_factory=dict)  # a queue, and the queue on hold that it waits for
    evaluated: dict[str, int] = field(default_factory=dict)  # steps by the way in which they were
    last: Result | None = None

    def add(self, result: Result) -> None:
        """Add the result of a step."""
        self.steps += 1
        self.messages += result.messages
        self.created += result.created
        self.failures += result.failures
        self.last = result
        if result.evaluated:
            self.evaluated[result.evaluated] = self.evaluated.get(result.evaluated, 0) + 1


RunProgress = Callable[[Totals], None]


class _Job(NamedTuple):
    """The arguments of one run of an engine."""

    spark: Callable[[], SparkSession]
    always: bool
    until_idle: bool
    report: Report | None
    progress: RunProgress | None
    step_messages: int | None
    exchange: str | None


class Runner:
    """Calls ``spark`` when there is something to evaluate, ``housekeeping`` when idle, and ``upkeep`` at an interval,
    busy or not.

    ``admit`` admits new messages to queues that belong to another capability.
    """

    def __init__(
        self,
        store: Store,
        gateways: Iterable[Gateway],
        owner: str,
        stages: Iterable[Stage] = (),
        housekeeping: Callable[[], int] | None = None,
        admit: Admit = admit_nothing,
        upkeep: Callable[[], object] | None = None,
    ) -> None:
        self._store = store
        self._gateways = tuple(gateways)
        self._owner = owner
        self._stages = tuple(stages)
        self._housekeeping = housekeeping
        self._admit = admit
        self._upkeep = upkeep
        self._upkeep_due = 0.0
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._fence = 0
        self._lost: LeaseLost | None = None
        self._size = _STEP_MESSAGES_FIRST
        self._evaluated: float | None = None  # when Spark was last used
        self._lanes: dict[Stage, Lanes] = {}  # steps under way
        self._noted: dict[str, Blocked] = {}  # by queue, what others were told
        self._holding: Holding | None = None  # if this engine shares the room with others
        self._balance_due = 0.0
        self._look_again = 0.0  # when to look for more beside a step that takes long

    def stop(self) -> None:
        """Finish the running step and effects, and end. May be called by a signal handler or a thread."""
        self._stop.set()

    def run(
        self,
        *,
        spark: Callable[[], SparkSession],
        always: bool = False,
        until_idle: bool = False,
        report: Report | None = None,
        progress: RunProgress | None = None,
        step_messages: int | None = None,
        exchange: str | None = None,
        beside: AbstractContextManager[None] | None = None,
    ) -> Totals:
        """Work until stopped, or until nothing is left to do; ``step_messages`` fixes the steps' size and order.

        With ``always``, Spark evaluates everything; else a worker process evaluates small steps, and Spark starts in
        the background: at once, or with ``until_idle`` only for a large backlog. ``exchange`` is the URL of the store
        if executors read messages and write answers there. ``beside`` is a context that is entered first; a stop during
        that is respected.
        """
        if not self._running.acquire(blocking=False):
            raise LeaseHeld(lease=LEASE, owner="another thread of this room", until="it ends")
        try:
            self._stop.clear()
            self._lost = None
            self._evaluated = None
            totals = Totals()
            job = _Job(spark, always, until_idle, report, progress, step_messages, exchange)
            with beside or nullcontext(), self._sharing(until_idle):
                while True:
                    try:
                        with self._leased():
                            self._lead(job, totals)
                        break
                    except LeaseHeld:
                        if self._holding is None:
                            raise
                    self._help(job, totals)
                    if self._stop.is_set():
                        break
        finally:
            self._running.release()
        if self._lost is not None:
            raise self._lost
        return totals

    def _lead(self, job: _Job, totals: Totals) -> None:
        """Lead: do everything except for queues that other engines have."""
        with self._store.waiter() as waiter, ExitStack() as at_end:
            idle_since = monotonic()
            answer_store = (
                None if job.exchange is None else at_end.enter_context(closing(AnswerStore(job.exchange, self._fence)))
            )
            evaluators = Evaluators(job.spark, always=job.always)
            turn = self._turn(job, evaluators, answer_store)
            at_end.callback(self._abandon)
            lease = EffectsLease(self._store, self._owner)
            dispatch = at_end.enter_context(Dispatch(self._store, self._gateways, lease, job.report))
            self._prepare(evaluators)
            while not self._stop.is_set():
                if not job.until_idle:
                    self._keep_up()
                    self._balance()
                    self._begin_spark(evaluators)
                dispatch.check()
                evaluators.check()
                # Asked first: what an effect has led to is there when its row is gone.
                settled = job.until_idle and self._rest()[0]
                if self._work(turn, job.progress, totals, self._stages):
                    idle_since = monotonic()
                    continue
                idle, pause = self._rest()
                if idle and job.until_idle and not self._is_evaluating():
                    if settled:
                        break
                    continue
                if not job.until_idle and monotonic() - idle_since > SWEEP_IDLE_SECONDS:
                    if self._tidy():
                        continue
                    idle_since = monotonic()
                self._keep_warm(evaluators, job.spark)
                self._pause(waiter, pause)
        totals.effects = dispatch.tried

    def _help(self, job: _Job, totals: Totals) -> None:
        """Work on this engine's queues while another engine leads."""
        evaluators = Evaluators(job.spark, always=job.always)
        stages = [stage for stage in self._stages if isinstance(stage, WatchingStage)]
        with self._store.waiter() as waiter, ExitStack() as at_end:
            turn = self._turn(job, evaluators, None)
            at_end.callback(self._abandon)
            self._prepare(evaluators)
            while not self._stop.is_set() and self._store.read(_is_led):
                self._balance()
                self._begin_spark(evaluators)
                evaluators.check()
                divisible = [stage for stage in stages if self._store.read(stage.divided) is not None]
                if not self._work(turn, job.progress, totals, divisible):
                    self._keep_warm(evaluators, job.spark)
                    self._pause(waiter, IDLE_SECONDS)

    def _turn(self, job: _Job, evaluators: Evaluators, answer_store: AnswerStore | None) -> Turn:
        fixed = job.step_messages
        size = (lambda: evaluators.step_size(self._size)) if fixed is None else (lambda: fixed)
        apart = Beside(seconds=LANE_SECONDS if fixed is None else None)
        return Turn(
            self._store, self._fence, evaluators, size, self._admit, answer_store, beside=apart, holding=self._holding
        )

    @contextmanager
    def _sharing(self, until_idle: bool) -> Iterator[None]:
        """Share the room with other engines; with ``until_idle`` have it alone."""
        self._holding = None
        if until_idle:
            yield
            return
        self._holding = Holding(self._store, self._owner, self._divided)
        self._holding.balance()
        try:
            with self._beating(self._holding.beat):
                yield
        finally:
            self._holding.leave()

    def _divided(self, tx: Transaction) -> Divided:
        divided = [stage.divided(tx) for stage in self._stages if isinstance(stage, WatchingStage)]
        known = [division for division in divided if division is not None]
        watched, free = (frozenset[str]().union(*(division[part] for division in known)) for part in (0, 1))
        return Divided(watched, free)

    def _balance(self) -> None:
        """At an interval: check whether other engines have come or gone."""
        if self._holding is not None and monotonic() >= self._balance_due:
            self._balance_due = monotonic() + ENGINE_BALANCE_SECONDS
            self._holding.balance()

    def _work(self, turn: Turn, progress: RunProgress | None, totals: Totals, stages: Iterable[Stage]) -> bool:
        """Run one step of each stage; False if there was nothing to do."""
        did = self._bring_due()
        for stage in stages:
            try:
                result = self._one_step(stage, turn, totals)
            except Stale:  # someone received a claimed message, or loaded definitions: look again
                did = True
                continue
            if result is not None:
                did = True
                self._evaluated = monotonic()
                totals.add(result)
                self._adapt(result)
                turn.evaluators.note(result.more)
                if progress is not None:
                    progress(totals)
        return did

    def _bring_due(self) -> bool:
        """Release messages whose retry is due; False if there are none."""
        if not self._stages:
            return False
        dues = self._store.read(lambda tx: tx.deliveries.watched_due())
        if not any(due <= self._store.session.clock() for due in dues.values()):
            return False
        return bool(self._store.transact("claim", bring_due))

    def _one_step(self, stage: Stage, turn: Turn, totals: Totals) -> Result | None:
        """The result of the next running step, or of a new one; None if there is nothing to do."""
        lanes = self._lanes.setdefault(stage, Lanes(turn.beside.seconds))
        result = lanes.next(lambda beside: self._fresh_steps(stage, replace(turn, beside=beside), totals))
        if result is not None and result.blocked is not None:
            if self._noted.get(result.blocked.queue) != result.blocked:  # a queue is looked at many times
                self._store.transact("lease", partial(note, blocked=result.blocked))
                self._noted[result.blocked.queue] = result.blocked
            totals.waiting[result.blocked.queue] = result.blocked.goal
        return result

    def _fresh_steps(self, stage: Stage, turn: Turn, totals: Totals) -> Generator[Result] | None:
        if totals.waiting:
            held = self._store.read(lambda tx: {name for name in totals.waiting.values() if _is_held(tx, name)})
            totals.waiting = {queue: goal for queue, goal in totals.waiting.items() if goal in held}
        if turn.beside.queues and monotonic() < self._look_again:
            return None  # nothing has come since the last look
        others = {} if self._holding is None else dict.fromkeys(self._holding.others(), "")
        return stage.steps(replace(turn, waiting={**totals.waiting, **others}))

    def _abandon(self) -> None:
        """Cancel running steps; nothing uncommitted has happened."""
        for lanes in self._lanes.values():
            lanes.close()
        self._lanes.clear()

    def _pause(self, waiter: Waiter, seconds: float) -> None:
        """Sleep until there may be work, or a long step may be evaluated."""
        busy = self._is_evaluating()
        if monotonic() >= self._look_again:
            self._look_again = monotonic() + LANE_SECONDS
        if waiter.wait(_BUSY_SECONDS if busy else seconds) or not busy:
            self._look_again = 0.0

    def _is_evaluating(self) -> bool:
        """Whether a long step is being evaluated, so that a commit will follow."""
        return any(lanes.busy for lanes in self._lanes.values())

    def _adapt(self, result: Result) -> None:
        """Adapt the size of steps: grow while they are short and there is more to do; shrink when they are long or
        settle little. A step that had to be small, for a worker, says little about a large one."""
        seconds = max(sum(result.seconds.values()), 0.001)
        if result.created > STEP_CREATED_MAX:  # one message may lead to very many
            self._size = max(_STEP_MESSAGES_MIN, result.messages * STEP_CREATED_MAX // result.created)
        elif result.messages < result.claimed // 2:
            self._size = max(_STEP_MESSAGES_MIN, result.messages * 2)
        elif seconds > 3 * STEP_SECONDS:
            self._size = max(_STEP_MESSAGES_MIN, self._size // 2)
        elif result.more and seconds < STEP_SECONDS:
            grown = int(result.claimed * min(2 * STEP_SECONDS / seconds, _GROWTH_MAX))
            self._size = max(self._size, min(STEP_MESSAGES_MAX, grown))

    def _rest(self) -> tuple[bool, float]:
        """Whether there is nothing left to do, and how long to sleep until something is due."""

        def work(tx: Transaction) -> tuple[int | None, int | None, int | None]:
            if not self._stages:
                return tx.outbox.next_due(), None, None
            return tx.outbox.next_due(), tx.timers.next_due(), min(tx.deliveries.watched_due().values(), default=None)

        effect, timer, attempt = self._store.read(work)
        now = self._store.session.clock()
        # What is due and was not done belongs to a queue on hold: that is no reason to hurry.
        later = [(due - now) / 1_000_000 for due in (effect, timer, attempt) if due is not None and due > now]
        return effect is attempt is None, min([IDLE_SECONDS, *later])

    def _prepare(self, evaluators: Evaluators) -> None:
        """Start the worker process first, before slower things are loaded."""
        modules = [stage.worker_module(self._store) for stage in self._stages]
        evaluators.prepare(module for module in modules if module)

    def _begin_spark(self, evaluators: Evaluators) -> None:
        """Start Spark in the background if the engine stays and the room has something to evaluate."""
        if not evaluators.has_begun and any(stage.worker_module(self._store) for stage in self._stages):
            evaluators.begin()

    def _keep_warm(self, evaluators: Evaluators, spark: Callable[[], SparkSession]) -> None:
        """Keep workers running, because starting them again takes a second or two."""
        if self._evaluated is None or monotonic() - self._evaluated < WARM_SECONDS or not evaluators.has_spark:
            return
        for stage in self._stages:
            stage.keep_warm(self._store, spark)
        self._evaluated = monotonic()

    def _keep_up(self) -> None:
        """At an interval, busy or not: remove what has reached the end of its retention."""
        if self._upkeep is not None and monotonic() >= self._upkeep_due:
            self._upkeep()
            self._upkeep_due = monotonic() + UPKEEP_SECONDS

    def _tidy(self) -> bool:
        return self._housekeeping is not None and self._housekeeping() > 0

    @contextmanager
    def _leased(self) -> Iterator[None]:
        transact = self._store.transact
        self._fence = transact("lease", self._begin)
        self._lead_by(True)
        try:
            with self._beating(lambda tx: tx.leases.renew(LEASE, self._fence, ENGINE_LEASE_SECONDS)):
                yield
        finally:
            self._lead_by(False)
            if not self._store.stopped:
                transact("release-lease", self._end)

    def _lead_by(self, leads: bool) -> None:
        if self._holding is not None:
            self._holding.leads = leads

    def _beating(self, beat: Callable[[Transaction], None]) -> AbstractContextManager[None]:
        """Renew a lease during a long step."""
        return beating(self._store, lambda: self._store.transact("lease", beat), self._lose)

    def _lose(self, lost: LeaseLost) -> None:
        """The lease is lost: no commit will pass, so stop and report it."""
        self._lost = lost
        self._stop.set()

    def _begin(self, tx: Transaction) -> int:
        """Take the lease, and remove what executors of earlier engines left; returns its number."""
        fence = tx.leases.acquire(LEASE, self._owner, ENGINE_LEASE_SECONDS)
        tx.staging.clear(fence, 0, 0)
        return fence

    def _end(self, tx: Transaction) -> None:
        tx.leases.release(LEASE, self._fence)
        tx.staging.clear(self._fence + 1, 0, 0)


def _is_led(tx: Transaction) -> bool:
    """Whether an engine leads, as other processes see it."""
    lease = tx.leases.named(LEASE)
    return lease is not None and lease.is_held(tx.now)


def _is_held(tx: Transaction, name: str) -> bool:
    queue = tx.queues.named_to_read(name)
    return queue is not None and (not queue.accepts or queue.in_use(tx.now))
