"""A graph by its meaning, one event at a time: where each goes, and what it has become there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postroom.engine.steps.effects import Arrival, Effects, Enqueue
from postroom.flows.evaluation.events import error
from postroom.flows.evaluation.paths import NO_VALUE, ArcPaths
from postroom.flows.evaluation.share import FlowShare
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.arithmetic import NoValue, widened
from postroom.flows.language.definitions import Arc, Merge, Select, Transform
from postroom.flows.language.meaning import make, matched
from postroom.flows.language.types import Tuple
from postroom.flows.language.values import canonical, fitted, label, parse_event
from postroom.model.message import NO_PROPERTIES


@dataclass(frozen=True)
class PlainShare(FlowShare):
    """The flows' share of a step, worked out in this process by the plain meaning of arcs."""

    def evaluate(
        self, way: Any, arrivals: Sequence[Arrival], base: Any, known: Any, bay: Any = None
    ) -> Iterator[Mapping[int, Effects]]:
        yield {each.order: self._flown(self.entered(each)) for each in arrivals}

    def _flown(self, arrival: Arrival) -> Effects:
        if arrival.failure is not None:
            return (error(arrival, arrival.failure),)
        event = parse_event(arrival.body, self.room_graph.running.spaces[arrival.queue].type, arrival.queue)
        flown = list(self._flow(arrival, event))
        return (*(each for each in flown if each.failed), *(each for each in flown if not each.failed))

    def _flow(self, arrival: Arrival, event: Any) -> Iterator[Enqueue]:
        """What each arc on each way delivers, in the order of the arcs: first those of the space itself."""
        graph, kept = self.room_graph.running, self.room_graph.keeping & self.living
        reached: dict[int, list[Any]] = {-1: [event]}
        for step in ArcPaths(graph, self.living).ways(arrival.queue):
            arc, target = step.arc, graph.spaces[step.arc.target]
            reached[step.number] = []
            for after in (each for before in reached[step.before] for each in passed(self.room_graph, arc, before)):
                if after is NoValue:
                    yield error(arrival, f"arc {arc.name}: {NO_VALUE}", arc.name)
                    continue
                reached[step.number].append(after)
                if arc.target in kept:
                    body = canonical(after, target.type)
                    goes_on = arc.target in self.room_graph.passing
                    yield Enqueue(arc.name, arc.target, "json", None, NO_PROPERTIES, body, passed=goes_on)


def passed(room_graph: RoomGraph, arc: Arc, event: Any) -> Iterator[Any]:
    """What an arc makes of an event: nothing, one, or with a join one for each row; ``NoValue`` where it cannot."""
    graph = room_graph.running
    source, target = graph.spaces[arc.source].type, graph.spaces[arc.target].type
    if isinstance(arc.does, Merge):
        yield widened(event, source, target)
        return
    rows: list[Any] = [[]]
    if isinstance(arc.does, Transform) and arc.does.join is not None:
        table = graph.tables[arc.does.join.table]
        assert isinstance(table.type, Tuple)
        names = [label(table.type, place) for place in range(len(table.type.fields))]
        said = [dict(zip(names, row, strict=True)) for row in room_graph.rows[table.name]]
        rows = [[(arc.does.join.pattern, table.type, fitted(row, table.type, table.name))] for row in said]
    for row in rows:
        try:
            bound = matched([(arc.does.pattern, source, event), *row])
            if bound is not None:
                yield (
                    widened(event, source, target)
                    if isinstance(arc.does, Select)
                    else make(arc.does.result, target, bound)
                )
        except NoValue:
            yield NoValue
