"""What one node answers to a query over nodes: one table of Arrow for all of them, wherever it is read.

Nothing here knows of Spark: a query that looks up a few messages reads nodes where it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow

from postroom.engine.spark.arrow import packed_rows, stream
from postroom.errors import PostroomError, QueryExpired
from postroom.model.place import place_of
from postroom.stations.queries.reading import Plan, form_version, read_mailboxes, read_stations
from postroom.store import open_store
from postroom.store.tables.scans import END
from postroom.store.tables.tracking import STATIONS

ANSWER = pyarrow.schema(
    [
        ("part", pyarrow.int32()),
        ("key", pyarrow.int64()),
        ("place", pyarrow.string()),
        ("form", pyarrow.int32()),
        ("body", pyarrow.string()),
        ("damaged", pyarrow.bool_()),
        ("error", pyarrow.string()),
    ]
)


class Part(NamedTuple):
    """What one task of the job reads."""

    node: str
    url: str
    place: str


class Job(NamedTuple):
    """What all tasks of a query are told."""

    parts: Sequence[Part]
    number: int
    plan: Plan
    stations: frozenset[str] | None
    whole: bool

    def packed(self) -> str:
        """As the tasks of a job are told it: plain data, no program, and no URL, which may hold a password."""
        stations = None if self.stations is None else sorted(self.stations)
        parts = [(part.node, part.place) for part in self.parts]
        return json.dumps([parts, self.number, self.plan.packed(), stations, self.whole])

    @classmethod
    def unpacked(cls, said: str, urls: Sequence[str]) -> Job:
        """What a task was told, with the URL of each part."""
        parts, number, plan, stations, whole = json.loads(said)
        wanted = None if stations is None else frozenset(stations)
        told = [Part(node, url, place) for (node, place), url in zip(parts, urls, strict=True)]
        return cls(told, number, Plan.unpacked(plan), wanted, whole)


def read_part(
    index: int,
    part: Part,
    number: int,
    plan: Plan,
    stations: frozenset[str] | None,
    *,
    whole: bool = True,
    most: int = END,
) -> pyarrow.RecordBatch:
    """The answer of one node; what went wrong there is an answer, too."""
    work = read_stations if part.place == STATIONS else read_mailboxes
    try:
        store = open_store(part.url, actor="query", create=False, reads_much=most == END)
        try:
            messages = store.read(lambda tx: work(tx, number, plan, stations, most))
        finally:
            store.close()
    except PostroomError as error:
        why = QueryExpired.code if isinstance(error, QueryExpired) else str(error)
        return _batch([index], [0], [""], [0], [""], [False], [why])
    sound = [stored.sound for stored in messages]
    if not whole:
        return _batch([index], [sum(sound)], [""], [0], [""], [False], [None])
    return _batch(
        [index] * len(messages),
        [stored.key for stored in messages],
        [place_of(stored.queue) for stored in messages],
        [form_version(stored.properties) for stored in messages],
        [stored.body if well else "" for stored, well in zip(messages, sound, strict=True)],
        [not well for well in sound],
        [None] * len(messages),
    )


def _batch(*columns: Sequence[Any]) -> pyarrow.RecordBatch:
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, ANSWER, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=ANSWER)


def packed(rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """An answer in one cell: Java would take each row apart and put it together."""
    return packed_rows([stream(rows)])


def unpacked(column: pyarrow.ChunkedArray) -> pyarrow.Table:
    """The answers of all nodes as one table."""
    batches = [batch for cell in column for batch in pyarrow.ipc.open_stream(cell.as_buffer())]
    return pyarrow.Table.from_batches(batches, schema=ANSWER)
