"""The rows of static tables: from CSV, JSON or Parquet files, or from a collection of the room."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from postroom.errors import EventInvalid, FileUnreadable
from postroom.flows.language.definitions import Table
from postroom.flows.language.types import Tuple
from postroom.flows.language.values import as_json, decimal_of, fitted, label, object_of
from postroom.limits import COLLECTION_BYTES_MAX, TABLE_ROWS_MAX
from postroom.model.body import is_text
from postroom.model.paths import sent_text, why_unread
from postroom.model.xml import parse_xml

Rows = tuple[tuple[Any, ...], ...]


def rows_of_file(table: Table, file: Path, shown: str) -> Rows:
    """The rows of a file, as values of the table's type in JSON."""
    try:
        if sent_text(file) is None and file.stat().st_size > COLLECTION_BYTES_MAX:
            raise FileUnreadable(file=shown, why=f"it is larger than {COLLECTION_BYTES_MAX} bytes")
        return _rows(table, _READERS[file.suffix](file, columns(table)), shown)
    except KeyError:
        kinds = ", ".join(_READERS)
        raise FileUnreadable(file=shown, why=f"a table is read from {kinds}, not from {file.suffix!r}") from None
    except OSError as error:
        raise FileUnreadable(file=shown, why=why_unread(file, error)) from None
    except RecursionError:
        raise FileUnreadable(file=shown, why="it is nested too deeply") from None
    except (ValueError, csv.Error) as error:  # what Arrow raises for a damaged file is one, too
        raise FileUnreadable(file=shown, why=str(error).splitlines()[0]) from None


def rows_of_documents(table: Table, documents: Sequence[str]) -> Rows:
    """The rows of XML documents: every element that has a child for each column, the outermost first."""
    names = columns(table)
    rows: list[Mapping[str, Any]] = []
    for document in documents:
        todo = [parse_xml(document)]
        while todo:
            element = todo.pop()
            inside = {child.tag: (child.text or "").strip() for child in element}
            if all(name in inside for name in names):
                rows.append({name: inside[name] for name in names})
            else:
                todo += reversed(list(element))
    return _rows(table, rows, f"collection {table.source}")


def _rows(table: Table, given: Iterable[Mapping[str, Any]], shown: str) -> Rows:
    type, names, rows = _type(table), columns(table), []
    for number, row in enumerate(given, 1):
        if number > TABLE_ROWS_MAX:
            raise FileUnreadable(file=shown, why=f"it has more than {TABLE_ROWS_MAX} rows")
        missing = [name for name in names if row.get(name) is None]
        if missing:
            raise FileUnreadable(file=shown, why=f"row {number} has no {missing[0]}")
        values = {name: _plain(row[name], str(type.fields[place].type)) for place, name in enumerate(names)}
        try:
            value = fitted(values, type, f"table {table.name}")
        except EventInvalid as error:
            raise FileUnreadable(file=shown, why=f"row {number}: {error.facts['what']}") from None
        shape = as_json(value, type)
        rows.append(tuple(shape[name] for name in names))
    return tuple(rows)


def file_of_rows(table: Table, rows: Rows) -> bytes:
    """A file of a table's kind with these rows."""
    names = columns(table)
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    suffix = Path(table.source).suffix
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        file = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(objects), file)
        return bytes(file.getvalue())
    if suffix == ".csv":
        text = io.StringIO(newline="")
        csv.writer(text).writerows([names, *rows])
        return text.getvalue().encode()
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects).encode()


def _type(table: Table) -> Tuple:
    assert isinstance(table.type, Tuple), "a check sees to it"
    return table.type


def _plain(value: Any, type: str) -> Any:
    """A cell of a file as JSON data."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if not isinstance(value, str):
        return value if isinstance(value, (bool, int, Decimal)) or value is None else _text(value)
    if type in ("int", "float"):
        try:
            return decimal_of(value.strip())
        except ValueError:
            return value
    if type == "boolean" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return value


def _text(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def columns(table: Table) -> list[str]:
    """The names of a table's columns, in their order."""
    type = _type(table)
    return [label(type, place) for place in range(len(type.fields))]


def _text_of(file: Path) -> str:
    """The text of a file; raises if it is not UTF-8 text."""
    sent = sent_text(file)
    text = file.read_text("utf-8-sig") if sent is None else sent.removeprefix("\ufeff")
    if not text.strip():
        raise ValueError("it is empty")
    if not is_text(text):
        raise ValueError("it has characters that no text may have")
    return text


def _csv(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The first line names the columns, each once."""
    reader = csv.reader(io.StringIO(_text_of(file), newline=""), strict=True)
    names = next(reader)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"it has two columns {name!r}")
    for name in columns:
        if name not in names:
            raise ValueError(f"its first line names no column {name}")
    for cells in reader:
        if cells and len(cells) != len(names):
            raise ValueError(f"line {reader.line_num} has {len(cells)} cells, and there are {len(names)} columns")
        if cells:
            yield dict(zip(names, cells, strict=True))


def _json(file: Path, _: Sequence[str]) -> Iterator[dict[str, Any]]:
    """An array of objects, or one object per line."""
    text = _text_of(file)
    read = partial(json.loads, parse_float=decimal_of, object_pairs_hook=object_of)
    try:
        document = read(text)
    except ValueError:
        document = [read(line) for line in text.splitlines() if line.strip()]
    document = document if isinstance(document, list) else [document]
    for row in document:
        if not isinstance(row, dict):
            raise ValueError(f"{row!r} is not an object")
        yield row


def _parquet(file: Path, _: Sequence[str]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet

    if sent_text(file) is not None:
        raise ValueError("it is not text, and cannot be sent along")
    table = pyarrow.parquet.read_table(file)
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ValueError(f"it has two columns {name!r}")
    yield from table.to_pylist()


_READERS = {".csv": _csv, ".json": _json, ".jsonl": _json, ".parquet": _parquet}
