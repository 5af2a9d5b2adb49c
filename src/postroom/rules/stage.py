"""Rules on Spark: arrivals go out in chunks, pending actions come back, by one ``mapInArrow``.

A chunk is one row: its messages, and the sets they look at. Messages that look at the same set travel together, so that
most conflicts are settled inside of one task.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from postroom.engine.effects import Action, Arrival, Change, Document, Effects, Enqueue, Granule, ResetSlice
from postroom.engine.serial import Timeline
from postroom.errors import SparkUnavailable
from postroom.limits import EVALUATION_SECONDS
from postroom.model.message import Stored
from postroom.rules.arrivals import arrivals_of
from postroom.rules.evaluate import evaluate_chunk
from postroom.rules.plan import Plan
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Base = Mapping[Granule, Sequence[Document]]
_PARTS = 8  # into how many pieces a chunk that kills its worker is taken apart
_CHUNK_MIN = 64  # fewer messages are not worth a second task

_OUT = (
    "index long, kind string, rule string, name string, format string, type string, body string, "
    "properties string, places string, delay long"
)
_OUT_NAMES = [part.split()[0] for part in _OUT.split(", ")]
_MESSAGE = pa.struct(
    [
        ("order", pa.int64()),
        ("queue", pa.string()),
        ("key", pa.int64()),
        ("format", pa.string()),
        ("type", pa.string()),
        ("body", pa.string()),
        ("properties", pa.string()),
        ("created", pa.int64()),
        ("cause", pa.int64()),
        ("reads", pa.list_(pa.list_(pa.int32()))),
        ("failure", pa.string()),
    ]
)
_MEMBER = pa.struct(
    [
        ("at", pa.int64()),
        ("key", pa.int64()),
        ("format", pa.string()),
        ("type", pa.string()),
        ("body", pa.string()),
    ]
)
_SET = pa.struct([("kind", pa.string()), ("name", pa.string()), ("value", pa.string()), ("members", pa.list_(_MEMBER))])
_CHUNK = pa.schema([("messages", pa.list_(_MESSAGE)), ("sets", pa.list_(_SET))])
_BEFORE = -1  # the time of what stood in a set before the step


@dataclass(frozen=True)
class RulesShare:
    """The rules in force, as the engine sees them."""

    plan: Plan

    @property
    def version(self) -> int:
        return self.plan.version

    @property
    def watched(self) -> Mapping[str, int]:
        return {name: queue.priority for name, queue in self.plan.queues.items()}

    @property
    def echoes(self) -> Sequence[str]:
        return self.plan.echoes

    @property
    def sliced(self) -> frozenset[str]:
        return frozenset(name for name, target in self.plan.targets.items() if target.slicings)

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return arrivals_of(self.plan, tx, claimed)

    def evaluate(
        self, spark: SparkSession, arrivals: Sequence[Arrival], base: Base, known: Timeline
    ) -> Iterator[Mapping[int, Effects]]:
        yield from _Job(self.plan, spark, base, known).run(arrivals)


# --- in the driver -----------------------------------------------------------------------------------------------


class _Job:
    """Evaluates arrivals on Spark; a message that kills its worker is found by taking its chunk apart."""

    def __init__(self, plan: Plan, spark: SparkSession, base: Base, known: Timeline) -> None:
        self._plan = plan
        self._spark = spark
        self._base = base
        self._known = known

    def run(self, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        if not arrivals:
            return
        tasks = self._spark.sparkContext.defaultParallelism
        chunks = together(arrivals, max(1, min(tasks, len(arrivals) // _CHUNK_MIN)))
        try:
            yield from self._evaluated(chunks)
        except Exception as error:
            reason = self._reason(error)
            if len(arrivals) > 1:
                size = -(-len(arrivals) // _PARTS)
                for start in range(0, len(arrivals), size):
                    yield from self.run(arrivals[start : start + size])
            elif arrivals[0].failure is None:
                yield from self.run([arrivals[0]._replace(failure=reason)])
            else:  # even its error message kills the worker
                raise

    def _reason(self, error: Exception) -> str:
        """Why a job failed, if that can be a message's fault."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if not isinstance(error, (Py4JError, PySparkException)):
            raise error
        context = self._spark.sparkContext
        if context._jsc is None or context._jsc.sc().isStopped():
            raise SparkUnavailable(
                master="the engine", why="the session has ended", advice="start the engine again"
            ) from error
        return f"evaluation killed its worker, or took longer than {EVALUATION_SECONDS:.0f} seconds"

    def _evaluated(self, chunks: Sequence[Sequence[Arrival]]) -> Iterator[Mapping[int, Effects]]:
        frame = self._spark.createDataFrame(packed(chunks, self._base, self._known))
        answer = frame_of_actions(frame, self._plan).toArrow()
        columns = [answer.column(name).to_pylist() for name in _OUT_NAMES]
        effects, unsettled = unpacked(zip(*columns, strict=True))
        for chunk in chunks:
            yield {
                arrival.order: tuple(effects.get(arrival.order, ()))
                for arrival in chunk
                if arrival.order not in unsettled
            }


def frame_of_actions(chunks: DataFrame, plan: Plan) -> DataFrame:
    """Arrivals in, pending actions out."""
    return chunks.mapInArrow(partial(work, plan), _OUT)


