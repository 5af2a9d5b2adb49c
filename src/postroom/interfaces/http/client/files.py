"""A queue behind a server that a file is sent to, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.exchange.bulk import SentParts
from postroom.exchange.parts import Batch
from postroom.interfaces.http.client.link import RemoteVerbs
from postroom.limits import BULK_LINES, REQUEST_BYTES_MAX


class RemoteIntake:
    """Repeating a batch whose answer was lost sends nothing twice: the server knows which parts it has."""

    def __init__(self, parts: RemoteVerbs, queue: Sequence[str]) -> None:
        self.batch_messages, self.batch_bytes = BULK_LINES, REQUEST_BYTES_MAX // 8
        self._parts = parts
        self._queue = queue

    def begin(self) -> SentParts:
        begun: SentParts = self._parts.verb("queues.sent_parts", queue=self._queue)
        return begun

    def send(self, batch: Batch) -> int:
        part = {"message_count": batch.part.message_count, "digest": batch.part.digest}
        sent: int = self._parts.verb("queues.send_part", queue=self._queue, rows=batch.rows(), **part)
        return sent
