"""Writing to a queue from Spark: tasks check the messages, and the driver commits them all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from postroom.engine.datasource.delivery import Put, Receipt, deliver
from postroom.engine.datasource.options import Place
from postroom.errors import ArgumentInvalid, PropertyInvalid
from postroom.model.message import Draft
from postroom.store.kernel.base import Store

#: Opens what a room does with messages that enter, for one open store.
Admission = Callable[[Store], Put]

_QUERY = "sql.streaming.queryId"  # Spark tells every task of a streaming query its lasting name
_TAKEN = ("body", "format", "type", "properties")


@dataclass
class Made(WriterCommitMessage):
    """What one task made, for the driver."""

    drafts: list[Draft]
    query: str | None


class Sheet:
    """Checks rows and makes messages. It writes nothing, because a task may run twice or fail halfway."""

    def __init__(self, schema: StructType) -> None:
        names = {field.name.lower(): field for field in schema.fields}
        unknown = [field.name for name, field in names.items() if name not in _TAKEN]
        if unknown or "body" not in names:
            why = f"a message is written from body and, if wanted, {', '.join(_TAKEN[1:])}"
            raise ArgumentInvalid(argument="columns", why=f"{why}; {', '.join(unknown)} cannot be" if unknown else why)
        for name, field in names.items():
            kind = field.dataType.simpleString()
            fits = kind == "string" or (name == "body" and kind == "binary")
            if not fits and not (name == "properties" and kind.startswith("map<string,")):
                raise ArgumentInvalid(argument=f"column {field.name}", why=f"it is {kind}, not text")
        self._columns = [field.name.lower() for field in schema.fields]

    def made(self, batches: Iterator[pyarrow.RecordBatch]) -> Made:
        context = TaskContext.get()
        drafts = [
            _draft(dict(zip(self._columns, row, strict=True)))
            for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        return Made(drafts, context.getLocalProperty(_QUERY) if context is not None else None)


def _draft(row: dict[str, Any]) -> Draft:
    if row["body"] is None:
        raise ArgumentInvalid(argument="column body", why="a row has none")
    return Draft.of(row["body"], row.get("format"), row.get("type"), _properties(row.get("properties")))


def _properties(value: Any) -> dict[str, Any] | None:
    """Read properties: a map comes as pairs, text as JSON."""
    if not isinstance(value, str):
        return None if value is None else dict(value)
    try:
        properties = json.loads(value)
    except json.JSONDecodeError as error:
        raise PropertyInvalid(name=value[:40], why=f"the text is not JSON: {error}") from None
    if not isinstance(properties, dict):
        raise PropertyInvalid(name=value[:40], why="the text is not a JSON object")
    return properties


class _Written:
    """What batch and stream writers share."""

    def __init__(self, place: Place, sheet: Sheet, admission: Admission) -> None:
        self._place = place
        self._sheet = sheet
        self._access = admission

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Made:
        return self._sheet.made(iterator)

    def _deliver(self, drafts: Sequence[Draft], receipt: Receipt | None) -> None:
        with closing(self._place.open()) as store:
            deliver(store, self._place.queue, drafts, self._access(store), receipt)


class BatchSink(_Written, DataSourceArrowWriter):
    """One write: all rows in order, or none. A failed one has written nothing, so there is nothing to abort."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._deliver([draft for made in _all(messages) for draft in made.drafts], None)


class StreamSink(_Written, DataSourceStreamArrowWriter):
    """One commit per batch of a streaming query. A repeated batch is recognised by its number."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        made = _all(messages)
        drafts = [draft for message in made for draft in message.drafts]
        if drafts:
            query = made[0].query
            if query is None:
                raise ArgumentInvalid(argument="writeStream", why="Spark does not tell which query this is")
            self._deliver(drafts, Receipt(query, batchId))


def _all(messages: list[WriterCommitMessage | None]) -> list[Made]:
    made = [message for message in messages if isinstance(message, Made)]
    assert len(made) == len(messages), "a write is committed only when every task has ended well"
    return made
