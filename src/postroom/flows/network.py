"""A graph as one function from frames to frames: events of a space in, what its arcs deliver out.

It is the same for a batch and for a stream. Arcs are fused: from a source to all its consumers an event is read once,
and a space in the middle is a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import count
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from postroom.flows.columns import Variables, body_of, data_type, event_of, made, matches
from postroom.flows.definitions import Arc, Join, Merge, Select, Transform
from postroom.flows.graph import Graph
from postroom.flows.index import Index
from postroom.flows.predicates import Predicate, predicates
from postroom.flows.types import Tuple

#: Columns of what comes out. ``failure`` tells why there is no event: then ``body`` is null.
DELIVERED = ("n", "place", "arc", "space", "body", "failure")
INDEXED_ARCS_MIN = 32  # fewer are columns
_NAMES = (pa.int32(), pa.string(), pa.string())
_OVERFLOW = "a number is too large for its type, or divided by zero"


@dataclass(frozen=True, slots=True)
class _Step:
    """One arc on one way from the source; its events are a column of their own."""

    number: int
    before: int  # the number of the step whose events it takes; -1 is the source
    arc: Arc


class Network:
    """The arcs of a graph. ``stored`` are the spaces that keep what arrives."""

    def __init__(self, graph: Graph, stored: frozenset[str]) -> None:
        self._graph = graph
        self._stored = stored
        self._outgoing = graph.outgoing()

    def ways(self, source: str) -> list[_Step]:
        """Every arc on every way from a source, each behind the one it follows."""
        return list(self._ways(source, -1, count()))

    def _ways(self, space: str, before: int, numbers: Iterator[int]) -> Iterator[_Step]:
        todo: list[tuple[str, int]] = [(space, before)]
        while todo:
            space, before = todo.pop()
            following = []
            for arc in self._outgoing.get(space, ()):
                step = _Step(next(numbers), before, arc)
                yield step
                following.append((arc.target, step.number))
            todo += reversed(following)

    def deliveries(self, source: str, events: DataFrame, tables: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """What the arcs deliver of events (``n``, a number that orders them, and ``body``), in ``place`` and ``n``."""
        steps = self.ways(source)
        type = self._graph.spaces[source].type
        frame = events.select("n", "body", event_of(sql.col("body"), type).alias(_column(-1)))
        indexed = self._indexed(source, steps)
        behind = [step for step in steps if step.number not in indexed]
        found = _Frames(self._graph, self._stored, tables or {}).delivered(frame.drop("body"), -1, source, behind)
        return found.union(_by_index(frame, steps, indexed)) if indexed else found

    def _indexed(self, source: str, steps: Sequence[_Step]) -> dict[int, list[Predicate]]:
        """The arcs that an index answers for: very many that select from the source for consumers of their own."""
        found = {}
        for step in steps:
            ends = step.arc.target in self._stored and not self._outgoing.get(step.arc.target)
            if step.before == -1 and ends and isinstance(step.arc.does, Select):
                asked = predicates(step.arc.does.pattern, self._graph.spaces[source].type)
                if asked is not None:
                    found[step.number] = asked
        return found if len(found) >= INDEXED_ARCS_MIN else {}


@dataclass(frozen=True)
class _Frames:
    graph: Graph
    stored: frozenset[str]
    tables: Mapping[str, DataFrame]

    def delivered(self, frame: DataFrame, root: int, space: str, steps: Sequence[_Step]) -> DataFrame:
        """The deliveries of all steps behind ``root``, whose events are a column of the frame.

        A step that joins a table has several events of one, so what lies behind it is a frame of its own.
        """
        spaces = {root: space}
        parts: list[Column] = []
        branches: list[DataFrame] = []
        level = [step for step in steps if step.before == root]
        while level:
            columns: dict[str, Column] = {}  # of one level at once: Spark works through the whole plan for each new one
            for step in level:
                if isinstance(step.arc.does, Transform) and step.arc.does.join is not None:
                    branches.append(self._joined(frame, step, step.arc.does, step.arc.does.join, spaces, steps))
                    continue
                columns |= self._passed(step, spaces[step.before])
                spaces[step.number] = step.arc.target
                parts += self._parts(step, failed=_failed(step.number) in columns)
            frame = frame.withColumns(columns)
            reached = {step.number for step in level} & spaces.keys()
            level = [step for step in steps if step.before in reached]
        first = frame.select("n", sql.explode(sql.filter(sql.array(*parts), _there)).alias("d")) if parts else None
        found = [first.select("n", "d.*")] if first is not None else []
        if not found and not branches:
            nothing = sql.lit(None).cast("string")
            empty = [nothing.alias(name) for name in DELIVERED[2:]]
            return frame.where(sql.lit(False)).select("n", sql.lit(0).alias("place"), *empty)
        return reduce(DataFrame.union, [*found, *branches])

    def _passed(self, step: _Step, source: str) -> dict[str, Column]:
        """The step's events as a column, null where none passes; and, where a number may overflow, whether one did."""
        does, event = step.arc.does, sql.col(_column(step.before))
        target = self.graph.spaces[step.arc.target].type
        if isinstance(does, Merge):
            return {_column(step.number): event.cast(data_type(target))}
        variables = Variables()
        matched = event.isNotNull() & matches(does.pattern, self.graph.spaces[source].type, event, variables)
        if isinstance(does, Select):
            return {_column(step.number): sql.when(matched, event.cast(data_type(target)))}
        result = made(does.result, target, variables)
        overflown = _overflown(variables)
        if overflown is None:
            return {_column(step.number): sql.when(matched, result)}
        failed = sql.coalesce(matched & overflown, sql.lit(False))
        return {_column(step.number): sql.when(matched & ~failed, result), _failed(step.number): failed}

    def _parts(self, step: _Step, *, failed: bool) -> Iterator[Column]:
        target = self.graph.spaces[step.arc.target]
        event = sql.col(_column(step.number))
        if step.arc.target in self.stored:
            yield sql.when(event.isNotNull(), _delivery(step, body=body_of(event, target.type)))
        if failed:
            why = sql.lit(f"arc {step.arc.name}: {_OVERFLOW}")
            yield sql.when(sql.col(_failed(step.number)), _delivery(step, failure=why))

    def _joined(
        self,
        frame: DataFrame,
        step: _Step,
        does: Transform,
        join: Join,
        spaces: Mapping[int, str],
        steps: Sequence[_Step],
    ) -> DataFrame:
        source, target = self.graph.spaces[spaces[step.before]], self.graph.spaces[step.arc.target]
        table = self.graph.tables[join.table]
        event = sql.col(_column(step.before))
        variables = Variables()
        matched = event.isNotNull() & matches(does.pattern, source.type, event, variables)
        rows = sql.broadcast(self.tables[join.table].select(sql.struct("*").alias("row")))
        assert isinstance(table.type, Tuple)
        fits = matches(join.pattern, table.type, sql.col("row"), variables)
        met = frame.where(matched).join(rows, fits)
        result, overflown = made(does.result, target.type, variables), _overflown(variables)
        failed = sql.lit(False) if overflown is None else sql.coalesce(overflown, sql.lit(False))
        passed = sql.when(~failed, result).alias(_column(step.number))
        met = met.select("n", passed, failed.alias(_failed(step.number)))
        behind = self.delivered(met, step.number, step.arc.target, steps)
        own = list(self._parts(step, failed=True))
        here = met.select("n", sql.explode(sql.filter(sql.array(*own), _there)).alias("d")).select("n", "d.*")
        return here.union(behind)


