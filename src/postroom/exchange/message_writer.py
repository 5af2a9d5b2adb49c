"""Writes the messages of a queue into a file for other programs: JSON lines, CSV or Parquet, as they are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from postroom.errors import ArgumentInvalid
from postroom.exchange.message_files import file_kind
from postroom.exchange.output_file import making, refuse_existing, written_whole
from postroom.limits import PAGE_ROWS
from postroom.model.message import Message
from postroom.model.moment import to_iso
from postroom.model.progress import OnProgress

#: In CSV and Parquet; the body is as it was sent.
COLUMNS = ("key", "queue", "type", "format", "created", "processed", "cause", "properties", "body")


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
    kind = file_kind(file)
    if kind == "lines":
        raise ArgumentInvalid(argument="file", why=f"messages are written as .jsonl, .csv or .parquet, not {file}")
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
                for message in counted:
                    stream.write(json.dumps(message.as_dict(), ensure_ascii=False) + "\n")
    return MessageFile(str(file), counted.sound, counted.damaged)


def _row(message: Message) -> tuple[str | None, ...]:
    properties = json.dumps(dict(message.properties), ensure_ascii=False)
    processed = None if message.processed is None else to_iso(message.processed)
    about = (message.key, message.queue, message.type, message.format.value, to_iso(message.created), processed)
    return (*about, message.cause, properties, message.body)


def _parquet(part: Path, messages: Iterable[Message]) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.string()) for name in COLUMNS])
    rows = map(_row, messages)
    with pyarrow.parquet.ParquetWriter(part, schema) as writer:
        while page := list(islice(rows, PAGE_ROWS)):
            columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*page, strict=True)]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))
