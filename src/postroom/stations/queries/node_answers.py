"""What one node answers to a query over nodes: the same columns however it is read.

Independent of Spark: a small query reads the nodes directly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.errors import PostroomError, QueryExpired
from postroom.model.place import place_of
from postroom.stations.queries.reading import Plan, form_version, read_mailboxes, read_stations
from postroom.store import open_store
from postroom.store.tables.scans import END
from postroom.store.tables.tracking import STATIONS

if TYPE_CHECKING:
    import pyarrow


class NodeAnswer(NamedTuple):
    """The answers of nodes, by column. Arrow, which is slow to import, is used only for exchange with Spark."""

    part: list[int]
    key: list[int]
    place: list[str]
    form: list[int]
    body: list[str]
    damaged: list[bool]
    error: list[str | None]

    def rows(self) -> list[dict[str, Any]]:
        return [dict(zip(self._fields, row, strict=True)) for row in zip(*self, strict=True)]

    @classmethod
    def together(cls, answers: Sequence[NodeAnswer]) -> NodeAnswer:
        """Merge the answers of several nodes."""
        return cls(*([value for column in columns for value in column] for columns in zip(*answers, strict=True)))


class Part(NamedTuple):
    """What one task of the job reads."""

    node: str
    url: str
    place: str


class Job(NamedTuple):
    """The input for all tasks of a query."""

    parts: Sequence[Part]
    number: int
    plan: Plan
    stations: frozenset[str] | None
    whole: bool

    def packed(self) -> str:
        """As text for the tasks: plain data without URLs, which may contain passwords."""
        stations = None if self.stations is None else sorted(self.stations)
        parts = [(part.node, part.place) for part in self.parts]
        return json.dumps([parts, self.number, self.plan.packed(), stations, self.whole])

    @classmethod
    def unpacked(cls, packed: str, urls: Sequence[str]) -> Job:
        """The input of a task, with the URL of each part."""
        parts, number, plan, stations, whole = json.loads(packed)
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
) -> NodeAnswer:
    """The answer of one node; an error there is an answer, too."""
    work = read_stations if part.place == STATIONS else read_mailboxes
    try:
        store = open_store(part.url, actor="query", create=False, reads_much=most == END)
        try:
            messages = store.read(lambda tx: work(tx, number, plan, stations, most))
        finally:
            store.close()
    except PostroomError as error:
        why = QueryExpired.code if isinstance(error, QueryExpired) else str(error)
        return NodeAnswer([index], [0], [""], [0], [""], [False], [why])
    sound = [stored.sound for stored in messages]
    if not whole:
        return NodeAnswer([index], [sum(sound)], [""], [0], [""], [False], [None])
    return NodeAnswer(
        [index] * len(messages),
        [stored.key for stored in messages],
        [place_of(stored.queue) for stored in messages],
        [form_version(stored.properties) for stored in messages],
        [stored.body if well else "" for stored, well in zip(messages, sound, strict=True)],
        [not well for well in sound],
        [None] * len(messages),
    )


@cache
def answer_schema() -> pyarrow.Schema:
    """The Arrow schema of an answer."""
    import pyarrow

    text, number = pyarrow.string(), pyarrow.int32()
    types = (number, pyarrow.int64(), text, number, text, pyarrow.bool_(), text)
    return pyarrow.schema(list(zip(NodeAnswer._fields, types, strict=True)))


def packed(answer: NodeAnswer) -> pyarrow.RecordBatch:
    """An answer as one cell, because Java would convert each row."""
    import pyarrow

    from postroom.engine.spark.arrow import packed_rows, stream

    arrays = [pyarrow.array(column, of.type) for column, of in zip(answer, answer_schema(), strict=True)]
    return packed_rows([stream(pyarrow.RecordBatch.from_arrays(arrays, schema=answer_schema()))])


def unpacked(column: pyarrow.ChunkedArray) -> NodeAnswer:
    """The answers of all nodes."""
    import pyarrow

    batches = [batch for cell in column for batch in pyarrow.ipc.open_stream(cell.as_buffer())]
    table = pyarrow.Table.from_batches(batches, schema=answer_schema())
    return NodeAnswer(*(part.to_pylist() for part in table.columns))
