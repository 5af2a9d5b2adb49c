"""Arcs as plain Python, in a worker: for few events, without a Spark plan.

Values, order and failures equal those of Spark; tests compare both on generated graphs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.flows.evaluation.paths import NO_VALUE, ArcPaths, PathStep
from postroom.flows.graph.graph import Graph
from postroom.flows.language.arithmetic import NoValue, widened
from postroom.flows.language.definitions import Arc, Merge, Select, Transform
from postroom.flows.language.meaning import make, matched
from postroom.flows.language.tables import Rows, columns
from postroom.flows.language.values import canonical, fitted, parse_event
from postroom.model.body import json_text

if TYPE_CHECKING:
    from postroom.engine.spark.worker import Bounds
    from postroom.engine.steps.effects import Arrival
    from postroom.model.message import Stored


class Delivery(NamedTuple):
    """What one arc delivers of one event."""

    place: int  # the number of its step on the ways from the space
    body: str | None = None  # None if it is what came in, as it came
    failure: str | None = None  # why it delivers nothing


Deliveries = Mapping[int, Sequence[Delivery]]  # by the numbers of events


@dataclass(frozen=True)
class FlowTask:
    """Sends the events of one space through the arcs after it; those in ``aside`` only deliver the reason."""

    graph: Graph
    kept: frozenset[str]  # places that keep what arrives
    rows: Mapping[str, Rows]  # of tables
    space: str
    aside: Mapping[str, str]

    @property
    def origin(self) -> object:
        return self

    def begin(self) -> None:
        """Does nothing: there is nothing to load."""

    def read(self, chunk: bytes) -> list[tuple[int, str]]:
        return [(number, body) for number, body in json.loads(chunk)]

    def keys(self, work: list[tuple[int, str]]) -> tuple[list[int], list[int]]:
        raise NotImplementedError("workers of the engine read nothing in the store")

    def complete(self, work: list[tuple[int, str]], messages: Mapping[int, Stored]) -> list[tuple[int, str]]:
        raise NotImplementedError("workers of the engine read nothing in the store")

    def answer(self, work: list[tuple[int, str]], bounds: Bounds | None, size: int) -> bytes:
        with nullcontext() if bounds is None else bounds.deadline(size):
            return json_text([(number, list(self.deliveries(body))) for number, body in work]).encode()

    @cached_property
    def cost(self) -> int:
        """How often one event may meet an arc or a table row. Rows that a join makes meet all later arcs again."""
        met = {-1: 1}
        for step in self.steps:
            table = step.arc.table
            met[step.number] = met[step.before] * (1 if table is None else max(1, len(self.rows[table])))
        return sum(met.values())

    @cached_property
    def steps(self) -> list[PathStep]:
        return ArcPaths(self.graph, self.kept, self.aside).ways(self.space)

    @cached_property
    def _unchanged(self) -> set[int]:
        return ArcPaths(self.graph, self.kept, self.aside).unchanged(self.space)

    @cached_property
    def _tables(self) -> dict[str, list[Any]]:
        """The rows of each table, as values of its type."""
        return {name: list(_read(self.graph, name, rows)) for name, rows in self.rows.items()}

    def deliveries(self, body: str) -> Iterator[Delivery]:
        """The deliveries of an event on every path, in the order of the arcs: those of the space itself first."""
        event = parse_event(body, self.graph.spaces[self.space].type, self.space)
        reached: dict[int, list[Any]] = {-1: [event]}
        for step in self.steps:
            arc, target = step.arc, self.graph.spaces[step.arc.target].type
            after = reached[step.number] = []
            for passed in (passed for before in reached[step.before] for passed in self._passed(arc, before)):
                if passed is NoValue:
                    why = self.aside.get(arc.full_name, NO_VALUE)
                    yield Delivery(step.number, failure=f"arc {arc.name}: {why}")
                    continue
                after.append(passed)
                if arc.target in self.kept:
                    yield Delivery(step.number, None if step.number in self._unchanged else canonical(passed, target))

    def _passed(self, arc: Arc, event: Any) -> Iterator[Any]:
        """What an arc makes of an event: nothing, one event, or with a join one for each row; ``NoValue`` if it
        fails."""
        if arc.full_name in self.aside:
            yield NoValue
            return
        source, target = (self.graph.spaces[name].type for name in (arc.source, arc.target))
        if isinstance(arc.does, Merge):
            yield widened(event, source, target)
            return
        rows: list[Any] = [()]
        if isinstance(arc.does, Transform) and arc.does.join is not None:
            join, type = arc.does.join, self.graph.tables[arc.does.join.table].type
            rows = [((join.pattern, type, row),) for row in self._tables[join.table]]
        for row in rows:
            try:
                bound = matched([(arc.does.pattern, source, event), *row])
                if bound is None:
                    continue
                if isinstance(arc.does, Select):
                    yield widened(event, source, target)
                else:
                    yield make(arc.does.result, target, bound)
            except NoValue:
                yield NoValue


def _read(graph: Graph, table: str, rows: Rows) -> Iterator[Any]:
    names, type = columns(graph.tables[table]), graph.tables[table].type
    return (fitted(dict(zip(names, row, strict=True)), type, table) for row in rows)


# --- in the engine -----------------------------------------------------------------------------------------------


def task(
    graph: Graph, kept: frozenset[str], rows: Mapping[str, Rows], space: str, aside: Mapping[str, str]
) -> FlowTask:
    """The task for events of a space, with only the part of the graph that they can reach."""
    steps = ArcPaths(graph, kept, aside).ways(space)
    arcs = {id(step.arc): step.arc for step in steps}
    names = {space, *(arc.target for arc in arcs.values())}
    tables = {arc.table for arc in arcs.values() if arc.table is not None}
    behind = Graph(
        spaces={name: graph.spaces[name] for name in names},
        tables={name: graph.tables[name] for name in tables},
        arcs={str(number): (arc, arc) for number, arc in enumerate(arcs.values())},
    )
    return FlowTask(behind, kept & names, {name: rows[name] for name in tables}, space, aside)


def packed(arrivals: Sequence[Arrival]) -> bytes:
    """Events serialised for a worker."""
    return json_text([(arrival.order, arrival.body) for arrival in arrivals]).encode()


def unpacked(answer: bytes) -> Deliveries:
    return {number: [Delivery(*row) for row in some] for number, some in json.loads(answer)}
