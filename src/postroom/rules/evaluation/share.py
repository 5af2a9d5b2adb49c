"""The rules' share of a step: claimed messages go to workers in chunks, pending actions come back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.jobs import Job, OnSpark, frame
from postroom.engine.steps.effects import Action, Arrival, Document, Effects, Enqueue, Failed
from postroom.engine.steps.failures import Failure, error_message
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Watched
from postroom.engine.way import WORKER
from postroom.errors import RightMissing
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan, free_of
from postroom.rules.evaluation import small_chunks
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.grouping import Base, together
from postroom.rules.evaluation.worker import RulesTask
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.way import Way


@dataclass(frozen=True)
class RulesShare:
    """The rules in force, for the engine."""

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
            free=free_of(self.plan),
            sliced=frozenset(name for name, target in self.plan.targets.items() if target.slicings),
        )

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return arrivals_of(self.plan, tx, claimed)

    def weight(self, arrivals: Sequence[Arrival]) -> int:
        return len(arrivals)

    def evaluate(
        self, way: Way, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        job = _small_job(self.plan, base, known) if way.name == WORKER else _job(self.plan, base, known, bay)
        return job.run(way, arrivals)

    def barring(self, barred: Mapping[str, str]) -> RulesShare:
        return BarredRules(self.plan, barred)

    def folding(self, tx: Transaction, queues: Collection[str]) -> None:
        """None: rules keep no state of their own, what they read is in queues."""

    def keep_warm(self, spark: SparkSession) -> None:
        _job(self.plan).keep_warm(OnSpark(spark))


@dataclass(frozen=True)
class BarredRules(RulesShare):
    """The share with some rules barred: their actions are replaced by an error with the reason.

    Messages are evaluated one at a time, so that none sees the effects of a barred rule.
    """

    barred: Mapping[str, str]

    def evaluate(
        self, way: Way, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        for arrival in arrivals:
            for group in super().evaluate(way, [arrival], base, known, bay):
                yield {order: self._left(arrival, made, bay) for order, made in group.items()}

    def _left(self, arrival: Arrival, made: Effects, bay: Bay | None) -> Effects:
        acted = dict.fromkeys(
            action.rule for action in made if not isinstance(action, Failed) and self._is_barred(action)
        )
        if not acted:
            return made
        body = arrival.body if bay is None else bay.fetched([arrival.key])[arrival.key].body
        document = Document(arrival.key, arrival.format, arrival.type, body)
        errors = [
            error_message(
                Failure("system", RightMissing.code, self.barred[rule], rule), arrival.queue, arrival.key, document
            )
            for rule in acted
        ]
        return (*errors, *[action for action in made if not self._is_barred(action)])

    def _is_barred(self, action: Action) -> bool:
        """Whether an action is of a barred rule; error messages are not."""
        if isinstance(action, Failed) or (isinstance(action, Enqueue) and action.failed):
            return False
        return action.rule in self.barred


def _job(
    plan: Plan, base: Base | None = None, known: Timeline | None = None, bay: Bay | None = None
) -> Job[Arrival, Effects]:
    from postroom.rules.evaluation.chunks import packed, settled  # pyarrow takes half a second: only when it is needed

    pack = partial(packed, base=base or {}, known=known or {})
    return Job(RulesTask(plan), pack, settled, bay, together)


def _small_job(plan: Plan, base: Base, known: Timeline) -> Job[Arrival, Effects]:
    pack = partial(small_chunks.packed, base=base, known=known)
    return Job(RulesTask(plan, small=True), pack, small_chunks.settled, split=together)


def spark_plan(spark: SparkSession, plan: Plan) -> str:
    """Spark's plan of a step."""
    from postroom.engine.spark.internals import plan_of

    job = _job(plan)
    return plan_of(frame(spark, job.task, [job.pack([])]))
