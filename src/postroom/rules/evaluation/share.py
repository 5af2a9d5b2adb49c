"""The rules' share of a step, on Spark: arrivals go out in chunks, pending actions come back, by one ``mapInArrow``.

Where executors read and write in the store themselves, a chunk has no bodies of stored messages, and a receipt comes
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from postroom.engine.spark.arrow import PACKED, packed_frame, packed_values
from postroom.engine.spark.exchange import Bay, Receipt, Ticket
from postroom.engine.spark.isolation import isolated, reason
from postroom.engine.spark.worker import Bounds
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.model.message import Stored
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.chunks import Base, packed, together, unpacked
from postroom.rules.evaluation.worker import evaluated, evaluated_there, work
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHUNK_MIN = 64  # fewer messages are not worth a second task


@dataclass(frozen=True)
class RulesShare:
    """The rules in force, as the engine sees them."""

    plan: Plan
    bay: Bay | None = field(default=None, kw_only=True)  # where executors leave answers that do not go through Spark

    def there(self, bay: Bay) -> RulesShare:
        return replace(self, bay=bay)

    @property
    def version(self) -> int:
        return self.plan.version

    @cached_property
    def watched(self) -> Mapping[str, int]:
        return {name: queue.priority for name, queue in self.plan.queues.items()}

    @property
    def windows(self) -> Mapping[str, tuple[int, int]]:
        return {}

    @property
    def agent(self) -> str:
        return "rule"

    @property
    def admission(self) -> Admission:
        return Admission.RULES | Admission.FLOWS  # what comes into a space is checked when it flows on

    @property
    def echoes(self) -> Sequence[str]:
        return self.plan.echoes

    @cached_property
    def sliced(self) -> frozenset[str]:
        return frozenset(name for name, target in self.plan.targets.items() if target.slicings)

    @cached_property
    def reading(self) -> frozenset[str]:
        return frozenset(name for name, queue in self.plan.queues.items() if queue.reads)

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return arrivals_of(self.plan, tx, claimed)

    def evaluate(
        self, spark: SparkSession, arrivals: Sequence[Arrival], base: Base, known: Timeline
    ) -> Iterator[Mapping[int, Effects]]:
        yield from _Job(self.plan, spark, base, known, self.bay).run(arrivals)

    def keep_warm(self, spark: SparkSession) -> None:
        _Job(self.plan, spark, {}, {}).warm()


class _Job:
    """Evaluates arrivals on Spark."""

    def __init__(self, plan: Plan, spark: SparkSession, base: Base, known: Timeline, bay: Bay | None = None) -> None:
        self._plan = plan
        self._spark = spark
        self._base = base
        self._known = known
        self._bay = bay

    def run(self, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        return isolated(self._spark, arrivals, self._together)

    def _together(self, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        tasks = self._spark.sparkContext.defaultParallelism
        return self._evaluated(together(arrivals, max(1, min(tasks, len(arrivals) // _CHUNK_MIN))))

    def warm(self) -> None:
        """Work off nothing, on every worker."""
        try:
            list(self._evaluated([[]] * self._spark.sparkContext.defaultParallelism))
        except Exception as error:
            reason(self._spark, error)  # a worker that has died will be made anew; if Java has, that is told

    def _evaluated(self, chunks: Sequence[Sequence[Arrival]]) -> Iterator[Mapping[int, Effects]]:
        rows = [packed(chunk, self._base, self._known, number) for number, chunk in enumerate(chunks)]
        ticket = None if self._bay is None else self._bay.ticket()
        answers = packed_values(frame_of_actions(packed_frame(self._spark, rows), self._plan, ticket).toArrow())
        if self._bay is not None and ticket is not None:
            answers = self._bay.answers(ticket, map(Receipt.unpacked, answers))
        for answer in answers:
            effects, unsettled, orders = unpacked(answer)
            yield {order: tuple(effects.get(order, ())) for order in orders if order not in unsettled}


def frame_of_actions(chunks: DataFrame, plan: Plan, ticket: Ticket | None = None) -> DataFrame:
    """Arrivals in, pending actions out; with a ticket, keys in and receipts out."""
    bounds = Bounds.beside(str(chunks.sparkSession.sparkContext.master))
    answer = partial(evaluated, plan) if ticket is None else partial(evaluated_there, plan, ticket)
    return chunks.mapInArrow(partial(work, answer, bounds), PACKED)


def spark_plan(spark: SparkSession, plan: Plan) -> str:
    """What Spark makes of a step."""
    from postroom.engine.spark.session import plan_of

    return plan_of(frame_of_actions(packed_frame(spark, [packed([], {}, {})]), plan))
