"""Steps one after another: while one is committed, the next ones are claimed and evaluated where that is sound.

It is where their messages look at no others. Then no step has to know what those before it did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.spark.collector import collector_off
from postroom.engine.spark.exchange import Bay, Damaged, Depot
from postroom.engine.steps.effects import Effects, ResetSlice
from postroom.engine.steps.stage import ALONE, Beside, Entangled, Exchanging, Result, Share, Turn, timed
from postroom.engine.steps.step import Claim, claim, commit, evaluate, set_aside
from postroom.limits import PIPELINE_MESSAGES_MAX, PIPELINE_STEPS
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit, Stale, admit_nothing
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Evaluated = tuple[dict[int, Effects], int]


def steps(
    store: Store,
    share: Share,
    size: Callable[[], int],
    fence: int,
    spark: Callable[[], SparkSession],
    waiting: Mapping[str, str],
    ahead: int = PIPELINE_STEPS,
    admit: Admit = admit_nothing,
    depot: Depot | None = None,
    beside: Beside = ALONE,
) -> Generator[Result]:
    """What each step did, as long as they follow one another; nothing if there was nothing to do.

    A step that is evaluated for long answers that it is busy, whenever it is asked; so others can go on ``beside`` it.

    ``Stale`` means that the world moved, and whoever is told less than was claimed must look again, too. ``ahead`` is
    how many steps are under way besides the one that is committed. With a ``depot`` executors read and write there.
    """
    if beside.reads:  # what others read, nobody else may change, and the other way round
        waiting = {**waiting, **dict.fromkeys(share.reading, "")}
    waiting = {**waiting, **dict.fromkeys(beside.queues, "")}
    pipeline = _Pipeline(store, share, size, fence, spark, waiting, ahead, admit, depot)
    with pipeline:
        with collector_off():
            pipeline.take()
        while pipeline.under_way:
            with collector_off():
                pipeline.fill()
            patience = beside.seconds
            while patience is not None and not pipeline.is_evaluated(patience):
                pipeline.stay_apart()
                yield Result(busy=pipeline.queues, reads=pipeline.reads)
                patience = 0.0
            with collector_off():
                result = pipeline.commit(others=bool(beside.queues) or pipeline.apart)
            yield result
            if result.messages < result.claimed:
                return  # those behind must wait for what was left out


class WatchingStage(ABC):
    """A stage that takes the messages of the queues that it watches."""

    @abstractmethod
    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        """Its share under the definitions in force; None if it watches nothing.

        Queues that are ``waiting`` for another one are left alone.
        """

    def steps(self, turn: Turn) -> Generator[Result] | None:
        aside = {*turn.waiting, *turn.beside.queues}
        share = turn.store.read(lambda tx: self.share(tx, aside))
        if share is None:
            return None
        admit, depot, beside = turn.admit, turn.depot, turn.beside
        return steps(
            turn.store, share, turn.size, turn.fence, turn.spark, turn.waiting, admit=admit, depot=depot, beside=beside
        )

    def keep_warm(self, store: Store, spark: Callable[[], SparkSession]) -> None:
        share = store.read(self.share)
        if share is not None:
            share.keep_warm(spark())


class _Pipeline:
    def __init__(
        self,
        store: Store,
        share: Share,
        size: Callable[[], int],
        fence: int,
        spark: Callable[[], SparkSession],
        waiting: Mapping[str, str],
        ahead: int,
        admit: Admit,
        depot: Depot | None,
    ) -> None:
        self._store = store
        self._size = size
        self._ahead = ahead
        self._depot = depot if isinstance(share, Exchanging) else None
        self._share = share
        self._waiting = waiting
        self._claim = partial(claim, share=share, fence=fence, bodies=self._depot is None)
        self._evaluate = collector_off()(partial(evaluate, spark=spark))
        self._set_aside = partial(set_aside, fence=fence)
        self._commit = partial(commit, fence=fence, admit=admit)
        self._threads: ThreadPoolExecutor | None = None  # a step that is alone needs none
        self._bays: list[Bay] = []
        self._after: dict[str, int] = {}
        self._claimed = 0
        self.queues: frozenset[str] = frozenset()  # that it has taken from
        self.apart = False  # whether it keeps to those
        self.under_way: deque[tuple[Claim, dict[str, float], Future[_Evaluated] | None]] = deque()

    def take(self) -> bool:
        """Claim the next step; False if none can follow."""
        seconds: dict[str, float] = {}
        size = min(self._size(), PIPELINE_MESSAGES_MAX - self._claimed)
        if size <= 0:
            return False
        claim_next = partial(self._claim, size=size, after=self._after, waiting=self._waiting)
        with timed(seconds, "claim"):
            found = self._store.transact("claim", claim_next)
        if found is None:
            return False
        if self._depot is not None and isinstance(found.share, Exchanging):
            found.bay = self._depot.bay()
            found.share = found.share.there(found.bay)
            self._bays.append(found.bay)
        self._claimed += len(found.arrivals)
        self.queues |= {stored.queue for stored in found.stored}
        self._after |= {each.queue: each.position for each in found.stored if each.key not in found.timers}
        self.under_way.append((found, seconds, self._begun(found) if self._threads else None))
        return True

    def fill(self) -> None:
        """Claim and begin as many steps as may be under way."""
        while len(self.under_way) <= self._ahead and self.under_way[-1][0].more:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._ahead, "postroom-evaluate")
            found, seconds, coming = self.under_way[-1]
            if coming is None:
                self.under_way[-1] = (found, seconds, self._begun(found))
            if not self.take():
                return

    def _begun(self, found: Claim) -> Future[_Evaluated]:
        assert self._threads is not None
        return self._threads.submit(self._evaluate, found)

    @property
    def reads(self) -> bool:
        """Whether its messages look at others."""
        return not self.queues.isdisjoint(self._share.reading)

    def is_evaluated(self, patience: float) -> bool:
        """Whether the oldest step can be committed; waits so many seconds for it."""
        found, seconds, coming = self.under_way[0]
        if coming is None:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(max(1, self._ahead), "postroom-evaluate")
            coming = self._begun(found)
            self.under_way[0] = (found, seconds, coming)
        return bool(wait([coming], timeout=patience).done)

    def stay_apart(self) -> None:
        """Take no message of any queue but those that it has taken from: others will."""
        if not self.apart:
            self.apart = True
            others = {*self._share.watched, *self._share.echoes} - self.queues
            self._waiting = {**self._waiting, **dict.fromkeys(others, "")}

    def commit(self, others: bool = False) -> Result:
        """Finish the oldest step; ``others`` tells whether some may have been committed beside it."""
        found, seconds, coming = self.under_way.popleft()
        with timed(seconds, "evaluate"):
            effects, settled = self._evaluated(found, coming)
        if others and any(type(action) is ResetSlice for made in effects.values() for action in made):
            raise Entangled
        work = partial(self._commit, claimed=found, effects=effects, settled=settled)
        with timed(seconds, "commit"):
            result = self._store.transact("step", work)
        if found.bay is not None:
            found.bay.close()
        return replace(result, claimed=len(found.arrivals), more=found.more, seconds=seconds)

    def _evaluated(self, found: Claim, coming: Future[_Evaluated] | None) -> _Evaluated:
        try:
            return self._evaluate(found) if coming is None else coming.result()
        except Damaged as damaged:  # only those who read the bodies could find out
            self._store.transact("claim", partial(self._set_aside, keys=damaged.keys))
            raise Stale from damaged

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for bay in self._bays:
            bay.close()
