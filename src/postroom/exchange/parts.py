"""Divides a file of messages into batches. Each is sent in one commit.

A batch knows how many messages of the file there are up to its end, and a digest of all of them. This module needs no
store: a process that only reads files loads it in a third of the time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from postroom.errors import ArgumentInvalid
from postroom.exchange.message_files import Options, drafts
from postroom.limits import BULK_MESSAGES
from postroom.model.message import Draft

_DIGEST_BYTES = 16
_ROW = {"body", "format", "type", "properties"}


@dataclass(frozen=True, slots=True)
class FilePart:
    """A beginning of a file that was sent."""

    message_count: int
    digest: str  # of all of these messages

    @classmethod
    def checked(cls, message_count: int, digest: str) -> FilePart:
        """A part as a client of a server names it; raises if it is none."""
        if message_count < 1:
            raise ArgumentInvalid(argument="message_count", why="at least 1")
        if len(digest) != 2 * _DIGEST_BYTES or set(digest) - set("0123456789abcdef"):
            raise ArgumentInvalid(argument="digest", why=f"{2 * _DIGEST_BYTES} hexadecimal digits")
        return cls(message_count, digest)


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are sent in one commit."""

    part: FilePart  # of the file, up to their end
    place: int  # about how many bytes of it
    drafts: list[Draft]

    def rows(self) -> list[dict[str, Any]]:
        """The messages as JSON; ``read_rows`` is the other way."""
        return [
            {"body": body, "format": form, "type": type, "properties": json.loads(properties)}
            for body, form, type, properties in self.drafts
        ]


def read_rows(rows: Sequence[dict[str, Any]]) -> list[Draft]:
    if not 0 < len(rows) <= BULK_MESSAGES:
        raise ArgumentInvalid(argument="rows", why=f"1 to {BULK_MESSAGES:,} messages")
    for number, row in enumerate(rows, 1):
        if set(row) != _ROW or not isinstance(row["body"], str) or not isinstance(row["format"], str):
            raise ArgumentInvalid(argument="rows", why=f"row {number} does not have {', '.join(sorted(_ROW))}")
        if not isinstance(row["type"], (str, type(None))) or not isinstance(row["properties"], dict):
            raise ArgumentInvalid(argument="rows", why=f"the type or the properties of row {number}")
    return [Draft.of(row["body"], row["format"], row["type"], row["properties"]) for row in rows]


class Reading(NamedTuple):
    """What is read of a file, and how it is divided."""

    file: Path
    options: Options
    identity: str  # of the sender's choice: the same messages under another one are others
    begin: int  # so many messages are left out, because they were sent before
    batch_messages: int  # at most, in one commit
    batch_bytes: int


def sent_before(file: Path, options: Options, identity: str, parts: Sequence[FilePart]) -> int:
    """How many messages of a file were sent before."""
    known: dict[int, set[str]] = defaultdict(set)
    for part in parts:
        known[part.message_count].add(part.digest)
    digest, begin = _digest(identity), 0
    for count, (_, draft) in enumerate(islice(drafts(file, options), max(known, default=0)), 1):
        digest.update(_said(draft))
        if count in known and digest.hexdigest() in known[count]:
            begin = count
    return begin


def batches(reading: Reading) -> Iterator[Batch]:
    digest, batch, size, count, place = _digest(reading.identity), list[Draft](), 0, 0, 0
    for count, (_, draft) in enumerate(drafts(reading.file, reading.options), 1):
        if count <= reading.begin:
            digest.update(_said(draft))
            place += len(draft.body) + 1
            continue
        batch.append(draft)
        size += len(draft.body)
        if len(batch) >= reading.batch_messages or size >= reading.batch_bytes:
            digest.update(b"".join(map(_said, batch)))
            place += size + len(batch)
            yield Batch(FilePart(count, digest.hexdigest()), place, batch)
            batch, size = [], 0
    if batch:
        digest.update(b"".join(map(_said, batch)))
        yield Batch(FilePart(count, digest.hexdigest()), place + size + len(batch), batch)


def _digest(identity: str) -> blake2b:
    return blake2b(identity.encode(), digest_size=_DIGEST_BYTES)


def _said(draft: Draft) -> bytes:
    body, form, type, properties = draft
    return f"{len(body)}\0{form}\0{type or ''}\0{properties}\0{body}".encode()
