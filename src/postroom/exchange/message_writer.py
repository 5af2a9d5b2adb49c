"""Writes the messages of a queue into a file for other programs: JSON lines, CSV or Parquet, as they are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from postroom.errors import ArgumentInvalid
from postroom.exchange.output_file import making, refuse_existing, written_whole
from postroom.limits import BULK_BYTES, BULK_MESSAGES, PAGE_ROWS
from postroom.model.body import Format
from postroom.model.digits import digits_json
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, Message
from postroom.model.moment import iso_of
from postroom.model.place import place_of
from postroom.model.progress import OnProgress

#: In CSV and Parquet; the body is as it was sent.
COLUMNS = ("key", "queue", "type", "format", "created", "processed", "cause", "properties", "body")
_KINDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_Row = tuple[str, str, str | None, str, str, str | None, str | None, str, str]


@dataclass(frozen=True, slots=True)
class MessageFile:
    """The result of an export of messages."""

    file: str
    message_count: int
    damaged_count: int  # messages that do not match their hash are not in it

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class _Counted:
    """Counts messages while they are written."""

    def __init__(self, messages: Iterable[Message], total: int, progress: OnProgress | None) -> None:
        self._messages = messages
        self._total = total
        self._progress = progress
        self.sound = self.damaged = 0

    def __iter__(self) -> Iterator[Message]:
        for message in self._messages:
            if message.corrupt:
                self.damaged += 1
                continue
            yield message
            self.sound += 1
            if self._progress is not None and self.sound % PAGE_ROWS == 0:
                self._progress(min(self.sound, self._total), self._total)


def export_messages(
    messages: Iterable[Message], total: int, file: Path, *, replace: bool = False, progress: OnProgress | None = None
) -> MessageFile:
    """Write messages to a file. The file appears complete or not at all."""
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        raise ArgumentInvalid(argument="file", why=f"{file}: messages are written as .jsonl, .csv or .parquet")
    refuse_existing(file, replace)
    counted = _Counted(messages, total, progress)
    if kind == "parquet":
        with making(file) as part:
            _parquet(part, counted)
    else:
        with written_whole(file) as stream:
            if kind == "csv":
                rows = csv.writer(stream, lineterminator="\n")
                rows.writerow(COLUMNS)
                rows.writerows(map(_row, counted))
            else:
                stream.writelines(map(_line, counted))
    return MessageFile(str(file), counted.sound, counted.damaged)


_text = json.JSONEncoder(ensure_ascii=False).encode


def _line(message: Message) -> str:
    """A message as ``as_dict`` has it. JSON within a line stays as it was sent: that takes a third of the time."""
    body = message.body
    if message.format is not Format.JSON or message.blocked or "\n" in body or "\r" in body:
        return f"{digits_json(message.as_dict())}\n"
    stored = message._stored
    processed = "null" if stored.processed is None else f'"{iso_of(stored.processed)}"'
    return (
        f'{{"key": "{key_text(stored.key)}", "queue": {_queue_text(stored.queue)}, '
        f'"type": {_text_or_null(stored.type)}, "format": "json", "body": {body}, '
        f'"properties": {_properties(message)}, "created": "{iso_of(stored.created)}", "processed": {processed}, '
        f'"cause": {_text_or_null(message.cause)}}}\n'
    )


@lru_cache(16)
def _queue_text(queue: str) -> str:
    return _text(place_of(queue))


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else _text(text)


def _row(message: Message) -> _Row:
    stored = message._stored
    return (
        message.key,
        message.queue,
        message.type,
        message.format.value,
        iso_of(stored.created),
        None if stored.processed is None else iso_of(stored.processed),
        message.cause,
        _properties(message),
        message.body,
    )


def _properties(message: Message) -> str:
    properties = message.properties
    return _text(dict(properties)) if properties else NO_PROPERTIES


def _parquet(part: Path, messages: Iterable[Message]) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.string()) for name in COLUMNS])
    with pyarrow.parquet.ParquetWriter(part, schema) as writer:
        for rows in _groups(map(_row, messages)):
            columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))


def _groups(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Rows that are written together: each group costs a file a header, and memory until it is written."""
    group, size = list[_Row](), 0
    for row in rows:
        group.append(row)
        size += len(row[-1])
        if len(group) >= BULK_MESSAGES or size >= BULK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
