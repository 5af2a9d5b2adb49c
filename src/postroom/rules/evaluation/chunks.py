"""The serialised form of chunks of rule work and their answers.

A chunk is one Arrow row: its messages, and the sets that they read. Small chunks have another form, which needs no
library (``small_chunks.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from postroom.engine.spark.arrow import stream
from postroom.engine.steps.effects import (
    PLAIN,
    Action,
    Arrival,
    Change,
    Document,
    Effects,
    Enqueue,
    Granule,
    ResetSlice,
)
from postroom.engine.steps.serial import Timeline
from postroom.rules.evaluation.grouping import Base as Base
from postroom.rules.evaluation.grouping import Chunk as Chunk
from postroom.rules.evaluation.grouping import together as together
from postroom.rules.evaluation.small_chunks import pairs

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
_SET = pa.struct(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("until", pa.int64()),
        ("members", pa.list_(_MEMBER)),
    ]
)
_CHUNK = pa.schema([("messages", pa.list_(_MESSAGE)), ("sets", pa.list_(_SET))])
_TOLD = b"told"  # in the schema of an answer: all that is not a row
_BEFORE = -1  # the time of what stood in a set before the step


def packed(chunk: Sequence[Arrival], base: Base, known: Timeline) -> bytes:
    """A chunk as one row of an Arrow stream."""
    numbers: dict[Granule, int] = {}
    reads = [[[numbers.setdefault(seen, len(numbers)) for seen in read] for read in one.reads] for one in chunk]
    columns = list(zip(*(arrival[:9] for arrival in chunk), strict=True)) or [()] * 9
    columns += [reads, [arrival.failure for arrival in chunk]]
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, _MESSAGE, strict=True)]
    messages = pa.ListArray.from_arrays(
        pa.array([0, len(chunk)], pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(_MESSAGE))
    )
    sets = pa.array([[_set(granule, base, known) for granule in numbers]], type=pa.list_(_SET))
    return stream(pa.RecordBatch.from_arrays([messages, sets], schema=_CHUNK))


def _set(granule: Granule, base: Base, known: Timeline) -> dict[str, Any]:
    members = [(_BEFORE, *document) for document in base.get(granule, ())]
    members += [(at, *(document or (0, "", None, "", 0))) for at, document in known.get(granule, ())]
    return {
        "kind": granule.kind,
        "name": granule.name,
        "value": granule.value,
        "until": granule.until,
        "members": [dict(zip(("at", *Document._fields), member, strict=True)) for member in members],
    }


def chunk_of(packed: bytes) -> Chunk:
    (rows,) = pa.ipc.open_stream(packed)
    base: dict[Granule, list[Document]] = {}
    given: dict[Granule, list[Change]] = {}
    granules = []
    for row in rows.column("sets")[0].as_py():
        granule = Granule(row["kind"], row["name"], row["value"], row["until"])
        granules.append(granule)
        base[granule] = []
        for member in row["members"]:
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
    return Chunk(arrivals, base, given)


def answer_of(orders: list[int], effects: Mapping[int, Effects], unsettled: set[int]) -> bytes:
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
            assert isinstance(action, Enqueue), "whoever has the answers judges failures"
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


def settled(answer: bytes) -> dict[int, Effects]:
    """The effects of each message of a chunk that has settled."""
    effects, unsettled, orders = unpacked(answer)
    return {order: tuple(effects.get(order, ())) for order in orders if order not in unsettled}


def unpacked(answer: bytes) -> tuple[dict[int, list[Action]], set[int], list[int]]:
    """Actions by message number, the messages that did not settle, and all evaluated ones."""
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
            slices, entries = map(pairs, json.loads(places)) if places else ((), ())
            rule, queue, form, type = head
            made = Enqueue(rule, queue, form, type, properties, body, slices, entries, delay, kind == "failure")
            if kind == "undo":
                made = made._replace(compensates=True)
        if index in effects:
            effects[index].append(made)
        else:
            effects[index] = [made]
    return effects, set(told["unsettled"]), told["orders"]
