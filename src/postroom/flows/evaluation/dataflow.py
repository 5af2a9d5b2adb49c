"""A graph as one function from frames to frames: events of a space in, deliveries of its arcs out, for batches and
streams alike.

Arcs are fused: an event is read once for all consumers, and a space in between is a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr, udf

from postroom.flows.evaluation.index import Index
from postroom.flows.evaluation.paths import NO_VALUE, ArcPaths, PathStep
from postroom.flows.evaluation.worker import NO_PLACE
from postroom.flows.graph.graph import Graph
from postroom.flows.language.definitions import Join, Merge, Select, Transform
from postroom.flows.language.predicates import Predicate
from postroom.flows.language.sql import (
    Sql,
    Variables,
    body_of,
    data_type,
    event_of,
    made,
    matches,
    quoted,
    text,
    widened,
)
from postroom.limits import EVALUATION_SECONDS

#: Columns of what comes out, in the order of ``n``, ``place`` and ``rows``: the rows of tables that an event has met.
#: ``failure`` tells why there is no event: then ``body`` is null.
DELIVERED = ("n", "place", "arc", "space", "body", "failure", "rows")
#: A column that a table may have besides its fields: its rows are met in this order.
NUMBER = "_number"
#: The place of an event in the space that it came into.
ROOT = -2
_DELIVERY = "struct<place: int, arc: string, space: string, body: string, failure: string, rows: string>"
_NAMES = (pa.int32(), pa.string(), pa.string())
_NULL = "NULL"
#: Until when an event may meet rows of tables. Spark stops no task that only reckons, so its rows look at the clock:
#: one in twenty, because a look takes as long as ten rows.
_UNTIL = "until"
_CLOCK = "CAST(java_method('java.lang.System', 'currentTimeMillis') AS BIGINT)"
_OVER = "CAST(raise_error('the time limit of an event is over') AS BOOLEAN)"
_IN_TIME = f"rand() > 0.05 OR IF({_CLOCK} > {_UNTIL}, {_OVER}, true)"


class ArcNetwork(ArcPaths):
    """The arcs of a graph, as Spark plans them."""

    def deliveries(
        self,
        source: str,
        events: DataFrame,
        tables: Mapping[str, DataFrame] | None = None,
        *,
        brief: bool = False,
        problems: bool = False,
        event: Sql | None = None,
        root: bool = False,
    ) -> DataFrame:
        """What the arcs deliver of events (``n``, a number or text that orders them, and ``body``).

        In ``brief``, unchanged bodies are left out. With ``problems``, a third column says why a message is no event;
        it is delivered as a failure, of no arc. ``event`` is the parsed event, if the frame has it. With ``root``,
        every event is delivered to its own space, too.
        """
        steps = self.ways(source)
        type = self._graph.spaces[source].type
        limit = [f"{_CLOCK} + {EVALUATION_SECONDS * 1000:.0f} AS {_UNTIL}"] if tables else []
        read = event or event_of("body", type)
        frame = events.selectExpr("*", f"{read} AS {_column(-1)}", "'' AS rows", *limit)
        indexed = self.indexed(source, steps)
        behind = [step for step in steps if step.number not in indexed]
        body = "NULL" if brief else "body"
        same = dict.fromkeys(self.unchanged(source), body)
        first = [_PROBLEM] if problems else []
        if root:
            first.append(
                f"IF({_column(-1)} IS NOT NULL, {_named(str(ROOT), _NULL, text(source), 'body', _NULL)}, NULL)"
            )
        frames = _Frames(self._graph, self._stored, self._aside, tables or {}, same)
        delivered = frames.delivered(frame, -1, source, behind, first)
        if indexed:
            matched = _by_index(frame.where(f"{_column(-1)} IS NOT NULL") if problems else frame, steps, indexed, brief)
            delivered = delivered.union(matched) if behind or first else matched
        return delivered


@dataclass(frozen=True)
class _Frames:
    graph: Graph
    stored: frozenset[str]
    aside: Mapping[str, str]
    tables: Mapping[str, DataFrame]
    same: Mapping[int, Sql]  # the body of what a step delivers as it came

    def delivered(
        self, frame: DataFrame, root: int, space: str, steps: Sequence[PathStep], first: Sequence[Sql] = ()
    ) -> DataFrame:
        """The deliveries of all steps after ``root``, whose events are a column of the frame.

        A step that joins a table has several events of one, so the steps after it need a frame of their own.
        """
        parts: list[Sql] = [*first]
        branches: list[DataFrame] = []
        level = [step for step in steps if step.before == root]
        while level:
            columns: dict[str, Sql] = {}  # of one level at once: Spark works through the whole plan for each new one
            reached: set[int] = set()
            for step in level:
                if self._join(step) is not None:
                    branches.append(self._joined(frame, step, steps))
                    continue
                columns |= self._passed(frame, step)
                reached.add(step.number)
                parts += self._parts(step, failed=_failed(step.number) in columns)
            frame = frame.selectExpr("*", *[f"{value} AS {name}" for name, value in columns.items()])
            level = [step for step in steps if step.before in reached]
        frames = [_exploded(frame, parts), *branches] if parts or not branches else branches
        return reduce(DataFrame.union, frames)

    def _join(self, step: PathStep) -> Join | None:
        does = step.arc.does
        return does.join if isinstance(does, Transform) and step.arc.full_name not in self.aside else None

    def _passed(self, frame: DataFrame, step: PathStep) -> dict[str, Sql]:
        """The events that a step passes, as a column with nulls for the rest; and, if values may be missing, whether
        one is."""
        does, event = step.arc.does, _column(step.before)
        source, target = (self.graph.spaces[name].type for name in (step.arc.source, step.arc.target))
        if step.arc.full_name in self.aside:
            nothing = f"CAST(NULL AS {data_type(target)})"
            return {_column(step.number): nothing, _failed(step.number): f"{event} IS NOT NULL"}
        if isinstance(does, Merge):
            return {_column(step.number): widened(event, source, target)}
        variables = Variables()
        matched = f"{event} IS NOT NULL AND {matches(does.pattern, source, event, variables)}"
        # A condition that has no value makes the whole of it null: all values that are compared are there.
        undecided = f"({event} IS NOT NULL AND ({matched}) IS NULL)" if variables.risks else ""
        variables.risks.clear()
        if isinstance(does, Select):
            result = widened(event, source, target)
        else:
            result = made(does.result, target, variables)
        register(frame.sparkSession, variables)
        overflown = _overflown(variables)
        if not overflown:
            columns = {_column(step.number): f"IF({matched}, {result}, NULL)"}
            return columns | ({_failed(step.number): undecided} if undecided else {})
        failed = f"coalesce({matched} AND ({overflown}), false)"
        return {
            _column(step.number): f"IF({matched} AND NOT ({overflown}), {result}, NULL)",
            _failed(step.number): f"{failed} OR {undecided}" if undecided else failed,
        }

    def _parts(self, step: PathStep, *, failed: bool) -> Iterator[Sql]:
        event = _column(step.number)
        if step.arc.target in self.stored:
            body = self.same.get(step.number) or body_of(event, self.graph.spaces[step.arc.target].type)
            yield f"IF({event} IS NOT NULL, {_delivery(step, body=body)}, NULL)"
        if failed:
            why = text(f"arc {step.arc.name}: {self.aside.get(step.arc.full_name, NO_VALUE)}")
            yield f"IF({_failed(step.number)}, {_delivery(step, failure=why)}, NULL)"

    def _joined(self, frame: DataFrame, step: PathStep, steps: Sequence[PathStep]) -> DataFrame:
        """The events that a step makes of events and table rows.

        If the condition has no value for a row, that is a failure.
        """
        does, join = step.arc.does, self._join(step)
        assert isinstance(does, Transform)
        assert join is not None
        source, target = (self.graph.spaces[name].type for name in (step.arc.source, step.arc.target))
        variables, event, table = Variables(), _column(step.before), self.tables[join.table]
        matched = f"{event} IS NOT NULL AND {matches(does.pattern, source, event, variables)}"
        fits = matches(join.pattern, self.graph.tables[join.table].type, "row", variables)
        open_ = bool(variables.risks)
        variables.risks.clear()
        result = made(does.result, target, variables)
        register(frame.sparkSession, variables)
        fields = [quoted(name) for name in table.columns if name != NUMBER]
        number = NUMBER if NUMBER in table.columns else "0"
        rows = broadcast(table.selectExpr(f"struct({', '.join(fields)}) AS row", f"{number} AS number"))
        both = f"{matched} AND {fits}"
        met = frame.join(rows, expr(f"coalesce({both}, {event} IS NOT NULL)" if open_ else both)).where(_IN_TIME)
        overflown = _overflown(variables)
        fails = open_ or bool(overflown)
        failed = f"({both}) IS NULL OR ({overflown or 'false'})" if open_ else overflown or "false"
        passed = f"IF({failed}, NULL, {result}) AS {_column(step.number)}"
        number = "concat(rows, lpad(CAST(number AS STRING), 20, '0')) AS rows"
        met = met.selectExpr("n", passed, f"coalesce({failed}, false) AS {_failed(step.number)}", number, _UNTIL)
        parts = list(self._parts(step, failed=fails))
        return self.delivered(met, step.number, step.arc.target, steps, parts)


def register(spark: SparkSession, variables: Variables) -> None:
    """Register with Spark the functions that its workers compute."""
    for name, work in variables.works.items():
        spark.udf.register(name, udf(work, "string", useArrow=False))


def _exploded(frame: DataFrame, parts: Sequence[Sql]) -> DataFrame:
    """Each part that is there, as a row. All become rows first: Spark does not compile a filter of an array."""
    deliveries = f"CAST(array({', '.join(parts)}) AS array<{_DELIVERY}>)"
    return frame.selectExpr("n", f"inline({deliveries})").where("place IS NOT NULL")


def _delivery(step: PathStep, body: Sql = _NULL, failure: Sql = _NULL) -> Sql:
    return _named(str(step.number), text(step.arc.name), text(step.arc.target), body, failure)


def _named(place: Sql, arc: Sql, space: Sql, body: Sql, failure: Sql) -> Sql:
    fields = {"place": place, "arc": arc, "space": space, "body": body, "failure": failure, "rows": "rows"}
    values = [
        f"'{name}', CAST({value} AS STRING)" if value == _NULL else f"'{name}', {value}"
        for name, value in fields.items()
    ]
    return f"named_struct({', '.join(values)})"


_PROBLEM = f"IF(problem IS NOT NULL, {_named(str(NO_PLACE), _NULL, _NULL, _NULL, 'problem')}, NULL)"


def _overflown(variables: Variables) -> Sql:
    return " OR ".join(f"{risk} IS NULL" for risk in variables.risks)


def _failed(number: int) -> str:
    return f"failed{number}"


def _column(number: int) -> str:
    return f"e{number}" if number >= 0 else "event"


def _by_index(
    frame: DataFrame, steps: Sequence[PathStep], indexed: Mapping[int, list[Predicate]], brief: bool
) -> DataFrame:
    """The deliveries of indexed arcs: the unchanged body with each arc that passes it."""
    index = Index(list(indexed.values()))
    values = [f"{'.'.join([_column(-1), *map(quoted, path)])} AS v{place}" for place, path in enumerate(index.paths)]
    names = [(steps[number].number, steps[number].arc.name, steps[number].arc.target) for number in indexed]
    work = partial(_matched, index, names)
    body = "CAST(NULL AS STRING) AS body" if brief else "body"
    number = frame.schema["n"].dataType.simpleString()
    return frame.selectExpr("n", body, *values).mapInArrow(work, f"n {number}, {_DELIVERY[7:-1]}")


def _matched(
    index: Index, names: Sequence[tuple[int, str, str]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    columns = [pa.array(column, type) for column, type in zip(zip(*names, strict=True), _NAMES, strict=True)]
    for batch in batches:
        values = {path: batch.column(place + 2) for place, path in enumerate(index.paths)}
        matches = index.match(values, batch.num_rows)
        events, arcs = pa.array(matches.events), pa.array(matches.arcs)
        number, body = batch.column(0).take(events), batch.column(1).take(events)
        nothing = pa.nulls(len(events), pa.string())
        chosen = [column.take(arcs) for column in columns]
        rows = pa.repeat("", len(events))
        yield pa.RecordBatch.from_arrays([number, *chosen, body, nothing, rows], names=list(DELIVERED))
