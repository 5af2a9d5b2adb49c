"""Sends a file of messages, in batches. Messages that were sent before are recognised by their content and not sent
again.

Each batch leaves a receipt in its commit: how many messages of the file are sent by then, and a digest of all of them.
So sending can continue after a kill, after later lines were corrected or added, and if the file was renamed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from postroom.errors import ArgumentInvalid
from postroom.exchange.message_files import Options, drafts, file_size
from postroom.exchange.reading_ahead import read_ahead
from postroom.limits import BULK_BYTES, BULK_MESSAGES
from postroom.model.message import Draft
from postroom.model.progress import OnProgress
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

#: Locks the one queue that the messages go to, and answers with its name.
Lock = Callable[[Transaction], str]
#: Lets messages into it, as a send does.
Put = Callable[[Transaction, Sequence[Draft]], Sequence[int]]
_FINGERPRINT = b"file"
_DIGEST_BYTES = 16
_ROW = {"body", "format", "type", "properties"}


@dataclass(frozen=True, slots=True)
class SentFile:
    """The result of sending a file: how many messages now, and how many before."""

    file: str
    queue: str
    sent_count: int
    skipped_count: int

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Part:
    """A beginning of a file that was sent."""

    message_count: int
    digest: str  # of all of these messages

    @classmethod
    def checked(cls, message_count: int, digest: str) -> Part:
        """A part as a client of a server names it; raises if it is none."""
        if message_count < 1:
            raise ArgumentInvalid(argument="message_count", why="at least 1")
        if len(digest) != 2 * _DIGEST_BYTES or set(digest) - set("0123456789abcdef"):
            raise ArgumentInvalid(argument="digest", why=f"{2 * _DIGEST_BYTES} hexadecimal digits")
        return cls(message_count, digest)


@dataclass(frozen=True, slots=True)
class SentParts:
    """Which beginnings of files were sent to a queue."""

    queue: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are sent in one commit."""

    part: Part  # of the file, up to their end
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


class Intake(Protocol):
    """The queue that a file is sent to."""

    batch_messages: int  # at most, in one commit
    batch_bytes: int

    def begin(self) -> SentParts: ...
    def send(self, batch: Batch) -> int:
        """Returns how many messages were sent: none, if another process has sent the same."""
        ...


class StoreIntake:
    """A queue of this store. Each user of a server sends files of their own; a local room has no user."""

    def __init__(self, store: Store, lock: Lock, put: Put, user: str = "") -> None:
        self.batch_messages, self.batch_bytes = BULK_MESSAGES, BULK_BYTES
        self._store = store
        self._lock = lock
        self._put = put
        self._user = user

    def begin(self) -> SentParts:
        queue = self._store.transact("send-many", self._lock)
        first = self._prefix(queue)
        names = self._store.read(lambda tx: tx.receipts.between(first, f"{first[:-1]};"))
        parts = (name[len(first) :].split(":") for name in names)
        return SentParts(queue, [Part(int(count), digest) for count, digest in parts])

    def send(self, batch: Batch) -> int:
        return self.send_part(batch.part, batch.drafts)

    def send_part(self, part: Part, drafts: Sequence[Draft]) -> int:
        def work(tx: Transaction) -> int:
            name = f"{self._prefix(self._lock(tx))}{part.message_count}:{part.digest}"
            if tx.receipts.find(name, _FINGERPRINT) is not None:  # another process sends the same file
                return 0
            keys = self._put(tx, drafts)
            tx.receipts.add(name, keys[0], _FINGERPRINT)
            return len(keys)

        return self._store.transact("send-many", work)

    def _prefix(self, queue: str) -> str:
        return f"{self._user}//file:{queue}:" if self._user else f"file:{queue}:"


def send_file(
    intake: Intake, file: Path, options: Options, *, identity: str = "", progress: OnProgress | None = None
) -> SentFile:
    """Send every message of a file, in order. At an invalid row it raises; the batches before it stay sent."""
    sent_before = intake.begin()
    begin = end = _sent_before(file, options, identity, sent_before.parts)
    sent, size = 0, file_size(file)
    with read_ahead(_batches(file, options, identity, begin, intake)) as batches:
        for batch in batches:
            sent, end = sent + intake.send(batch), batch.part.message_count
            if progress is not None:
                progress(min(batch.place, size), size)
    return SentFile(str(file), sent_before.queue, sent, end - sent)


def _sent_before(file: Path, options: Options, identity: str, parts: Sequence[Part]) -> int:
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


def _batches(file: Path, options: Options, identity: str, begin: int, intake: Intake) -> Iterator[Batch]:
    digest, batch, size, count, place = _digest(identity), list[Draft](), 0, 0, 0
    for count, (_, draft) in enumerate(drafts(file, options), 1):
        if count <= begin:
            digest.update(_said(draft))
            place += len(draft.body) + 1
            continue
        batch.append(draft)
        size += len(draft.body)
        if len(batch) >= intake.batch_messages or size >= intake.batch_bytes:
            digest.update(b"".join(map(_said, batch)))
            place += size + len(batch)
            yield Batch(Part(count, digest.hexdigest()), place, batch)
            batch, size = [], 0
    if batch:
        digest.update(b"".join(map(_said, batch)))
        yield Batch(Part(count, digest.hexdigest()), place + size + len(batch), batch)


def _digest(identity: str) -> blake2b:
    return blake2b(identity.encode(), digest_size=_DIGEST_BYTES)


def _said(draft: Draft) -> bytes:
    body, form, type, properties = draft
    return f"{len(body)}\0{form}\0{type or ''}\0{properties}\0{body}".encode()
