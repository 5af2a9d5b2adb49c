"""How spheres reach the queues of others: through the same doors as every sender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from postroom.model.message import Draft
from postroom.store.queues import Queue
from postroom.store.transaction import Transaction


class Entrance(Protocol):
    def find(self, tx: Transaction, queue: tuple[str, ...]) -> Queue:
        """The one queue that a reference means, locked; also if it takes nothing now."""

    def admit(self, tx: Transaction, queue: tuple[str, ...]) -> Queue:
        """The same, and it takes messages now."""

    def put(self, tx: Transaction, target: Queue, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store new messages in a queue that was admitted to."""
