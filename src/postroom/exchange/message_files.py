"""Messages in files of other programs: JSON lines, CSV, Parquet, and lines of text. Read as a stream."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

from postroom.errors import ArgumentInvalid, BodyError, FileLineInvalid, FileUnreadable, JsonMalformed
from postroom.limits import BODY_BYTES_MAX
from postroom.model.body import Format, check_body, check_text, json_text, parse_json
from postroom.model.digits import digits_json
from postroom.model.message import NO_PROPERTIES, Draft, given_properties

_LINE_CHARS_MAX = BODY_BYTES_MAX + 64 * 1024  # a body, and what is around it
_KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".txt": "lines",
}
#: What a message has in a file of whole messages; what else an export writes is not for the reader to say.
_OURS = {"body", "format", "type", "properties"}
_OTHERS = {"key", "queue", "created", "processed", "cause", "status"}


class Options(NamedTuple):
    """How to turn the rows of a file into messages."""

    format: Format | None = None
    type: str | None = None
    properties: str = NO_PROPERTIES
    messages: bool = False  # a row is a whole message, as an export writes it
    delimiter: str | None = None  # what parts the columns of a .csv; None is a comma


def file_kind(file: Path) -> str:
    """The kind of a file, by its name."""
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        raise ArgumentInvalid(argument="file", why=f"{file}: a name ends in {', '.join(_KINDS)}")
    return kind


def file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise FileUnreadable(file=str(file), why=error.strerror or str(error)) from error


def drafts(file: Path, options: Options) -> Iterator[tuple[int, Draft]]:
    """The messages of a file with their line numbers (rows, in Parquet); raises at the first invalid one."""
    kind = file_kind(file)
    if options.format is not None and kind != "lines":
        raise ArgumentInvalid(argument="format", why=f"rows of {file.suffix} are JSON; only lines of .txt may be XML")
    if options.messages and kind != "jsonl":
        raise ArgumentInvalid(argument="messages", why="whole messages are in .jsonl files, as export writes them")
    if options.delimiter is not None and kind != "csv":
        raise ArgumentInvalid(argument="delimiter", why=f"it parts the columns of .csv; this is {file.suffix}")
    rows, draft = _READERS[kind]
    number = 0
    try:
        for number, row in rows(file, options):
            yield number, draft(row, options)
    except BodyError as error:
        raise FileLineInvalid(file=str(file), line=number, why=str(error)) from error
    except UnicodeDecodeError as error:
        raise FileUnreadable(file=str(file), why=f"after line {number} it is not UTF-8") from error
    except OSError as error:
        raise FileUnreadable(file=str(file), why=error.strerror or str(error)) from error


def records(file: Path) -> list[dict[str, Any]]:
    """The rows of a file as form fields: an empty CSV cell is an empty field."""
    batch = []
    for number, draft in drafts(file, Options()):
        row = parse_json(draft.body, exact=True) if draft.format == "json" else None
        if not isinstance(row, dict):
            raise FileLineInvalid(file=str(file), line=number, why="a form is filled in from an object with its fields")
        batch.append({name: value for name, value in row.items() if value != ""} if file_kind(file) == "csv" else row)
    return batch


def _lines(file: Path, _: Options) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8-sig", newline="\n") as stream:
        number = 0
        while line := stream.readline(_LINE_CHARS_MAX):
            number += 1
            if len(line) == _LINE_CHARS_MAX:
                raise FileLineInvalid(
                    file=str(file), line=number, why=f"it is longer than {_LINE_CHARS_MAX} characters"
                )
            yield number, line.rstrip("\r\n")


def _json_lines(file: Path, options: Options) -> Iterator[tuple[int, str]]:
    for number, line in _lines(file, options):
        if text := line.strip():
            yield number, text


def _json_draft(text: str, options: Options) -> Draft:
    if options.messages:
        return _whole(parse_json(text, digits=True), options)
    parse_json(text)
    check_text(text)
    return Draft(text, "json", options.type, options.properties)


def _whole(given: Any, options: Options) -> Draft:
    """A message as an export writes it, with body, format, type and properties. It gets a new key."""
    if not isinstance(given, dict) or "body" not in given or given.keys() - _OURS - _OTHERS:
        raise JsonMalformed(why="a message is an object with body, format, type and properties")
    form, body = given.get("format"), given["body"]
    text = digits_json(body, (",", ":")) if form in (None, "json") else body
    properties = given.get("properties") or {}
    if not isinstance(text, str) or not isinstance(properties, dict):
        raise JsonMalformed(why="a body of text or XML is a string, and properties are an object")
    draft = Draft.of(text, form or Format.JSON, given.get("type") or options.type)
    return draft._replace(properties=given_properties({k: v for k, v in properties.items() if k != "sphere"}))


def _text_draft(text: str, options: Options) -> Draft:
    check_body(text, form := options.format or Format.TEXT)
    return Draft(text, form.value, options.type, options.properties)


#: What parts the columns where a comma is the decimal point, and in texts copied from a table.
_OTHER_DELIMITERS = ";\t|"
#: A string as ``json_text`` writes it. A row of strings is put together of them in half of the time.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def _csv_rows(file: Path, options: Options) -> Iterator[tuple[int, str]]:
    """Each row as the JSON text of an object."""
    delimiter = _checked_delimiter(options.delimiter)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True, delimiter=delimiter)
        try:
            names = next(reader, [])
            if options.delimiter is None and len(names) == 1 and set(names[0]) & set(_OTHER_DELIMITERS):
                why = f"it has one column, {names[0]!r}; name what parts the columns: --delimiter ';'"
                raise FileLineInvalid(file=str(file), line=1, why=why)
            if len(set(names)) != len(names) or not all(names):
                raise FileLineInvalid(file=str(file), line=1, why="the names of columns are not all different")
            heads = [f"{_quoted(name)}:" for name in names]
            for row in filter(None, reader):
                if len(row) != len(names):
                    why = f"it has {len(row)} values, and there are {len(names)} columns"
                    raise FileLineInvalid(file=str(file), line=reader.line_num, why=why)
                yield reader.line_num, f"{{{','.join(map(add, heads, map(_quoted, row)))}}}"
        except csv.Error as error:
            raise FileLineInvalid(file=str(file), line=reader.line_num, why=str(error)) from error


def _checked_delimiter(delimiter: str | None) -> str:
    if delimiter is None:
        return ","
    if len(delimiter) != 1 or delimiter in '"\r\n' or not (delimiter.isprintable() or delimiter == "\t"):
        raise ArgumentInvalid(argument="delimiter", why="one character, such as ';' or a tab")
    return delimiter


def _row_draft(row: dict[str, Any], options: Options) -> Draft:
    return _object_draft(json_text(row), options)


def _object_draft(body: str, options: Options) -> Draft:
    check_text(body)
    return Draft(body, "json", options.type, options.properties)


def _parquet_rows(file: Path, _: Options) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(file) as source:
            for batch in source.iter_batches(batch_size=1_000):
                for row in batch.to_pylist():
                    number += 1
                    yield number, _plain(row)
    except pyarrow.ArrowException as error:
        raise FileUnreadable(file=str(file), why=str(error)) from error


def _plain(value: Any) -> Any:
    """An Arrow value as JSON; values that JSON cannot represent exactly become strings."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return value


_READERS: Mapping[str, tuple[Callable[[Path, Options], Iterator[tuple[int, Any]]], Callable[[Any, Options], Draft]]] = {
    "jsonl": (_json_lines, _json_draft),
    "csv": (_csv_rows, _object_draft),
    "parquet": (_parquet_rows, _row_draft),
    "lines": (_lines, _text_draft),
}
