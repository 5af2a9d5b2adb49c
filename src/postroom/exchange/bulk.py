"""Sends a file of messages, in batches. Messages that were sent before are recognised by their content and not sent
again.

Each batch leaves a receipt in its commit: how many messages of the file are sent by then, and a digest of all of them.
So sending can continue after a kill, after later lines were corrected or added, and if the file was renamed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from postroom.exchange.message_files import Options, drafts, file_size
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


@dataclass(frozen=True, slots=True)
class SentFile:
    """The result of sending a file: how many messages now, and how many before."""

    file: str
    queue: str
    sent_count: int
    skipped_count: int

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass
class _Batch:
    end: int  # how many messages of the file are sent with it
    place: int  # about how many bytes of it
    digest: str  # of all of them
    drafts: list[Draft]

    def receipt(self, queue: str) -> str:
        return f"{_prefix(queue)}{self.end}:{self.digest}"


def send_file(
    store: Store,
    file: Path,
    options: Options,
    lock: Lock,
    put: Put,
    *,
    identity: str = "",
    progress: OnProgress | None = None,
) -> SentFile:
    """Send every message of a file, in order. At an invalid row it raises; the batches before it stay sent."""
    queue = store.transact("send-many", lock)
    begin = end = _sent_before(file, options, identity, _known(store, queue))
    sent, size = 0, file_size(file)
    for batch in _batches(file, options, identity, begin):
        sent, end = sent + _send(store, batch, lock, put), batch.end
        if progress is not None:
            progress(min(batch.place, size), size)
    return SentFile(str(file), queue, sent, end - sent)


def _send(store: Store, batch: _Batch, lock: Lock, put: Put) -> int:
    def work(tx: Transaction) -> int:
        name = batch.receipt(lock(tx))
        if tx.receipts.find(name, _FINGERPRINT) is not None:  # another process sends the same file
            return 0
        keys = put(tx, batch.drafts)
        tx.receipts.add(name, keys[0], _FINGERPRINT)
        return len(keys)

    return store.transact("send-many", work)


def _prefix(queue: str) -> str:
    return f"file:{queue}:"


def _known(store: Store, queue: str) -> dict[int, set[str]]:
    """How far files were sent to a queue: digests by number of messages."""
    first = _prefix(queue)
    known: dict[int, set[str]] = defaultdict(set)
    for name in store.read(lambda tx: tx.receipts.between(first, f"{first[:-1]};")):
        end, _, digest = name[len(first) :].partition(":")
        known[int(end)].add(digest)
    return known


def _sent_before(file: Path, options: Options, identity: str, known: dict[int, set[str]]) -> int:
    """How many messages of a file were sent before."""
    digest, begin = _digest(identity), 0
    for count, (_, draft) in enumerate(islice(drafts(file, options), max(known, default=0)), 1):
        digest.update(_said(draft))
        if count in known and digest.hexdigest() in known[count]:
            begin = count
    return begin


def _batches(file: Path, options: Options, identity: str, begin: int) -> Iterator[_Batch]:
    digest, batch, size, count, place = _digest(identity), list[Draft](), 0, 0, 0
    for count, (_, draft) in enumerate(drafts(file, options), 1):
        if count <= begin:
            digest.update(_said(draft))
            place += len(draft.body) + 1
            continue
        batch.append(draft)
        size += len(draft.body)
        if len(batch) >= BULK_MESSAGES or size >= BULK_BYTES:
            digest.update(b"".join(map(_said, batch)))
            place += size + len(batch)
            yield _Batch(count, place, digest.hexdigest(), batch)
            batch, size = [], 0
    if batch:
        digest.update(b"".join(map(_said, batch)))
        yield _Batch(count, place + size + len(batch), digest.hexdigest(), batch)


def _digest(identity: str) -> blake2b:
    return blake2b(identity.encode(), digest_size=16)


def _said(draft: Draft) -> bytes:
    body, form, type, properties = draft
    return f"{len(body)}\0{form}\0{type or ''}\0{properties}\0{body}".encode()
