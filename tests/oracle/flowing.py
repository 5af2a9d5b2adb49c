"""A graph by its meaning, one event at a time: where each goes, and what it has become there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postroom.engine.effects import Arrival, Effects, Enqueue
from postroom.flows.chart import Chart
from postroom.flows.definitions import Arc, Merge, Select
from postroom.flows.network import Network
from postroom.flows.plans import error
from postroom.flows.share import FlowShare
from postroom.flows.types import Tuple
from postroom.flows.values import canonical, fitted, label, parse_event
from postroom.model.message import NO_PROPERTIES

from .matching import make, match


@dataclass(frozen=True)
class PlainShare(FlowShare):
    """The flows' share of a step, worked out in this process by the plain meaning of arcs."""

    def evaluate(
        self, spark: Any, arrivals: Sequence[Arrival], base: Any, known: Any
    ) -> Iterator[Mapping[int, Effects]]:
        yield {each.order: self._flown(self.entered(each)) for each in arrivals}

    def _flown(self, arrival: Arrival) -> Effects:
        if arrival.failure is not None:
            return (error(arrival, arrival.failure),)
        event = parse_event(arrival.body, self.chart.running.spaces[arrival.queue].type, arrival.queue)
        return tuple(self._flow(arrival.queue, event))

    def _flow(self, space: str, event: Any) -> Iterator[Enqueue]:
        """What each arc on each way delivers, in the order of the arcs: first those of the space itself."""
        graph, kept = self.chart.running, self.chart.keeping & self.living
        reached = {-1: [event]}
        for step in Network(graph, self.living).ways(space):
            arc, target = step.arc, graph.spaces[step.arc.target]
            arriving = [passed(self.chart, arc, before) for before in reached[step.before]]
            reached[step.number] = [after for some in arriving for after in some]
            for after in reached[step.number] if arc.target in kept else ():
                body = canonical(after, target.type)
                goes_on = arc.target in self.chart.flowing
                yield Enqueue(arc.name, arc.target, "json", None, NO_PROPERTIES, body, passed=goes_on)


def passed(chart: Chart, arc: Arc, event: Any) -> Iterator[Any]:
    """What an arc makes of an event: nothing, one, or with a join one for each row."""
    graph = chart.running
    source, target = graph.spaces[arc.source].type, graph.spaces[arc.target].type
    if isinstance(arc.does, Merge):
        yield event
        return
    bound = match(arc.does.pattern, source, event)
    if bound is None:
        return
    if isinstance(arc.does, Select):
        yield event
    elif arc.does.join is None:
        yield make(arc.does.result, target, bound)
    else:
        table = graph.tables[arc.does.join.table]
        assert isinstance(table.type, Tuple)
        names = [label(table.type, place) for place in range(len(table.type.fields))]
        for row in chart.rows[table.name]:
            value = fitted(dict(zip(names, row, strict=True)), table.type, table.name)
            met = match(arc.does.join.pattern, table.type, value, bound)
            if met is not None:
                yield make(arc.does.result, target, met)
