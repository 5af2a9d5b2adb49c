"""The rules' share of a step: claimed messages go to Spark in chunks, and pending actions come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.jobs import Job
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Watched
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.chunks import Base, packed, settled, together
from postroom.rules.evaluation.worker import RulesTask
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RulesShare:
    """The rules in force, as the engine sees them."""

    plan: Plan
    agent = "rule"
    admission = Admission.RULES | Admission.FLOWS  # what comes into a space is checked when it flows on

    @property
    def version(self) -> int:
        return self.plan.version

    @cached_property
    def watched(self) -> Watched:
        return Watched(
            {name: queue.priority for name, queue in self.plan.queues.items()},
            echoes=self.plan.echoes,
            reading=frozenset(name for name, queue in self.plan.queues.items() if queue.reads),
            sliced=frozenset(name for name, target in self.plan.targets.items() if target.slicings),
        )

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return arrivals_of(self.plan, tx, claimed)

    def evaluate(
        self, spark: SparkSession, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        return _job(self.plan, base, known, bay).run(spark, arrivals)

    def keep_warm(self, spark: SparkSession) -> None:
        _job(self.plan).keep_warm(spark)


def _job(
    plan: Plan, base: Base | None = None, known: Timeline | None = None, bay: Bay | None = None
) -> Job[Arrival, Effects]:
    pack = partial(packed, base=base or {}, known=known or {})
    return Job(RulesTask(plan), pack, settled, bay, together)


def spark_plan(spark: SparkSession, plan: Plan) -> str:
    """What Spark makes of a step."""
    from postroom.engine.spark.internals import plan_of

    job = _job(plan)
    return plan_of(job.frame(spark, [job.pack([])]))
