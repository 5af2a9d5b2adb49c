"""The flows' share of a step: claimed events go on Spark through the plan of all that lies behind their space.

It is made once for a graph and a session, and run for every step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from postroom.engine.spark.executor_store import Bay
from postroom.engine.spark.isolation import isolated, reason
from postroom.engine.steps.effects import Arrival, Document, Effects, Enqueue, Granule
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Watched
from postroom.errors import BodyError, FlowInvalid
from postroom.flows.evaluation.plans import arcs_behind, error, flow_of
from postroom.flows.evaluation.worker import as_event, is_event
from postroom.flows.graph.versions import RoomGraph
from postroom.model.message import Stored
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class FlowShare:
    """The events of an epoch, and the graph that they meet. ``living`` are the places that are still there."""

    agent = "arc"
    admission = Admission.FLOWS
    version: int
    room_graph: RoomGraph
    living: frozenset[str]
    windows: Mapping[str, tuple[int, int]]
    staying: frozenset[str] = frozenset()  # consumers' spaces of this graph that events leave in the newest one
    bay: Bay | None = field(default=None, kw_only=True)  # of the step that is evaluated

    @cached_property
    def watched(self) -> Watched:
        return Watched(dict.fromkeys(self.windows, 0), windows=self.windows, staying=self.staying)

    def arrivals(self, tx: Transaction | None, claimed: Sequence[Stored]) -> list[Arrival]:
        """The messages themselves: an arc looks at no other."""
        return [_arrival(index, stored) for index, stored in enumerate(claimed)]

    def evaluate(
        self,
        spark: SparkSession,
        arrivals: Sequence[Arrival],
        base: Mapping[Granule, Sequence[Document]],
        known: Timeline,
        bay: Bay | None = None,
    ) -> Iterator[Mapping[int, Effects]]:
        return isolated(spark, arrivals, partial(replace(self, bay=bay)._evaluated, spark))

    def _evaluated(self, spark: SparkSession, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        guilty = [each for each in arrivals if each.failure is not None]
        for each in guilty:  # it ended a job, alone and twice
            yield self._apart(spark, each._replace(failure=None), str(each.failure))
        events = [each for each in arrivals if each.failure is None]
        events = events if self.bay is not None else [self.entered(each) for each in events]
        failed = self._told([each for each in events if each.failure is not None])
        yield {order: (error(each, str(each.failure)),) for order, each in failed.items()}
        by_space: dict[str, list[Arrival]] = {}
        for each in events:
            if each.failure is None:
                by_space.setdefault(each.queue, []).append(each)
        for space, some in by_space.items():
            yield self._effects(spark, space, some)

    def _effects(
        self, spark: SparkSession, space: str, events: Sequence[Arrival], aside: Mapping[str, str] | None = None
    ) -> Mapping[int, Effects]:
        at = partial(flow_of, spark, self.room_graph, self.living, aside=aside)
        if self.bay is None:
            return at(space).effects(events, at)
        return at(space, self.bay.depot.url).effects_there(events, self.bay, self._told, at)

    def _apart(self, spark: SparkSession, arrival: Arrival, why: str) -> Mapping[int, Effects]:
        """What an event that ends its job leads to without the arcs that are guilty of it, which tell why."""
        event = arrival if self.bay is not None else self.entered(arrival)
        arcs = arcs_behind(self.room_graph, self.living, arrival.queue)

        def end(some: Collection[str]) -> bool:
            """Whether a job ends that has these arcs only."""
            try:
                self._effects(spark, arrival.queue, [event], {name: why for name in arcs if name not in some})
            except Exception as failure:
                reason(spark, failure)
                return True
            return False

        aside = dict.fromkeys(_guilty(end, [], arcs), why) if event.failure is None else {}
        if event.failure is not None or (aside and end([])):
            (told,) = self._told([event._replace(failure=event.failure or why)]).values()
            return {arrival.order: (error(told, event.failure or why),)}
        (made,) = self._effects(spark, arrival.queue, [event], aside).values()
        # To an arc that is put aside many may come of one event; why nothing came of them is told once.
        errors = dict.fromkeys(each for each in made if isinstance(each, Enqueue) and each.failed)
        return {arrival.order: (*errors, *[each for each in made if each not in errors])}

    def _told(self, arrivals: Sequence[Arrival]) -> Mapping[int, Arrival]:
        if self.bay is None:
            return {each.order: each for each in arrivals}
        found = self.bay.fetched([each.key for each in arrivals])
        return {each.order: self.entered(each._replace(body=found[each.key].body)) for each in arrivals}

    def entered(self, arrival: Arrival) -> Arrival:
        """A message as an event of its space, or as one that cannot be one."""
        if arrival.failure is not None or is_event(arrival):
            return arrival
        try:
            body = as_event(arrival, self.room_graph.running.spaces[arrival.queue].type, arrival.queue)
        except (BodyError, FlowInvalid) as error:
            return arrival.failing(str(error))
        return arrival._replace(body=body, format="json")

    def keep_warm(self, spark: SparkSession) -> None:
        for space in self.windows:
            flow_of(spark, self.room_graph, self.living, space).found([])
            return


def _guilty(end: Callable[[Collection[str]], bool], good: list[str], arcs: Sequence[str]) -> list[str]:
    """The arcs that end a job beside good ones, each found with few jobs; the others become good."""
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
    """What Spark makes of the arcs behind a space."""
    from postroom.engine.spark.internals import plan_of

    return plan_of(flow_of(spark, room_graph, room_graph.places, space).frame)
