"""Messages as rows of a Spark table: columns and Arrow batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow
from pyspark.sql.types import DataType, MapType, StringType, StructField, StructType, TimestampType

from postroom.engine.datasource.options import STATES
from postroom.engine.spark.internals import to_arrow_schema
from postroom.errors import ArgumentInvalid, MessageUnsound
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES
from postroom.store.tables.scans import Found

_TEXT, _TIME = StringType(), TimestampType()

#: Each column with its type in Spark and what stands in it.
COLUMNS: dict[str, tuple[DataType, Callable[[Found], Any]]] = {
    "key": (_TEXT, lambda row: key_text(row.stored.key)),
    "queue": (_TEXT, lambda row: row.stored.queue),
    "type": (_TEXT, lambda row: row.stored.type),
    "format": (_TEXT, lambda row: row.stored.format),
    "body": (_TEXT, lambda row: row.stored.body),
    "properties": (MapType(_TEXT, _TEXT), lambda row: _texts(row.stored.properties)),
    "created": (_TIME, lambda row: row.stored.created),
    "processed": (_TIME, lambda row: row.stored.processed),
    "cause": (_TEXT, lambda row: None if row.stored.cause is None else key_text(row.stored.cause)),
    "state": (_TEXT, lambda row: STATES[row.state]),
}
SCHEMA = StructType([StructField(name, kind) for name, (kind, _) in COLUMNS.items()])


class Frames:
    """Makes Arrow batches with the requested columns."""

    def __init__(self, schema: StructType, corrupt: str) -> None:
        for field in schema.fields:
            if field.name not in COLUMNS or COLUMNS[field.name][0] != field.dataType:
                has = ", ".join(f"{name} {kind.simpleString()}" for name, (kind, _) in COLUMNS.items())
                why = f"a message has no {field.name} {field.dataType.simpleString()}; it has {has}"
                raise ArgumentInvalid(argument="schema", why=why)
        self._schema = schema
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._skip = corrupt == "skip"

    def batch(self, messages: Iterable[Found]) -> pyarrow.RecordBatch:
        """One batch. A damaged message raises, or is left out if the option says so."""
        sound = [message for message in messages if self._is_sound(message)]
        columns = {name: [COLUMNS[name][1](message) for message in sound] for name in self._schema.fieldNames()}
        return pyarrow.RecordBatch.from_pydict(columns, schema=self._arrow)

    def _is_sound(self, row: Found) -> bool:
        if row.stored.sound:
            return True
        if not self._skip:
            raise MessageUnsound(key=key_text(row.stored.key), queue=row.stored.queue)
        return False


def _texts(properties: str) -> list[tuple[str, str | None]]:
    """Properties by name, all values as text, because a column has one type."""
    if properties == NO_PROPERTIES:  # most have none, and reading JSON costs as much as the rest of a row
        return []
    return [(name, _text(value)) for name, value in json.loads(properties).items()]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
