"""Files of rows: CSV, Parquet and Avro to and from bodies of events. JSON has an event per line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from postroom.errors import EventInvalid
from postroom.flows.language.outside import JSON
from postroom.flows.language.types import Scalar, Tuple, Type
from postroom.flows.language.values import canonical, fitted, parse_event
from postroom.limits import BODY_BYTES_MAX, STREAM_FILE_BYTES_MAX

#: How the names of files end that a source reads.
ENDINGS: Mapping[str, tuple[str, ...]] = {
    JSON: ("json", "jsonl", "ndjson"),
    "csv": ("csv",),
    "parquet": ("parquet",),
    "avro": ("avro",),
}
_SHOWN = 2_000  # characters of what does not fit
_AVRO = {"int": "long", "boolean": "boolean", "float": "double"}


class Row(NamedTuple):
    """A row of a file: the event, or its text and the reason why it is none."""

    body: str
    problem: str | None = None


def admitted(line: str, type: Type, space: str) -> Row:
    """A line as an event."""
    try:
        body = canonical(parse_event(line, type, space), type)
    except EventInvalid as error:
        return Row(line[:_SHOWN], _one_line(error))
    if len(body) > BODY_BYTES_MAX // 4 and len(body.encode()) > BODY_BYTES_MAX:
        return Row(line[:_SHOWN], f"the event is larger than {BODY_BYTES_MAX} bytes")
    return Row(body)


def rows_of(content: bytes, format: str, type: Type, space: str) -> Iterator[Row]:
    """The rows of a file. If it cannot be read further, one problem follows the rows so far."""
    if len(content) > STREAM_FILE_BYTES_MAX:
        yield Row("", f"the file is larger than {STREAM_FILE_BYTES_MAX} bytes")
        return
    try:
        for given in _READERS[format](content, type):
            yield _fitted(given, type, space)
    except Exception as error:  # whatever a library makes of a damaged file
        yield Row("", f"the file is not {format}, or damaged: {_one_line(error)}")


def _fitted(given: Mapping[Any, Any], type: Type, space: str) -> Row:
    try:
        plain = {str(name): _plain(value) for name, value in given.items()}
        return Row(canonical(fitted(plain, type, space), type))
    except (EventInvalid, ValueError) as error:
        as_read = {str(name): value for name, value in given.items()}
        return Row(json.dumps(as_read, default=str, ensure_ascii=False)[:_SHOWN], _one_line(error))


def _plain(value: Any) -> Any:
    """A value of a file as JSON data."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return Decimal(repr(value))
    return value


def _csv_rows(content: bytes, type: Type) -> Iterator[Mapping[Any, Any]]:
    assert isinstance(type, Tuple)
    kinds = {field.name: field.type for field in type.fields}
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    for row in reader:
        if None in row:
            row["more than the header has"] = str(row.pop(None))
        yield {name: _csv_value(text, kinds.get(name)) for name, text in row.items() if text is not None}


def _csv_value(text: str, type: Type | None) -> Any:
    name = type.name if isinstance(type, Scalar) else ""
    if name in ("int", "float"):
        return json.loads(text, parse_float=Decimal) if _is_number(text) else text
    return {"true": True, "false": False}.get(text, text) if name == "boolean" else text


def _is_number(text: str) -> bool:
    try:
        return type(json.loads(text)) in (int, float)
    except ValueError:
        return False


def _parquet_rows(content: bytes, type: Type) -> Iterator[Mapping[Any, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches():
        yield from batch.to_pylist()


def _avro_rows(content: bytes, type: Type) -> Iterator[Mapping[Any, Any]]:
    import fastavro

    for row in fastavro.reader(io.BytesIO(content)):
        if not isinstance(row, Mapping):
            raise ValueError("its rows are no records")
        yield row


_READERS = {"csv": _csv_rows, "parquet": _parquet_rows, "avro": _avro_rows}


# --- writing ------------------------------------------------------------------------------------------------------


def write(file: Path, bodies: Iterable[str], format: str, type: Type) -> None:
    """Write events to a file of a format."""
    if format == JSON:
        with file.open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(f"{body}\n" for body in bodies)
        return
    assert isinstance(type, Tuple)
    names = [str(field.name) for field in type.fields]
    if format == "csv":
        with file.open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_csv_text(row[name]) for name in names] for row in map(json.loads, bodies))
        return
    values = (dict(zip(names, parse_event(body, type, "the sink"), strict=True)) for body in bodies)
    _WRITERS[format](file, values, type)


def _csv_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write_parquet(file: Path, values: Iterable[dict[str, Any]], type: Tuple) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "int": pa.int64(),
        "boolean": pa.bool_(),
        "float": pa.float64(),
        "decimal": pa.decimal128(38, 18),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema([(field.name, kinds.get(str(field.type), pa.string())) for field in type.fields])
    pq.write_table(pa.Table.from_pylist(list(values), schema), file)


def _write_avro(file: Path, values: Iterable[dict[str, Any]], type: Tuple) -> None:
    import fastavro

    logical = {
        "date": {"type": "int", "logicalType": "date"},
        "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    }
    fields = [
        {"name": field.name, "type": logical.get(str(field.type), _AVRO.get(str(field.type), "string"))}
        for field in type.fields
    ]
    texts = [str(field.name) for field in type.fields if str(field.type) == "decimal"]
    rows = ({**value, **{name: format(value[name], "f") for name in texts}} for value in values)
    with file.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "event", "fields": fields}, rows)


_WRITERS = {"parquet": _write_parquet, "avro": _write_avro}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN] or type(error).__name__
