"""Reads a large file in a child process, while this one stores what was read before.

``python -m postroom.exchange.reading_ahead`` is that process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from postroom import errors
from postroom.engine.bounded_process import BoundedProcesses, Ended, attend
from postroom.errors import FileUnreadable, PostroomError
from postroom.exchange.message_files import Options
from postroom.exchange.parts import Batch, FilePart, Reading, batches
from postroom.limits import READ_AHEAD_BYTES
from postroom.model.body import Format
from postroom.model.message import Draft

_readers = BoundedProcesses("postroom.exchange.reading_ahead")


def read_ahead(reading: Reading, size: int, use: Callable[[Batch], None]) -> None:
    """Hand each batch of a file of so many bytes to ``use``, in order; raise what its reader raises."""
    if size < READ_AHEAD_BYTES:  # starting a process would take longer
        for batch in batches(reading):
            use(batch)
        return
    try:
        told = _readers.ask(_request(reading), lambda news: use(_unpacked(news)), tries=1)
    except Ended:
        raise FileUnreadable(file=str(reading.file), why="the process that read it was killed") from None
    if told:
        code, facts = json.loads(told)
        raise getattr(errors, code)(**facts)


def _request(reading: Reading) -> bytes:
    file, options, *rest = reading
    return json.dumps([os.getcwd(), str(file), options, *rest]).encode()


def _asked(request: bytes) -> Reading:
    folder, file, (form, *options), *rest = json.loads(request)
    os.chdir(folder)  # messages tell the path as it was given
    return Reading(Path(file), Options(Format(form) if form else None, *options), *rest)


def _packed(batch: Batch) -> bytes:
    """A line of JSON, then all bodies: they are most of it, and are neither written nor read as JSON."""
    bodies, *columns = zip(*batch.drafts, strict=True)
    head = [batch.part.message_count, batch.part.digest, batch.place, list(map(len, bodies)), columns]
    return f"{json.dumps(head)}\n{''.join(bodies)}".encode()


def _unpacked(packed: bytes) -> Batch:
    head, _, text = packed.decode().partition("\n")
    message_count, digest, place, sizes, columns = json.loads(head)
    bodies = [text[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
    drafts = list(map(Draft._make, zip(bodies, *columns, strict=True)))
    return Batch(FilePart(message_count, digest), place, drafts)


def _answer(request: bytes, tell: Callable[[bytes], Any]) -> bytes:
    try:
        for batch in batches(_asked(request)):
            tell(_packed(batch))
    except PostroomError as error:
        return json.dumps([type(error).__name__, error.facts]).encode()
    return b""


if __name__ == "__main__":
    attend(_answer, lambda request: None)
