"""The flows' share of a step: claimed events go through all arcs after their space.

Many do so on Spark, by a plan that is made once per graph and session; few in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.isolation import isolated
from postroom.engine.spark.jobs import OnSpark
from postroom.engine.steps.effects import Arrival, Document, Effects, Enqueue, Granule
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Watched
from postroom.errors import BodyError, FlowInvalid
from postroom.flows.evaluation import plain
from postroom.flows.evaluation.events import arcs_behind, as_event, error, is_event
from postroom.flows.graph.versions import RoomGraph
from postroom.limits import WORKER_ARCS
from postroom.model.message import NO_PROPERTIES, Stored
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.way import Way
    from postroom.flows.evaluation.states import StepFolding


@dataclass(frozen=True)
class FlowShare:
    """The events of one epoch, and the graph for them. ``living`` are the places that they can reach."""

    agent = "arc"
    admission = Admission.FLOWS
    version: int
    room_graph: RoomGraph
    living: frozenset[str]
    windows: Mapping[str, tuple[int, int]]
    staying: frozenset[str] = frozenset()  # consumers' spaces of this graph that events leave in the newest one
    past: frozenset[str] = frozenset()  # clients' spaces of this graph that the newest one has no more
    bay: Bay | None = field(default=None, kw_only=True)  # of the step that is evaluated
    barred: Mapping[str, str] = field(default_factory=dict, kw_only=True)  # arcs that may not act, and why

    @cached_property
    def watched(self) -> Watched:
        once = self.room_graph.ordered
        spaces = dict.fromkeys(self.windows, 0)
        return Watched(spaces, windows=self.windows, staying=self.staying, past=self.past, once=once)

    def arrivals(self, tx: Transaction | None, claimed: Sequence[Stored]) -> list[Arrival]:
        """The messages themselves: an arc reads no other messages."""
        return [_arrival(index, stored) for index, stored in enumerate(claimed)]

    def weight(self, arrivals: Sequence[Arrival]) -> int:
        """The cost in messages: a worker tests arcs and table rows one by one, so very many are for Spark."""
        heavy = {
            space: 1 + self._plain(space, {}).cost // WORKER_ARCS for space in {arrival.queue for arrival in arrivals}
        }
        return sum([heavy[arrival.queue] for arrival in arrivals])

    def evaluate(
        self,
        way: Way,
        arrivals: Sequence[Arrival],
        base: Mapping[Granule, Sequence[Document]],
        known: Timeline,
        bay: Bay | None = None,
    ) -> Iterator[Mapping[int, Effects]]:
        return isolated(way, arrivals, partial(replace(self, bay=bay)._evaluated, way))

    def _evaluated(self, way: Way, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        guilty = [arrival for arrival in arrivals if arrival.failure is not None]
        for arrival in guilty:  # it ended a job, alone and twice
            yield self._apart(way, arrival._replace(failure=None), str(arrival.failure))
        events = [arrival for arrival in arrivals if arrival.failure is None]
        events = events if self.bay is not None else [self.entered(event) for event in events]
        failed = self._told([event for event in events if event.failure is not None])
        yield {order: (error(event, str(event.failure)),) for order, event in failed.items()}
        by_space: dict[str, list[Arrival]] = {}
        for event in events:
            if event.failure is None:
                by_space.setdefault(event.queue, []).append(event)
        for space, some in by_space.items():
            made = self._effects(way, space, some)
            yield {order: _told_once(effects) for order, effects in made.items()} if self.barred else made

    def _effects(
        self, way: Way, space: str, events: Sequence[Arrival], aside: Mapping[str, str] | None = None
    ) -> Mapping[int, Effects]:
        aside = {**self.barred, **(aside or {})}
        if not isinstance(way, OnSpark):
            task = self._plain(space, aside)
            (answer,) = way.answers(task, [plain.packed(events)])
            deliveries = plain.unpacked(answer)
            return {event.order: self._made(task, event, deliveries[event.order]) for event in events}
        from postroom.flows.evaluation.plans import flow_of  # pyarrow takes its time: only when it is needed

        at = partial(flow_of, way.session, self.room_graph, self.living, aside=aside)
        if self.bay is None:
            return at(space).effects(events, at)
        return at(space, self.bay.answer_store.url).effects_there(events, self.bay, self._told, at)

    def _plain(self, space: str, aside: Mapping[str, str]) -> plain.FlowTask:
        """The task for events of a space, made once for a graph."""
        room_graph = self.room_graph
        key = ("plain", self.living, space, tuple(aside.items()))
        task: plain.FlowTask | None = room_graph.memory.get(key)
        if task is None:
            kept = room_graph.keeping & self.living
            task = room_graph.memory[key] = plain.task(room_graph.running, kept, room_graph.rows, space, aside)
        return task

    def _made(self, task: plain.FlowTask, arrival: Arrival, deliveries: Sequence[plain.Delivery]) -> Effects:
        """The effects of an event: errors first, each instead of what its arc would have delivered."""
        errors, made = list[Enqueue](), list[Enqueue]()
        for place, body, failure in deliveries:
            arc = task.steps[place].arc
            if failure is not None:
                errors.append(error(arrival, failure, arc.name))
                continue
            passed, text = arc.target in self.room_graph.passing, arrival.body if body is None else body
            made.append(Enqueue(arc.name, arc.target, "json", None, NO_PROPERTIES, text, passed=passed))
        return (*errors, *made)

    def _apart(self, way: Way, arrival: Arrival, why: str) -> Mapping[int, Effects]:
        """The effects of an event that kills its job: without the guilty arcs, which report why."""
        event = arrival if self.bay is not None else self.entered(arrival)
        arcs = arcs_behind(self.room_graph, self.living, arrival.queue)

        def end(some: Collection[str]) -> bool:
            """Whether a job with only these arcs dies."""
            try:
                self._effects(way, arrival.queue, [event], {name: why for name in arcs if name not in some})
            except Exception as failure:
                way.reason(failure)
                return True
            return False

        aside = dict.fromkeys(_guilty(end, [], arcs), why) if event.failure is None else {}
        if event.failure is None and not (aside and end([])):
            try:
                (made,) = self._effects(way, arrival.queue, [event], aside).values()
                return {arrival.order: _told_once(made)}
            except Exception as failure:  # arcs that are near the limit of time pass it at one time and not at another
                way.reason(failure)
        (told,) = self._told([event._replace(failure=event.failure or why)]).values()
        return {arrival.order: (error(told, event.failure or why),)}

    def _told(self, arrivals: Sequence[Arrival]) -> Mapping[int, Arrival]:
        if self.bay is None:
            return {arrival.order: arrival for arrival in arrivals}
        messages = self.bay.fetched([arrival.key for arrival in arrivals])
        return {arrival.order: self.entered(arrival._replace(body=messages[arrival.key].body)) for arrival in arrivals}

    def entered(self, arrival: Arrival) -> Arrival:
        """A message as an event of its space, or as one that cannot become one."""
        if arrival.failure is not None or is_event(arrival):
            return arrival
        try:
            body = as_event(arrival, self.room_graph.running.spaces[arrival.queue].type, arrival.queue)
        except (BodyError, FlowInvalid) as error:
            return arrival.failing(str(error))
        return arrival._replace(body=body, format="json")

    def folding(self, tx: Transaction, queues: Collection[str]) -> StepFolding | None:
        """The arcs with state, which process events one by one during the commit."""
        if not self.room_graph.ordered.intersection(queues):
            return None
        from postroom.flows.evaluation.states import StepFolding

        return StepFolding(self.room_graph, self.living, sorted(queues), tx.arc_states, self.entered, self.barred)

    def barring(self, barred: Mapping[str, str]) -> FlowShare:
        return replace(self, barred=barred)

    def keep_warm(self, spark: SparkSession) -> None:
        from postroom.flows.evaluation.plans import flow_of

        for space in self.windows:
            flow_of(spark, self.room_graph, self.living, space).found([])
            return


def _told_once(made: Effects) -> Effects:
    """Keep one error for each arc, though many events may reach it on several paths."""
    errors = dict.fromkeys(effect for effect in made if isinstance(effect, Enqueue) and effect.failed)
    return (*errors, *[effect for effect in made if effect not in errors])


def _guilty(end: Callable[[Collection[str]], bool], good: list[str], arcs: Sequence[str]) -> list[str]:
    """Find the arcs that kill a job, with few jobs; the others are added to ``good``."""
    if not arcs or not end([*good, *arcs]):
        good += arcs
        return []
    if len(arcs) == 1:
        return list(arcs)
    half = len(arcs) // 2
    return _guilty(end, good, arcs[:half]) + _guilty(end, good, arcs[half:])


def _arrival(index: int, stored: Stored) -> Arrival:
    about = (stored.properties, stored.created, stored.cause)
    return Arrival(index, stored.queue, stored.key, stored.format, None, stored.body, *about)


def spark_plan(spark: SparkSession, room_graph: RoomGraph, space: str) -> str:
    """Spark's plan of the arcs after a space."""
    from postroom.engine.spark.internals import plan_of
    from postroom.flows.evaluation.plans import flow_of

    return plan_of(flow_of(spark, room_graph, room_graph.places, space).frame)
