"""An engine that evaluates rules and arcs in its own process: every step and commit is real, no Spark has to start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tests.oracle.flowing import PlainShare

from postroom.engine.effects import Arrival, Effects
from postroom.engine.pipeline import WatchingStage
from postroom.engine.runner import Totals
from postroom.engine.serial import Timeline
from postroom.engine.stage import Share
from postroom.flows.steps import FlowStage
from postroom.room import Postroom
from postroom.rules.stage import Base, RulesShare, evaluated, packed, together, unpacked
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HereShare(RulesShare):
    def evaluate(
        self, spark: Any, arrivals: Sequence[Arrival], base: Base, known: Timeline
    ) -> Iterator[Mapping[int, Effects]]:
        for chunk in together(arrivals, min(2, len(arrivals))):
            effects, unsettled, orders = unpacked(evaluated(self.plan, packed(chunk, base, known)))
            yield {order: tuple(effects.get(order, ())) for order in orders if order not in unsettled}


class HereStage(WatchingStage):
    def __init__(self, room: Postroom) -> None:
        self._programs = room._programs

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        plan = self._programs.plan(tx)
        return HereShare(plan) if plan.queues or plan.echoes else None


class HereFlows(FlowStage):
    share_class = PlainShare


def evaluate_here(room: Postroom) -> Postroom:
    """Let a room's engine do without Spark."""
    room._runner._stages = (HereStage(room), HereFlows(room._charts))

    def engine_run(*, master: str = "", conf: Any = None, **options: Any) -> Totals:
        return room._runner.run(spark=lambda: cast("SparkSession", None), **options)

    room.engine_run = engine_run  # type: ignore[method-assign]  # for this room alone
    return room