def together(arrivals: Sequence[Arrival], count: int) -> list[list[Arrival]]:
    """Chunks of about one size, in which messages that look at the same slice or entry are together."""
    if count == 1:
        return [list(arrivals)]
    groups: list[list[Arrival]] = []
    group_of: dict[Granule, list[Arrival]] = {}
    for arrival in arrivals:
        keyed = [granule for granule in arrival.granules if granule.kind != "queue"]
        group = next((group_of[granule] for granule in keyed if granule in group_of), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(arrival)
        for granule in keyed:
            group_of.setdefault(granule, group)
    size = -(-len(arrivals) // count)
    chunks: list[list[Arrival]] = [[]]
    for group in groups:
        if len(chunks[-1]) >= size:
            chunks.append([])
        chunks[-1] += group
    for chunk in chunks:
        chunk.sort()
    return chunks


def packed(chunks: Sequence[Sequence[Arrival]], base: Base, known: Timeline) -> pa.Table:
    """Chunks as rows for Spark, built column by column."""
    flat = [arrival for chunk in chunks for arrival in chunk]
    set_numbers: list[dict[Granule, int]] = []
    reads = []
    for chunk in chunks:
        numbers: dict[Granule, int] = {}
        for arrival in chunk:
            reads.append([[numbers.setdefault(each, len(numbers)) for each in read] for read in arrival.reads])
        set_numbers.append(numbers)
    columns = list(zip(*((*a[:9], a.failure) for a in flat), strict=True))
    arrays = [
        pa.array(values, type=field.type) for values, field in zip(columns[:9], list(_MESSAGE)[:9], strict=True)
    ]
    arrays += [pa.array(reads, type=_MESSAGE.field("reads").type), pa.array(columns[9], type=pa.string())]
    offsets = [0]
    for chunk in chunks:
        offsets.append(offsets[-1] + len(chunk))
    messages = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(_MESSAGE))
    )
    sets = pa.array([[_set(each, base, known) for each in numbers] for numbers in set_numbers], type=pa.list_(_SET))
    return pa.Table.from_arrays([messages, sets], schema=_CHUNK)


def _set(granule: Granule, base: Base, known: Timeline) -> dict[str, Any]:
    members = [(_BEFORE, *document) for document in base.get(granule, ())]
    members += [(at, *(document or (0, "", None, ""))) for at, document in known.get(granule, ())]
    return {
        "kind": granule.kind,
        "name": granule.name,
        "value": granule.value,
        "members": [dict(zip(("at", "key", "format", "type", "body"), each, strict=True)) for each in members],
    }


def unpacked(rows: Iterator[Sequence[Any]]) -> tuple[dict[int, list[Action]], set[int]]:
    """Actions by the number of their message, and the messages that did not settle."""
    effects: dict[int, list[Action]] = {}
    unsettled = set()
    for index, kind, rule, name, form, type, body, properties, places, delay in rows:
        if kind == "unsettled":
            unsettled.add(index)
        elif kind == "reset":
            effects.setdefault(index, []).append(ResetSlice(rule, name, body))
        else:
            slices, entries = json.loads(places) if places else ((), ())
            action = Enqueue(
                rule,
                name,
                form,
                type,
                body,
                properties,
                tuple(map(tuple, slices)),
                tuple(map(tuple, entries)),
                delay,
                kind == "failure",
            )
            effects.setdefault(index, []).append(action)
    return effects, unsettled


# --- in the worker -----------------------------------------------------------------------------------------------


def work(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Evaluate every chunk of a partition."""
    for rows in batches:
        for row in rows.to_pylist():
            arrivals, base, given = _chunk(row)
            with _Deadline(EVALUATION_SECONDS + len(arrivals) * 0.01):
                effects, unsettled = evaluate_chunk(plan, arrivals, base, given)
            yield _answer(effects, unsettled)


class _Deadline:
    """Ends this process if a batch takes too long: Saxon can be stopped in no other way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _chunk(row: Mapping[str, Any]) -> tuple[list[Arrival], dict[Granule, list[Document]], dict[Granule, list[Change]]]:
    granules = [Granule(each["kind"], each["name"], each["value"]) for each in row["sets"]]
    base: dict[Granule, list[Document]] = {}
    given: dict[Granule, list[Change]] = {}
    for granule, each in zip(granules, row["sets"], strict=True):
        base[granule] = []
        for member in each["members"]:
            document = Document(member["key"], member["format"], member["type"], member["body"])
            if member["at"] == _BEFORE:
                base[granule].append(document)
            else:
                given.setdefault(granule, []).append(Change(member["at"], document if member["format"] else None))
    arrivals = [
        Arrival(
            m["order"],
            m["queue"],
            m["key"],
            m["format"],
            m["type"],
            m["body"],
            m["properties"],
            m["created"],
            m["cause"],
            tuple(tuple(granules[number] for number in read) for read in m["reads"]),
            m["failure"],
        )
        for m in row["messages"]
    ]
    return arrivals, base, given


def _answer(effects: Mapping[int, Effects], unsettled: set[int]) -> pa.RecordBatch:
    rows: list[tuple[Any, ...]] = []
    for index, made in effects.items():
        if index in unsettled:
            continue
        for action in made:
            if isinstance(action, ResetSlice):
                rows.append((index, "reset", action.rule, action.slicing, None, None, action.value, None, None, None))
                continue
            rule, queue, form, type, body, properties, slices, entries, delay, failed = action
            places = json.dumps((slices, entries)) if slices or entries else None
            kind = "failure" if failed else "enqueue"
            rows.append((index, kind, rule, queue, form, type, body, properties, places, delay))
    rows += [(index, "unsettled", *(None,) * 8) for index in unsettled]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_OUT_NAMES)
    whole = {"index", "delay"}
    arrays = [
        pa.array(values, type=pa.int64() if name in whole else pa.string())
        for name, values in zip(_OUT_NAMES, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=_OUT_NAMES)
