"""Messages as a table: for Arrow, pandas, Polars and DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from postroom.errors import LibraryMissing
from postroom.model.body import Format, json_text
from postroom.model.html_table import html_table
from postroom.model.message import Message

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: What every message has besides its body.
_ABOUT = ("key", "queue", "created")


class Table:
    """Rows of messages in Arrow. DuckDB and Polars accept it directly."""

    name: str

    def __init__(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        import pyarrow

        self.name = name
        self._table = pyarrow.table({column: _array(values) for column, values in columns.items()})

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._table.column_names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def arrow(self) -> pyarrow.Table:
        """As a table of Arrow."""
        return self._table

    def pandas(self) -> pandas.DataFrame:
        """As a frame of pandas, with Arrow's types."""
        library = _library("pandas")
        return self._table.to_pandas(types_mapper=library.ArrowDtype)

    def polars(self) -> Any:
        """As a frame of Polars, if it is installed."""
        return _library("polars").from_arrow(self._table)

    def _repr_html_(self) -> str:
        rows = (row.values() for row in self._table.slice(0, 100).to_pylist())
        return html_table(self.name, self.columns, map(tuple, rows), len(self))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise LibraryMissing(library=name) from error


def table_of_messages(name: str, messages: Iterable[Message]) -> Table:
    """A row for each message.

    If all bodies are JSON objects, their members become columns; else there is a body column.
    """
    sound = [message for message in messages if not message.corrupt]
    columns: dict[str, list[Any]] = {
        "key": [message.key for message in sound],
        "queue": [message.queue for message in sound],
        "created": [message.created for message in sound],
    }
    values: list[Any] = [message.value if message.format is Format.JSON else None for message in sound]
    if not sound or not all(isinstance(value, dict) for value in values):
        return Table(name, {**columns, "body": [message.body for message in sound]})
    for member in dict.fromkeys(member for value in values for member in value):
        column = f"body.{member}" if member in _ABOUT else member
        columns[column] = [value.get(member) for value in values]
    return Table(name, columns)


def _array(values: Sequence[Any]) -> Any:
    """A column with the common type of its values; with several types, their texts."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if value is None else _text(value) for value in values], pyarrow.string())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
