"""Arcs on Spark: the graph after a space is planned once, and every step runs that plan with its events."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroom.engine.spark.executor_store import Bay, Damaged, unreached
from postroom.engine.spark.jobs import PACKED, OnSpark, answers_left, parallelism, run_planned, tasks
from postroom.engine.steps.effects import Arrival, Effects, Enqueue
from postroom.flows.evaluation.events import error
from postroom.flows.evaluation.worker import (
    DAMAGED,
    EVENTS,
    GONE,
    NO_PLACE,
    READ,
    UNFIT,
    UNREACHED,
    delivered,
    events_of,
    given,
    keys_of,
    leave,
    read,
)
from postroom.flows.graph.graph import Graph
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.definitions import Arc
from postroom.flows.language.tables import columns
from postroom.flows.language.types import Type
from postroom.limits import FLOW_PLANS_MAX
from postroom.model.message import NO_PROPERTIES
from postroom.store.kernel.batch import Stale

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from postroom.flows.evaluation.dataflow import ArcNetwork
    from postroom.flows.evaluation.paths import PathStep

#: The plan of what lies behind a space.
FlowAt = Callable[[str], "Flow"]
#: Tells what arrivals say, by their numbers, where executors read them and the engine has not.
Told = Callable[[Sequence[Arrival]], Mapping[int, Arrival]]

_PART_MIN = 256  # fewer events are not worth a second task
_NOTHING = pa.schema(
    [("n", pa.int64()), ("place", pa.int32()), ("body", pa.string()), ("failure", pa.string())]
).empty_table()

_plans: OrderedDict[Any, Flow] = OrderedDict()
_lock = Lock()  # steps are evaluated by several threads


def flow_of(
    spark: SparkSession,
    room_graph: RoomGraph,
    living: frozenset[str],
    space: str,
    url: str | None = None,
    aside: Mapping[str, str] | None = None,
) -> Flow:
    """The plan for everything after a space, made at its first use.

    With a URL, executors read events and write deliveries there. Arcs in ``aside`` deliver their reason for each event;
    so does an arc that Spark cannot plan.
    """
    parts = parallelism(spark)
    key = (id(spark), space, living, url, parts, tuple((aside or {}).items()))
    with _lock:
        flow = room_graph.memory.get(key)
        if flow is None:
            flow = room_graph.memory[key] = _planned(spark, room_graph, living, space, url, parts, aside or {})
        return flow


def _planned(
    spark: SparkSession,
    room_graph: RoomGraph,
    living: frozenset[str],
    space: str,
    url: str | None,
    parts: int,
    aside: Mapping[str, str],
) -> Flow:
    """A new plan, or that of an earlier version if nothing relevant has changed."""
    from postroom.flows.evaluation.dataflow import ArcNetwork

    graph, kept = room_graph.running, room_graph.keeping & living
    cuts = ArcNetwork(graph, kept).junctions(space)
    network = ArcNetwork(graph, kept, aside, cuts)
    steps = network.ways(space)
    behind = [space, *(step.arc.target for step in steps)]
    joined = [step.arc.table for step in steps if step.arc.table is not None]
    known = (
        id(spark),
        url,
        parts,
        space,
        tuple((step.before, str(step.arc), step.arc.target in kept) for step in steps),
        tuple((str(graph.spaces[name].type), name in room_graph.passing) for name in behind),
        tuple(room_graph.rows[name] for name in joined),
        tuple(aside.items()),
        tuple(cuts),
    )
    flow = _plans.get(known)
    if flow is None:
        tables = {name: table_frame(spark, room_graph, name) for name in joined}
        try:
            frame = _delivered(network, spark, space, graph.spaces[space].type, tables, url, parts)
        except Exception as error:
            more = {} if aside else _unplanned(spark, graph, list(dict.fromkeys(step.arc for step in steps)), tables)
            if not more:
                raise error
            return _planned(spark, room_graph, living, space, url, parts, more)
        ends = list(_ends(room_graph, kept, steps))
        flow = _plans[known] = Flow(spark, frame, ends, parts, cuts)
        if len(_plans) > FLOW_PLANS_MAX:
            _plans.popitem(last=False)
    _plans.move_to_end(known)
    return flow


def _ends(room_graph: RoomGraph, kept: frozenset[str], steps: Sequence[PathStep]) -> Iterator[End]:
    """Where each step leads, and its path; an end in a space comes before the steps that go on from there."""
    ways: dict[int, tuple[int, ...]] = {-1: ()}
    for step in steps:
        name = step.arc.target
        ways[step.number] = (*ways[step.before], len(steps) + step.number)
        way = (*ways[step.before], step.number)
        yield End(step.arc.name, name, name in room_graph.passing, name in kept, way, ways[step.number])


def _unplanned(
    spark: SparkSession, graph: Graph, arcs: Sequence[Arc], tables: Mapping[str, DataFrame]
) -> dict[str, str]:
    """The arcs that Spark cannot plan, with the reasons; the others run without them."""
    from postroom.flows.evaluation.dataflow import ArcNetwork

    reasons = {}
    for arc in arcs:
        alone = ArcNetwork(replace(graph, arcs={arc.name: (arc, arc)}), frozenset({arc.target}))
        events = spark.createDataFrame([], EVENTS)
        try:
            alone.deliveries(arc.source, events, tables)
        except Exception as error:
            OnSpark(spark).reason(error)  # raises what no arc is guilty of
            reasons[arc.full_name] = f"Spark cannot plan it: {str(error).splitlines()[0][:200]}"
    return reasons


@dataclass(frozen=True, slots=True)
class End:
    """The end of one arc in the plan. In a space that events leave again, messages are stored as processed."""

    arc: str
    space: str
    passes: bool
    keeps: bool
    way: tuple[int, ...]
    onward: tuple[int, ...]  # the way of what goes on from there


class Flow:
    """The planned graph after one space."""

    def __init__(
        self, spark: SparkSession, frame: DataFrame, ends: Sequence[End], parts: int, cuts: Sequence[str] = ()
    ) -> None:
        self._spark = spark  # as long as a plan is kept, no other session gets its number
        self.frame = frame
        self._parts = parts  # as many as the plan reads, however many cores there are now
        self.ends, self.cuts = ends, cuts
        self._heads = [(end.arc, end.space, "json", None, NO_PROPERTIES) for end in ends]
        self._tails = [Enqueue(*head, "", passed=end.passes)[6:] for head, end in zip(self._heads, ends, strict=True)]

    def effects(self, arrivals: Sequence[Arrival], at: FlowAt) -> dict[int, Effects]:
        """The effects of events, on Spark; beyond a cut, further plans run."""
        return self._made(arrivals, self.found(arrivals), at)

    def found(self, arrivals: Sequence[Arrival]) -> pa.Table:
        """What arcs deliver of the events."""
        return self._run("", arrivals, events_of)

    def effects_there(self, arrivals: Sequence[Arrival], bay: Bay, told: Told, at: FlowAt) -> dict[int, Effects]:
        """The effects of events that executors read and write in the store."""
        answers = answers_left(bay, lambda ticket: self._run(str(ticket), arrivals, keys_of))
        deliveries = pa.concat_tables([delivered(answer) for answer in answers] or [_NOTHING])
        problems = deliveries.filter(pc.equal(deliveries.column("place"), NO_PLACE))
        unfit = _unfit(problems, {arrival.order: arrival.key for arrival in arrivals})
        deliveries = deliveries.filter(pc.not_equal(deliveries.column("place"), NO_PLACE))
        # Of what fails behind a cut nobody knows yet.
        whose = {arrival.order for arrival in arrivals} if self.cuts else set[int]()
        failed = {*whose, *unfit, *deliveries.filter(pc.is_valid(deliveries.column("failure"))).column("n").to_pylist()}
        known = told([arrival for arrival in arrivals if arrival.order in failed])
        effects = self._made([known.get(arrival.order, arrival) for arrival in arrivals], deliveries, at)
        return effects | {order: (error(known[order], why),) for order, why in unfit.items()}

    def _run(
        self, told: str, arrivals: Sequence[Arrival], pack: Callable[[Sequence[Arrival]], pa.RecordBatch]
    ) -> pa.Table:
        """Run one job, each of whose tasks takes its part of the events."""
        size = max(-(-len(arrivals) // self._parts), _PART_MIN)
        parts = [pack(arrivals[start : start + size]) for start in range(0, len(arrivals), size)]
        return run_planned(self._spark, self.frame, told, parts)

    def _made(self, arrivals: Sequence[Arrival], deliveries: pa.Table, at: FlowAt) -> dict[int, Effects]:
        if self.cuts:
            return Journeys(self, at).effects(arrivals, deliveries)
        effects: dict[int, Effects] = dict.fromkeys([arrival.order for arrival in arrivals], ())
        numbers, places = (deliveries.column(name).to_numpy() for name in ("n", "place"))
        met = [deliveries.column("rows").to_numpy()] if "rows" in deliveries.column_names else []
        order = np.lexsort((*met, places, numbers))
        bodies = deliveries.column("body").take(order).to_pylist()
        failures = deliveries.column("failure")
        whys = failures.take(order).to_pylist() if failures.null_count < len(failures) else None
        by_order = {arrival.order: arrival for arrival in arrivals}
        heads, tails, new = self._heads, self._tails, tuple.__new__
        made: list[Any] = []
        failed, last = 0, -1
        bound = zip(numbers[order].tolist(), places[order].tolist(), bodies, strict=True)
        for row, (number, place, body) in enumerate(bound):
            if number != last:
                if made:
                    effects[last] = tuple(made)
                made, failed, last = [], 0, number
                own = by_order[number].body
            if whys is not None and whys[row] is not None:  # this arc alone delivers an error in its place
                made.insert(failed, error(by_order[number], whys[row], heads[place][0]))
                failed += 1
                continue
            made.append(new(Enqueue, (*heads[place], own if body is None else body, *tails[place])))
        if made:
            effects[last] = tuple(made)
        return effects


class Journeys:
    """Events on their paths through a plan that is cut at the spaces where paths join."""

    def __init__(self, first: Flow, at: FlowAt) -> None:
        self._first = first
        self._at = at
        self._made: dict[int, list[tuple[bool, _Way, Enqueue]]] = {}
        self._waiting: dict[str, list[tuple[Arrival, _Way, str]]] = {name: [] for name in first.cuts}

    def effects(self, arrivals: Sequence[Arrival], deliveries: pa.Table) -> dict[int, Effects]:
        self._note(self._first, deliveries, {arrival.order: (arrival, ((), ()), arrival.body) for arrival in arrivals})
        for space in self._first.cuts:
            some = self._waiting[space]
            if some:
                flow = self._at(space)
                events = [arrival._replace(order=number, body=body) for number, (arrival, _, body) in enumerate(some)]
                self._note(flow, flow.found(events), dict(enumerate(some)))
        made = {order: sorted(items, key=lambda item: item[:2]) for order, items in self._made.items()}
        return {arrival.order: tuple(item[2] for item in made.get(arrival.order, ())) for arrival in arrivals}

    def _note(self, flow: Flow, deliveries: pa.Table, roots: Mapping[int, tuple[Arrival, _Way, str]]) -> None:
        """Record deliveries with their paths so far; errors come first."""
        for row in deliveries.to_pylist():
            arrival, (way, rows), own = roots[row["n"]]
            end = flow.ends[row["place"]]
            met = (*rows, row.get("rows") or "")
            items = self._made.setdefault(arrival.order, [])
            if row["failure"] is not None:
                items.append((False, ((*way, *end.way), met), error(arrival, row["failure"], end.arc)))
                continue
            body = own if row["body"] is None else row["body"]
            if end.keeps:
                enqueue = Enqueue(end.arc, end.space, "json", None, NO_PROPERTIES, body, passed=end.passes)
                items.append((True, ((*way, *end.way), met), enqueue))
            if end.space in self._waiting:
                self._waiting[end.space].append((arrival, ((*way, *end.onward), met), body))


#: What orders deliveries of one event: its way over arcs, and the rows of tables that it has met.
_Way = tuple[tuple[int, ...], tuple[str, ...]]


def _unfit(problems: pa.Table, keys: Mapping[int, int]) -> dict[int, str]:
    """Why messages are no events, by number. Raises if executors found one changed since its claim."""
    told = dict(zip(problems.column("n").to_pylist(), problems.column("failure").to_pylist(), strict=True))
    for why in told.values():
        if why.startswith(UNREACHED):
            raise unreached(why.removeprefix(UNREACHED))
    if GONE in told.values():
        raise Stale  # someone has received or removed one since it was claimed
    damaged = [keys[number] for number, why in told.items() if why == DAMAGED]
    if damaged:
        raise Damaged(damaged)
    return {number: why.removeprefix(UNFIT) for number, why in told.items()}


def _delivered(
    network: ArcNetwork,
    spark: SparkSession,
    space: str,
    type: Type,
    tables: Mapping[str, DataFrame],
    url: str | None,
    parts: int,
) -> DataFrame:
    """The deliveries for the events of any step that runs the plan; with a URL, receipts for what was written there."""
    numbers, chosen = tasks(spark, parts), ["n", "place", "body", "failure", *(["rows"] if tables else [])]
    if url is None:  # what stays as it came is not sent back to the engine, which has it
        return network.deliveries(space, numbers.mapInArrow(given, EVENTS), tables, brief=True).select(chosen)
    events = numbers.mapInArrow(partial(read, url, type, space), READ)
    deliveries = network.deliveries(space, events, tables, problems=True).select(chosen)
    return deliveries.mapInArrow(partial(leave, url), PACKED)


def table_frame(spark: SparkSession, room_graph: RoomGraph, name: str) -> DataFrame:
    """A table's rows, by its type."""
    from postroom.flows.evaluation.dataflow import NUMBER
    from postroom.flows.language.sql import event_of

    table = room_graph.graph.tables[name]
    names = columns(table)
    bodies = [json.dumps(dict(zip(names, row, strict=True))) for row in room_graph.rows[name]]
    arrays = {"body": pa.array(bodies, pa.string()), NUMBER: pa.array(range(len(bodies)), pa.int64())}
    frame = spark.createDataFrame(pa.table(arrays))
    return frame.selectExpr(f"{event_of('body', table.type)} AS row", NUMBER).selectExpr("row.*", NUMBER)
