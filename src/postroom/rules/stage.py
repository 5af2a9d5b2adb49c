"""Rules on Spark: arrivals go out in chunks, pending actions come back, by one ``mapInArrow``.

A chunk is one row: its messages, and the sets they look at. Messages that look at the same set travel together, so that
most conflicts are settled inside of one task. Where executors read and write in the store themselves, a chunk has no
bodies of stored messages, and a receipt comes back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from postroom.engine.arrow import stream
from postroom.engine.depot import Bay, Receipt, Ticket
from postroom.engine.effects import PLAIN, Action, Arrival, Change, Document, Effects, Enqueue, Granule, ResetSlice
from postroom.engine.garbage import collector_off
from postroom.engine.isolation import isolated, reason
from postroom.engine.serial import Timeline
from postroom.engine.worker import Bounds
from postroom.errors import PostroomError
from postroom.model.message import Stored
from postroom.rules.arrivals import arrivals_of
from postroom.rules.evaluate import evaluate_chunk
from postroom.rules.plan import Plan
from postroom.rules.xquery import saxon
from postroom.store.queues import Door
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Base = Mapping[Granule, Sequence[Document]]
_CHUNK_MIN = 64  # fewer messages are not worth a second task

#: Chunks and answers cross Spark as Arrow streams in one binary column: taken apart, each of their values would be
#: converted four times on its way through the JVM, which costs more than evaluating a rule.
_PACKED = "packed binary"
_ANSWER = pa.schema(
    [
        ("index", pa.int64()),
        ("head", pa.int32()),  # its number among the heads, which come with the schema: kind, rule, name, format, type
        ("properties", pa.string()),
        ("body", pa.string()),
        ("places", pa.string()),
        ("delay", pa.int64()),
    ]
)
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
        ("place", pa.int64()),
    ]
)
_SET = pa.struct([("kind", pa.string()), ("name", pa.string()), ("value", pa.string()), ("members", pa.list_(_MEMBER))])
_CHUNK = pa.schema([("messages", pa.list_(_MESSAGE)), ("sets", pa.list_(_SET))])
_TOLD = b"told"  # in the schema of an answer: all that is not a row
_NUMBER = b"number"  # in the schema of a chunk: its place among those of the job
_BEFORE = -1  # the time of what stood in a set before the step


@dataclass(frozen=True)
class RulesShare:
    """The rules in force, as the engine sees them."""

    plan: Plan
    bay: Bay | None = field(default=None, kw_only=True)  # where executors leave answers that do not go through Spark

    def there(self, bay: Bay) -> RulesShare:
        return replace(self, bay=bay)

    @property
    def version(self) -> int:
        return self.plan.version

    @cached_property
    def watched(self) -> Mapping[str, int]:
        return {name: queue.priority for name, queue in self.plan.queues.items()}

    @property
    def windows(self) -> Mapping[str, tuple[int, int]]:
        return {}

    @property
    def agent(self) -> str:
        return "rule"

    @property
    def doors(self) -> Door:
        return Door.RULES | Door.FLOWS  # what comes into a space is checked when it flows on

    @property
    def echoes(self) -> Sequence[str]:
        return self.plan.echoes

    @cached_property
    def sliced(self) -> frozenset[str]:
        return frozenset(name for name, target in self.plan.targets.items() if target.slicings)

    @cached_property
    def reading(self) -> frozenset[str]:
        return frozenset(name for name, queue in self.plan.queues.items() if queue.reads)

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return arrivals_of(self.plan, tx, claimed)

    def evaluate(
        self, spark: SparkSession, arrivals: Sequence[Arrival], base: Base, known: Timeline
    ) -> Iterator[Mapping[int, Effects]]:
        yield from _Job(self.plan, spark, base, known, self.bay).run(arrivals)

    def keep_warm(self, spark: SparkSession) -> None:
        _Job(self.plan, spark, {}, {}).warm()


# --- in the driver -----------------------------------------------------------------------------------------------


class _Job:
    """Evaluates arrivals on Spark."""

    def __init__(self, plan: Plan, spark: SparkSession, base: Base, known: Timeline, bay: Bay | None = None) -> None:
        self._plan = plan
        self._spark = spark
        self._base = base
        self._known = known
        self._bay = bay

    def run(self, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        return isolated(self._spark, arrivals, self._together)

    def _together(self, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
        tasks = self._spark.sparkContext.defaultParallelism
        return self._evaluated(together(arrivals, max(1, min(tasks, len(arrivals) // _CHUNK_MIN))))

    def warm(self) -> None:
        """Work off nothing, on every worker."""
        try:
            list(self._evaluated([[]] * self._spark.sparkContext.defaultParallelism))
        except Exception as error:
            reason(self._spark, error)  # a worker that has died will be made anew; if Java has, that is told

    def _evaluated(self, chunks: Sequence[Sequence[Arrival]]) -> Iterator[Mapping[int, Effects]]:
        rows = [packed(chunk, self._base, self._known, number) for number, chunk in enumerate(chunks)]
        ticket = None if self._bay is None else self._bay.ticket()
        frame = frame_of_actions(frame_of_chunks(self._spark, rows), self._plan, ticket)
        answers = frame.toArrow().column(0).to_pylist()
        if self._bay is not None and ticket is not None:
            answers = self._bay.answers(ticket, map(receipt_of, answers))
        for answer in answers:
            effects, unsettled, orders = unpacked(answer)
            yield {order: tuple(effects.get(order, ())) for order in orders if order not in unsettled}


def frame_of_chunks(spark: SparkSession, chunks: Sequence[bytes]) -> DataFrame:
    return spark.createDataFrame(pa.table({"packed": pa.array(chunks, pa.binary())}), _PACKED)


def frame_of_actions(chunks: DataFrame, plan: Plan, ticket: Ticket | None = None) -> DataFrame:
    """Arrivals in, pending actions out; with a ticket, keys in and receipts out."""
    bounds = Bounds.beside(str(chunks.sparkSession.sparkContext.master))
    answer = partial(evaluated, plan) if ticket is None else partial(evaluated_there, plan, ticket)
    return chunks.mapInArrow(partial(work, answer, bounds), _PACKED)


def spark_plan(spark: SparkSession, plan: Plan) -> str:
    """What Spark makes of a step."""
    from postroom.engine.spark import plan_of

    return plan_of(frame_of_actions(frame_of_chunks(spark, [packed([], {}, {})]), plan))


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


def packed(chunk: Sequence[Arrival], base: Base, known: Timeline, number: int = 0) -> bytes:
    """A chunk as one row of an Arrow stream, built column by column."""
    numbers: dict[Granule, int] = {}
    reads = [[[numbers.setdefault(each, len(numbers)) for each in read] for read in one.reads] for one in chunk]
    columns = list(zip(*(arrival[:9] for arrival in chunk), strict=True)) or [()] * 9
    columns += [reads, [arrival.failure for arrival in chunk]]
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, _MESSAGE, strict=True)]
    messages = pa.ListArray.from_arrays(
        pa.array([0, len(chunk)], pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(_MESSAGE))
    )
    sets = pa.array([[_set(each, base, known) for each in numbers]], type=pa.list_(_SET))
    return stream(pa.RecordBatch.from_arrays([messages, sets], schema=_CHUNK.with_metadata({_NUMBER: str(number)})))


def _set(granule: Granule, base: Base, known: Timeline) -> dict[str, Any]:
    members = [(_BEFORE, *document) for document in base.get(granule, ())]
    members += [(at, *(document or (0, "", None, "", 0))) for at, document in known.get(granule, ())]
    return {
        "kind": granule.kind,
        "name": granule.name,
        "value": granule.value,
        "members": [dict(zip(("at", *Document._fields), each, strict=True)) for each in members],
    }


def unpacked(answer: bytes) -> tuple[dict[int, list[Action]], set[int], list[int]]:
    """Actions by the number of their message, the messages that did not settle, and all that were evaluated."""
    rows = pa.ipc.open_stream(answer).read_all()
    told = json.loads(rows.schema.metadata[_TOLD])
    heads = [(kind, tuple(head)) for kind, *head in told["heads"]]
    effects: dict[int, list[Action]] = {}
    columns = [column.to_pylist() for column in rows.columns]
    for index, number, properties, body, places, delay in zip(*columns, strict=True):
        kind, head = heads[number]
        made: Action
        if kind == "enqueue":  # the constructor's half cost counts here
            made = tuple.__new__(Enqueue, (*head, properties, body, *PLAIN))
        elif kind == "reset":
            made = ResetSlice(head[0], head[1], body)
        else:
            slices, entries = map(_pairs, json.loads(places)) if places else ((), ())
            rule, queue, form, type = head
            made = Enqueue(rule, queue, form, type, properties, body, slices, entries, delay, kind == "failure")
            if kind == "undo":
                made = made._replace(compensates=True)
        if index in effects:
            effects[index].append(made)
        else:
            effects[index] = [made]
    return effects, set(told["unsettled"]), told["orders"]


def _pairs(lists: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple([(name, value) for name, value in lists])


# --- in the worker -----------------------------------------------------------------------------------------------


#: The answer to a chunk, worked out within bounds.
Answering = Callable[[bytes, Bounds], bytes]


def work(answer: Answering, bounds: Bounds, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Evaluate every chunk of a partition, within bounds that the driver sets."""
    bounds.settle()
    saxon()  # before the time counts
    for rows in batches:
        with collector_off():
            answers = [answer(chunk, bounds) for chunk in rows.column(0).to_pylist()]
        yield pa.RecordBatch.from_arrays([pa.array(answers, pa.binary())], names=["packed"])