def _by_index(frame: DataFrame, steps: Sequence[_Step], indexed: Mapping[int, list[Predicate]]) -> DataFrame:
    """What the indexed arcs deliver: the body as it came, with each arc that passes it."""
    index = Index(list(indexed.values()))
    arcs = [steps[number] for number in indexed]
    event = sql.col(_column(-1))
    values = [reduce(Column.getField, path, event).alias(f"v{place}") for place, path in enumerate(index.paths)]
    names = [(step.number, step.arc.name, step.arc.target) for step in arcs]
    return frame.select("n", "body", *values).mapInArrow(
        partial(_matched, index, names), "n long, place int, arc string, space string, body string, failure string"
    )


def _matched(
    index: Index, names: Sequence[tuple[int, str, str]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    columns = [pa.array(each, type) for each, type in zip(zip(*names, strict=True), _NAMES, strict=True)]
    for batch in batches:
        values = {path: batch.column(place + 2) for place, path in enumerate(index.paths)}
        found = index.match(values, batch.num_rows)
        events, arcs = pa.array(found.events), pa.array(found.arcs)
        number, body = batch.column(0).take(events), batch.column(1).take(events)
        nothing = pa.nulls(len(events), pa.string())
        chosen = [each.take(arcs) for each in columns]
        yield pa.RecordBatch.from_arrays([number, *chosen, body, nothing], names=list(DELIVERED))


def _delivery(step: _Step, body: Column | None = None, failure: Column | None = None) -> Column:
    nothing = sql.lit(None).cast("string")
    return sql.struct(
        sql.lit(step.number).alias("place"),
        sql.lit(step.arc.name).alias("arc"),
        sql.lit(step.arc.target).alias("space"),
        (nothing if body is None else body).alias("body"),
        (nothing if failure is None else failure).alias("failure"),
    )


def _there(part: Column) -> Column:
    return part.isNotNull()


def _overflown(variables: Variables) -> Column | None:
    return reduce(or_, [risk.isNull() for risk in variables.risks]) if variables.risks else None


def _failed(number: int) -> str:
    return f"failed{number}"


def _column(number: int) -> str:
    return f"e{number}" if number >= 0 else "event"
