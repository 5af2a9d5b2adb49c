"""Steps one after another: while one is committed, the next ones are claimed and evaluated where that is sound.

It is where their messages look at no others. Then no step has to know what those before it did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.depot import Bay, Damaged, Depot
from postroom.engine.effects import Effects
from postroom.engine.garbage import collector_off
from postroom.engine.stage import Exchanging, Result, Share, Turn, timed
from postroom.engine.step import Claim, claim, commit, evaluate, set_aside
from postroom.limits import PIPELINE_MESSAGES_MAX, PIPELINE_STEPS
from postroom.store.base import Store
from postroom.store.batch import Admit, Stale, admit_nothing
from postroom.store.transaction import Transaction

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
) -> Generator[Result]:
    """What each step did, as long as they follow one another; nothing if there was nothing to do.

    ``Stale`` means that the world moved, and whoever is told less than was claimed must look again, too. ``ahead`` is
    how many steps are under way besides the one that is committed. With a ``depot`` executors read and write there.
    """
    pipeline = _Pipeline(store, share, size, fence, spark, waiting, ahead, admit, depot)
    with collector_off(), pipeline:
        pipeline.take()
        while pipeline.under_way:
            pipeline.fill()
            result = pipeline.commit()
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
        share = turn.store.read(lambda tx: self.share(tx, turn.waiting))
        if share is None:
            return None
        return steps(
            turn.store, share, turn.size, turn.fence, turn.spark, turn.waiting, admit=turn.admit, depot=turn.depot
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
        self._claim = partial(claim, share=share, fence=fence, waiting=waiting, bodies=self._depot is None)
        self._evaluate = partial(evaluate, spark=spark)
        self._set_aside = partial(set_aside, fence=fence)
        self._commit = partial(commit, fence=fence, admit=admit)
        self._threads: ThreadPoolExecutor | None = None  # a step that is alone needs none
        self._bays: list[Bay] = []
        self._after: dict[str, int] = {}
        self._claimed = 0
        self.under_way: deque[tuple[Claim, dict[str, float], Future[_Evaluated] | None]] = deque()

    def take(self) -> bool:
        """Claim the next step; False if none can follow."""
        seconds: dict[str, float] = {}
        size, after = min(self._size(), PIPELINE_MESSAGES_MAX - self._claimed), self._after
        if size <= 0:
            return False
        with timed(seconds, "claim"):
            found = self._store.transact("claim", lambda tx: self._claim(tx, size=size, after=after))
        if found is None:
            return False
        if self._depot is not None and isinstance(found.share, Exchanging):
            found.bay = self._depot.bay()
            found.share = found.share.there(found.bay)
            self._bays.append(found.bay)
        self._claimed += len(found.arrivals)
        self._after |= {each.queue: each.position for each in found.stored if each.key not in found.timers}
        self.under_way.append((found, seconds, self._begun(found) if self._threads else None))
        return True

    def fill(self) -> None:
        """Claim and begin as many steps as may be under way."""
        while len(self.under_way) <= self._ahead and self.under_way[-1][0].more:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._ahead, "postroom-evaluate")
                found, seconds, _ = self.under_way.pop()
                self.under_way.append((found, seconds, self._begun(found)))
            if not self.take():
                return

    def _begun(self, found: Claim) -> Future[_Evaluated]:
        assert self._threads is not None
        return self._threads.submit(self._evaluate, found)

    def commit(self) -> Result:
        """Finish the oldest step."""
        found, seconds, coming = self.under_way.popleft()
        with timed(seconds, "evaluate"):
            effects, settled = self._evaluated(found, coming)
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
