"""An engine that evaluates rules and arcs in its own process: every step and commit is real, no Spark has to start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tests.oracle.flowing import PlainShare

from postroom.engine.holding import Divided
from postroom.engine.runner import Totals
from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.jobs import receipt
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Share
from postroom.engine.steps.watching import WatchingStage
from postroom.engine.way import answered
from postroom.flows.stage import FlowStage
from postroom.room import Postroom
from postroom.rules.compilation.plan import free_of
from postroom.rules.evaluation.chunks import Base, packed, settled, together
from postroom.rules.evaluation.share import RulesShare
from postroom.rules.evaluation.worker import RulesTask
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_one_by_one = threading.Lock()  # steps are evaluated by several threads, and Saxon is made for one in a process


class HereShare(RulesShare):
    def evaluate(
        self, way: Any, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        for chunk in together(arrivals, min(2, len(arrivals))):
            with _one_by_one:
                answer = answered(RulesTask(self.plan), packed(chunk, base, known))
            yield settled(answer)


class HereStage(WatchingStage):
    def __init__(self, room: Postroom) -> None:
        self._programs = room._parts.programs

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        plan = self._programs.plan(tx)
        return HereShare(plan) if plan.queues or plan.echoes else None


class HereRules(HereStage):
    """The same for an engine that shares its queues with others."""

    def divided(self, tx: Transaction) -> Divided:
        plan = self._programs.plan(tx)
        return Divided(frozenset({*plan.queues, *plan.echoes}), free_of(plan))


class HereFlows(FlowStage):
    share_class = PlainShare

    def worker_module(self, store: Store) -> str:
        return ""


def evaluate_here(room: Postroom) -> Postroom:
    """Let a room's engine do without Spark."""
    room._parts.runner._stages = (HereStage(room), HereFlows(room._parts.room_graphs))

    def engine_run(*, master: str = "", conf: Any = None, spark: Any = None, **options: Any) -> Totals:
        return room._parts.runner.run(spark=lambda: cast("SparkSession", None), **options)

    room.engine.run_totals = engine_run  # type: ignore[method-assign]  # for this room alone
    return room


# --- executors of this process, which read and write in the store by connections of their own ---


@dataclass(frozen=True)
class ThereShare(RulesShare):
    acts: list[Callable[[], object]] = field(default_factory=list)  # each happens before executors read once

    def evaluate(
        self, way: Any, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        assert bay is not None
        if self.acts:
            self.acts.pop(0)()
        ticket = bay.ticket()
        chunks = list(enumerate(packed(chunk, base, known) for chunk in together(arrivals, min(2, len(arrivals)))))
        # The first is worked off twice, as by an attempt that was given up and went on.
        with _one_by_one:
            receipts = [receipt(RulesTask(self.plan), ticket, *chunk) for chunk in [chunks[0], *chunks]]
        yield from map(settled, bay.answers(ticket, receipts))


class ThereStage(HereStage):
    def __init__(self, room: Postroom, *acts: Callable[[], object]) -> None:
        super().__init__(room)
        self._acts = list(acts)

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        plan = self._programs.plan(tx)
        return ThereShare(plan, self._acts) if plan.queues or plan.echoes else None


def executors_here(room: Postroom, *acts: Callable[[], object]) -> Postroom:
    """Let a room's engine hand over keys, to executors that are in this process."""
    room._parts.runner._stages = (ThereStage(room, *acts),)

    def engine_run(*, master: str = "", conf: Any = None, spark: Any = None, **options: Any) -> Totals:
        return room._parts.runner.run(spark=lambda: cast("SparkSession", None), exchange=room.url, **options)

    room.engine.run_totals = engine_run  # type: ignore[method-assign]  # for this room alone
    return room
