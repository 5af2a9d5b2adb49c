"""Messages as the rows of a Spark table: the columns, and Arrow batches of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from postroom.errors import ArgumentInvalid, MessageUnsound
from postroom.model.key import key_text
from postroom.store.scans import Found

STATES = ("processed", "unprocessed")

#: Each column with its type in Spark's words and what stands in it.
COLUMNS: dict[str, tuple[str, Callable[[Found], Any]]] = {
    "key": ("string", lambda found: key_text(found.stored.key)),
    "queue": ("string", lambda found: found.stored.queue),
    "type": ("string", lambda found: found.stored.type),
    "format": ("string", lambda found: found.stored.format),
    "body": ("string", lambda found: found.stored.body),
    "properties": ("map<string,string>", lambda found: _texts(found.stored.properties)),
    "created": ("timestamp", lambda found: found.stored.created),
    "processed": ("timestamp", lambda found: found.stored.processed),
    "cause": ("string", lambda found: None if found.stored.cause is None else key_text(found.stored.cause)),
    "state": ("string", lambda found: STATES[found.state]),
}
SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())


class Frames:
    """Makes Arrow batches with the columns that a reader asked for."""

    def __init__(self, schema: StructType, corrupt: str) -> None:
        for field in schema.fields:
            kind = COLUMNS[field.name][0] if field.name in COLUMNS else None
            if field.dataType.simpleString() != kind:
                why = f"a message has no {field.name} {field.dataType.simpleString()}; it has {SCHEMA}"
                raise ArgumentInvalid(argument="schema", why=why)
        self._schema = schema
        self._skip = corrupt == "skip"

    def batch(self, found: Iterable[Found]) -> pyarrow.RecordBatch:
        """One batch; a message that no longer says what was sent ends the reading, or is left out if so wished."""
        sound = [each for each in found if self._is_sound(each)]
        columns = {name: [COLUMNS[name][1](each) for each in sound] for name in self._schema.fieldNames()}
        return pyarrow.RecordBatch.from_pydict(columns, schema=to_arrow_schema(self._schema, timezone="UTC"))

    def _is_sound(self, found: Found) -> bool:
        if found.stored.sound:
            return True
        if not self._skip:
            raise MessageUnsound(key=key_text(found.stored.key), queue=found.stored.queue)
        return False


def _texts(properties: str) -> list[tuple[str, str | None]]:
    """Properties by name, every value as text: a column of a table has one type."""
    return [(name, _text(value)) for name, value in json.loads(properties).items()]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