def evaluated(plan: Plan, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to one chunk."""
    return _evaluated(plan, *_chunk(chunk), bounds, len(chunk))


def evaluated_there(plan: Plan, ticket: Ticket, chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The receipt for one chunk, whose messages are fetched from the store, where the answer is left.

    Time counts for the evaluation alone: that a store is slow, or away, is no message's fault.
    """
    arrivals, base, given = _chunk(chunk)
    number = int(pa.ipc.open_stream(chunk).schema.metadata[_NUMBER])
    keys = {each.key for each in arrivals} | {each.key for members in base.values() for each in members}
    try:
        found = ticket.fetched(sorted(keys))
    except PostroomError as error:
        return _receipt(Receipt(number, trouble=str(error)))
    damaged = {key for key, stored in found.items() if not stored.sound}
    ours = [each.key for each in arrivals if each.key in damaged]
    if len(found) < len(keys) or ours:
        return _receipt(Receipt(number, gone=len(found) < len(keys), damaged=ours))
    told = [each._replace(body=found[each.key].body) for each in arrivals]
    sets = {
        granule: [each._replace(body=found[each.key].body) for each in members if each.key not in damaged]
        for granule, members in base.items()
    }
    size = sum([len(stored.body) for stored in found.values()])
    answer = _evaluated(plan, told, sets, given, bounds, len(chunk) + size)
    try:
        ticket.leave(number, answer)
    except PostroomError as error:
        return _receipt(Receipt(number, trouble=str(error)))
    return _receipt(Receipt(number))


def _evaluated(
    plan: Plan, arrivals: Sequence[Arrival], base: Base, given: Timeline, bounds: Bounds | None, size: int
) -> bytes:
    with nullcontext() if bounds is None else _bounded(bounds, size):
        effects, unsettled = evaluate_chunk(plan, arrivals, base, given)
        return _answer([arrival.order for arrival in arrivals], effects, unsettled)


def _receipt(receipt: Receipt) -> bytes:
    return json.dumps(asdict(receipt)).encode()


def receipt_of(said: bytes) -> Receipt:
    return Receipt(**json.loads(said))


@contextmanager
def _bounded(bounds: Bounds, size: int) -> Iterator[None]:
    with _hushed(), bounds.deadline(size):
        yield


@contextmanager
def _hushed() -> Iterator[None]:
    """Saxon dies with a thousand lines about its stack or heap. What matters is in the message's error message."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


def _chunk(packed: bytes) -> tuple[list[Arrival], dict[Granule, list[Document]], dict[Granule, list[Change]]]:
    (rows,) = pa.ipc.open_stream(packed)
    base: dict[Granule, list[Document]] = {}
    given: dict[Granule, list[Change]] = {}
    granules = []
    for each in rows.column("sets")[0].as_py():
        granule = Granule(each["kind"], each["name"], each["value"])
        granules.append(granule)
        base[granule] = []
        for member in each["members"]:
            at, *fields = member.values()
            document = Document(*fields)
            if at == _BEFORE:
                base[granule].append(document)
            else:
                given.setdefault(granule, []).append(Change(at, document if document.format else None))
    messages = rows.column("messages").flatten()
    *columns, reads, failures = [messages.field(number).to_pylist() for number in range(len(_MESSAGE))]
    arrivals = [
        Arrival._make((*values, tuple([tuple([granules[number] for number in read]) for read in looks]), failure))
        for *values, looks, failure in zip(*columns, reads, failures, strict=True)
    ]
    return arrivals, base, given


def _answer(orders: list[int], effects: Mapping[int, Effects], unsettled: set[int]) -> bytes:
    rows: list[tuple[Any, ...]] = []
    heads: dict[tuple[Any, ...], int] = {}
    for index, made in effects.items():
        if index in unsettled:
            continue
        for action in made:
            if isinstance(action, ResetSlice):
                head = heads.setdefault(("reset", action.rule, action.slicing, None, None), len(heads))
                rows.append((index, head, None, action.value, None, None))
                continue
            rule, queue, form, type, properties, body, slices, entries, delay, failed, _, undo = action
            placed = slices or entries or delay is not None
            kind = "undo" if undo else "failure" if failed else "placed" if placed else "enqueue"
            head = heads.setdefault((kind, rule, queue, form, type), len(heads))
            places = json.dumps((slices, entries)) if placed else None
            rows.append((index, head, properties, body, places, delay))
    columns = zip(*rows, strict=True) if rows else [()] * len(_ANSWER)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _ANSWER, strict=True)]
    told = json.dumps({"heads": list(heads), "unsettled": list(unsettled), "orders": orders})
    return stream(pa.RecordBatch.from_arrays(arrays, schema=_ANSWER.with_metadata({_TOLD: told})))
