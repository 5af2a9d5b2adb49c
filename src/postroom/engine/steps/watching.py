"""Steps over the queues that a capability watches: rules and arcs.

Steps may be claimed ahead if their messages' rules read no other messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.holding import Divided
from postroom.engine.spark.executor_store import Damaged
from postroom.engine.steps.effects import Effects, ResetSlice
from postroom.engine.steps.pipeline import Pipeline
from postroom.engine.steps.sharing import puts
from postroom.engine.steps.stage import Entangled, Result, Share, Turn
from postroom.engine.steps.step import Claim, claim, commit, evaluate, set_aside
from postroom.limits import PIPELINE_MESSAGES_MAX, PIPELINE_STEPS
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.queues import Unshared
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The effects of each message, and how many messages are settled; or those that executors found damaged.
_Evaluated = tuple[Mapping[int, Effects], int] | Damaged


class WatchingStage(ABC):
    """A stage that takes messages from watched queues."""

    @abstractmethod
    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        """Its share under the definitions in force; None if it watches nothing. Queues in ``waiting`` are skipped."""

    def steps(self, turn: Turn) -> Generator[Result] | None:
        share = turn.store.read(lambda tx: self.share(tx, {*turn.waiting, *turn.beside.queues}))
        return None if share is None else steps(share, turn)

    def divided(self, tx: Transaction) -> Divided | None:
        """Its queues, if other engines may have some of them; else the leading engine has all."""
        return None

    def worker_module(self, store: Store) -> str:
        """None, unless the capability has one."""
        return ""

    def keep_warm(self, store: Store, spark: Callable[[], SparkSession]) -> None:
        share = store.read(self.share)
        if share is not None:
            share.keep_warm(spark())


def steps(share: Share, turn: Turn, ahead: int = PIPELINE_STEPS) -> Generator[Result]:
    """The results of the steps of a share. Raises ``Stale`` if the room has changed: look again."""
    work = _Messages(share, turn)
    return Pipeline(work, ahead).run(turn.beside.seconds, work.busy)


class _Messages:
    """The messages of one share in a turn."""

    def __init__(self, share: Share, turn: Turn) -> None:
        self._share = share
        self._turn = turn
        # What others read, nobody else may change, and the other way round.
        reading = share.watched.reading if turn.beside.reads else ()
        self._waiting = {**turn.waiting, **dict.fromkeys([*reading, *turn.beside.queues], "")}
        self._after: dict[str, int] = {}
        self._count = 0
        self._queues: frozenset[str] = frozenset()  # that it has taken from
        self._beside_others = bool(turn.beside.queues)

    def claim(self, under_way: Sequence[Claim]) -> Claim | None:
        if self._count and not (under_way and under_way[-1].more):
            return None
        turn, size = self._turn, min(self._turn.size(), PIPELINE_MESSAGES_MAX - self._count)
        if size <= 0:
            return None
        take = partial(claim, share=self._share, size=size, fence=turn.fence, bodies=turn.answer_store is None)
        take = partial(take, holding=turn.holding)
        claimed = turn.store.transact("claim", partial(take, waiting=self._waiting, after=self._after))
        if claimed is None:
            return None
        claimed.bay = None if turn.answer_store is None else turn.answer_store.bay()
        self._count += len(claimed.arrivals)
        self._queues |= {stored.queue for stored in claimed.stored}
        self._after |= {stored.queue: stored.position for stored in claimed.stored if stored.key not in claimed.timers}
        return claimed

    def evaluate(self, claimed: Claim) -> _Evaluated:
        try:
            return evaluate(claimed, self._turn.evaluators)
        except Damaged as damaged:  # only those who read the bodies could find out
            return damaged

    def commit(self, claimed: Claim, evaluated: _Evaluated) -> Result:
        turn = self._turn
        if isinstance(evaluated, Damaged):
            turn.store.transact(
                "claim", partial(set_aside, keys=evaluated.keys, fence=turn.fence, holding=turn.holding)
            )
            raise Stale from evaluated
        effects, settled = evaluated
        if self._beside_others and any(type(action) is ResetSlice for made in effects.values() for action in made):
            raise Entangled
        work = partial(commit, claimed=claimed, effects=effects, settled=settled, fence=turn.fence, admit=turn.admit)
        work = partial(work, holding=turn.holding)
        turn.store.reserve_keys(puts(effects))
        try:
            done = turn.store.transact("step", partial(work, shares=True))
        except Unshared:
            done = turn.store.transact("step", work)
        by = claimed.evaluated
        return replace(done, claimed=len(claimed.arrivals), more=claimed.more, evaluated=by)

    def busy(self) -> Result:
        """What it has taken so far. From now on it keeps to those queues, so that others may take the rest."""
        watched = self._share.watched
        others = {*watched.queues, *watched.echoes} - self._queues
        self._beside_others = True
        self._waiting |= dict.fromkeys(others, "")
        return Result(busy=self._queues, reads=not self._queues.isdisjoint(watched.reading))
