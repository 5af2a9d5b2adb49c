"""Arcs on Spark: the graph behind a space is planned once, and every step sends its events through that plan.

Planning takes a hundred times as long as a small step. So a plan begins with a task that takes its events out of the
properties of the job: these are all that a job has of its own.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from postroom.engine.arrow import stream
from postroom.engine.effects import Arrival, Document, Effects, Enqueue
from postroom.engine.failures import Failure, error_message
from postroom.engine.isolation import isolated
from postroom.errors import BodyError, FlowInvalid
from postroom.flows.chart import Chart
from postroom.flows.definitions import Transform
from postroom.flows.door import event
from postroom.flows.types import Tuple
from postroom.flows.values import label
from postroom.limits import FLOW_PLANS_MAX
from postroom.model.message import NO_PROPERTIES, Draft, Stored
from postroom.store.queues import Door
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from postroom.engine.effects import Granule
    from postroom.engine.serial import Timeline

_CODE = "PF0001"  # of an event that does not fit, or that an arc cannot work out
_PROPERTY = "postroom.flow"
_EVENT = pa.schema([("n", pa.int64()), ("body", pa.string())])
_PART_MIN = 256  # fewer events are not worth a second task


@dataclass(frozen=True)
class FlowShare:
    """The events of an epoch, and the graph that they meet. ``living`` are the places that are still there."""

    version: int
    chart: Chart
    living: frozenset[str]
    windows: Mapping[str, tuple[int, int]]

    @cached_property
    def watched(self) -> Mapping[str, int]:
        return dict.fromkeys(self.windows, 0)

    @property
    def agent(self) -> str:
        return "arc"

    @property
    def doors(self) -> Door:
        return Door.FLOWS

    @property
    def echoes(self) -> Sequence[str]:
        return ()

    @property
    def sliced(self) -> frozenset[str]:
        return frozenset()

    @property
    def reading(self) -> frozenset[str]:
        return frozenset()

    def arrivals(self, tx: Transaction | None, claimed: Sequence[Stored]) -> list[Arrival]:
        """The events themselves: an arc looks at no other message."""
        return [self._arrival(index, stored) for index, stored in enumerate(claimed)]

    def _arrival(self, index: int, stored: Stored) -> Arrival:
        body, failure = stored.body, None
        if stored.cause is not None or stored.format != "json":  # what a rule has made came through no door
            try:
                draft = Draft(stored.body, stored.format, None, stored.properties)
                body = event(draft, self.chart.running.spaces[stored.queue].type, stored.queue, {}).body
            except (BodyError, FlowInvalid) as error:
                failure = str(error)
        about = (stored.properties, stored.created, stored.cause)
        return Arrival(index, stored.queue, stored.key, "json", None, body, *about, failure=failure)

    def evaluate(
        self,
        spark: SparkSession,
        arrivals: Sequence[Arrival],
        base: Mapping[Granule, Sequence[Document]],
        known: Timeline,
    ) -> Iterator[Mapping[int, Effects]]:
        return isolated(spark, arrivals, lambda some: self._evaluated(spark, some))

    def _evaluated(self, spark: SparkSession, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        failed = [each for each in arrivals if each.failure is not None]
        yield {each.order: (error(each, str(each.failure)),) for each in failed}
        by_space: dict[str, list[Arrival]] = {}
        for each in arrivals:
            if each.failure is None:
                by_space.setdefault(each.queue, []).append(each)
        for space, some in by_space.items():
            yield flow_of(spark, self.chart, self.living, space).effects(some)

    def keep_warm(self, spark: SparkSession) -> None:
        for space in self.windows:
            flow_of(spark, self.chart, self.living, space).effects([])
            return


def error(arrival: Arrival, why: str, arc: str | None = None) -> Enqueue:
    """The error message of an event."""
    failure = Failure("application", _CODE, why, arc)
    return error_message(failure, arrival.queue, arrival.key, Document(0, arrival.format, None, arrival.body))


def spark_plan(spark: SparkSession, chart: Chart, space: str) -> str:
    """What Spark makes of the arcs behind a space."""
    from postroom.engine.spark import plan_of

    return plan_of(flow_of(spark, chart, chart.places, space).frame)


# --- plans --------------------------------------------------------------------------------------------------------


_plans: OrderedDict[Any, Flow] = OrderedDict()


def flow_of(spark: SparkSession, chart: Chart, living: frozenset[str], space: str) -> Flow:
    """The plan of all that lies behind a space, made when it is first asked for."""
    key = (id(spark), space, living)
    found = chart.memory.get(key)
    if found is None:
        found = chart.memory[key] = _planned(spark, chart, living, space)
    return found


def _planned(spark: SparkSession, chart: Chart, living: frozenset[str], space: str) -> Flow:
    """A plan, or the one that another version of the graph has for the same."""
    from postroom.flows.network import Network

    graph, kept = chart.running, chart.keeping & living
    network = Network(graph, kept)
    steps = network.ways(space)
    behind = [space, *(step.arc.target for step in steps)]
    joined = [
        step.arc.does.join.table
        for step in steps
        if isinstance(step.arc.does, Transform) and step.arc.does.join is not None
    ]
    known = (
        id(spark),
        space,
        tuple((step.before, str(step.arc), step.arc.target in kept) for step in steps),
        tuple((str(graph.spaces[name].type), name in chart.flowing) for name in behind),
        tuple(chart.rows[name] for name in joined),
    )
    found = _plans.get(known)
    if found is None:
        tables = {name: _table(spark, chart, name) for name in joined}
        frame = network.deliveries(space, _events(spark), tables, brief=True)
        frame = frame.select("n", "place", "body", "failure", *(["rows"] if joined else []))
        ends = [End(step.arc.name, step.arc.target, step.arc.target in chart.flowing) for step in steps]
        found = _plans[known] = Flow(spark, frame, ends)
        if len(_plans) > FLOW_PLANS_MAX:
            _plans.popitem(last=False)
    _plans.move_to_end(known)
    return found


@dataclass(frozen=True, slots=True)
class End:
    """Where one arc of the plan leads; what is kept in a space that events leave again has passed."""

    arc: str
    space: str
    passes: bool


class Flow:
    """The planned graph behind one space."""

    def __init__(self, spark: SparkSession, frame: DataFrame, ends: Sequence[End]) -> None:
        self._spark = spark  # as long as a plan is kept, no other session gets its number
        self._context = spark.sparkContext
        self.frame = frame
        self._heads = [(each.arc, each.space, "json", None, NO_PROPERTIES) for each in ends]
        self._tails = [Enqueue(*head, "", passed=each.passes)[6:] for head, each in zip(self._heads, ends, strict=True)]

    def effects(self, arrivals: Sequence[Arrival]) -> dict[int, Effects]:
        """What events lead to, on Spark."""
        parts = self._context.defaultParallelism
        size = max(-(-len(arrivals) // parts), _PART_MIN)
        for part in range(parts):
            chunk = arrivals[part * size : (part + 1) * size]
            self._give(part, _packed(chunk) if chunk else None)
        try:
            found = self.frame.toArrow()
        finally:
            for part in range(parts):  # the jobs of others need not carry them along
                self._give(part, None)
        return self._made(arrivals, found)

    def _give(self, part: int, packed: str | None) -> None:
        self._context.setLocalProperty(f"{_PROPERTY}.{part}", packed)  # type: ignore[arg-type]  # None takes it away

    def _made(self, arrivals: Sequence[Arrival], found: pa.Table) -> dict[int, Effects]:
        effects: dict[int, Effects] = dict.fromkeys([each.order for each in arrivals], ())
        numbers, places = (found.column(name).to_numpy() for name in ("n", "place"))
        met = [found.column("rows").to_numpy()] if "rows" in found.column_names else []
        order = np.lexsort((*met, places, numbers))
        bodies = found.column("body").take(order).to_pylist()
        failures = found.column("failure")
        whys = failures.take(order).to_pylist() if failures.null_count < len(failures) else None
        by_order = {each.order: each for each in arrivals}
        heads, tails, new = self._heads, self._tails, tuple.__new__
        made: list[Any] = []
        last = -1
        bound = zip(numbers[order].tolist(), places[order].tolist(), bodies, strict=True)
        for row, (number, place, body) in enumerate(bound):
            if number != last:
                if made:
                    effects[last] = tuple(made)
                made, last = [], number
                own = by_order[number].body
            if whys is not None and whys[row] is not None:  # this arc alone delivers an error in its place
                made.insert(0, error(by_order[number], whys[row], heads[place][0]))
                continue
            made.append(new(Enqueue, (*heads[place], own if body is None else body, *tails[place])))
        if made:
            effects[last] = tuple(made)
        return effects


def _packed(arrivals: Sequence[Arrival]) -> str:
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([each.order for each in arrivals], pa.int64()),
            pa.array([each.body for each in arrivals], pa.string()),
        ],
        schema=_EVENT,
    )
    return base64.b64encode(stream(rows)).decode()


def _events(spark: SparkSession) -> DataFrame:
    """The events of whichever step runs the plan: each task takes its own out of the job's properties."""
    parts = spark.sparkContext.defaultParallelism
    return spark.range(0, parts, 1, parts).mapInArrow(_unpacked, "n long, body string")


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        for part in batch.column(0).to_pylist():
            packed = context.getLocalProperty(f"{_PROPERTY}.{part}")
            if packed is not None:
                yield from pa.ipc.open_stream(base64.b64decode(packed))


def _table(spark: SparkSession, chart: Chart, name: str) -> DataFrame:
    """A table's rows, by its type."""
    from postroom.flows.network import NUMBER
    from postroom.flows.sql import event_of

    type = chart.graph.tables[name].type
    assert isinstance(type, Tuple), "a check sees to it"
    names = [label(type, place) for place in range(len(type.fields))]
    bodies = [json.dumps(dict(zip(names, row, strict=True))) for row in chart.rows[name]]
    columns = {"body": pa.array(bodies, pa.string()), NUMBER: pa.array(range(len(bodies)), pa.int64())}
    frame = spark.createDataFrame(pa.table(columns))
    return frame.selectExpr(f"{event_of('body', type)} AS row", NUMBER).selectExpr("row.*", NUMBER)
