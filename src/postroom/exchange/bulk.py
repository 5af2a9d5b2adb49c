"""Sends a file of messages, in batches. Messages that were sent before are recognised by their content and not sent
again.

Each batch leaves a receipt in its commit: how many messages of the file are sent by then, and a digest of all of them.
So sending can continue after a kill, after later lines were corrected or added, and if the file was renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from postroom.exchange.message_files import Options, file_size
from postroom.exchange.parts import Batch, FilePart, Reading, sent_before
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
class SentParts:
    """Which beginnings of files were sent to a queue."""

    queue: str
    parts: list[FilePart]


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
        return SentParts(queue, [FilePart(int(count), digest) for count, digest in parts])

    def send(self, batch: Batch) -> int:
        return self.send_part(batch.part, batch.drafts)

    def send_part(self, part: FilePart, drafts: Sequence[Draft]) -> int:
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
    known = intake.begin()
    begin = sent_before(file, options, identity, known.parts)
    size, sent, end = file_size(file), 0, begin

    def send(batch: Batch) -> None:
        nonlocal sent, end
        sent, end = sent + intake.send(batch), batch.part.message_count
        if progress is not None:
            progress(min(batch.place, size), size)

    read_ahead(Reading(file, options, identity, begin, intake.batch_messages, intake.batch_bytes), size, send)
    return SentFile(str(file), known.queue, sent, end - sent)
