"""What spheres need of queues. The room implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from postroom.model.message import Draft, Message, Stored
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar

#: Is given the transaction, and what takes the message in it.
Within = Callable[[Transaction, Callable[[], Message | None]], None]


class QueueAccess(Protocol):
    def find(self, tx: Transaction, queue: tuple[str, ...]) -> Queue:
        """The one queue of a reference, locked, even if on hold."""

    def box(self, tx: Transaction, station: str) -> Queue:
        """The mailbox of a station, locked."""

    def recipient(self, tx: Transaction, name: tuple[str, ...]) -> str:
        """The name of the queue for a reference or a station's name."""

    def reach(self, tx: Transaction, name: str) -> Queue:
        """The queue of a name for use by a sphere, locked; raises if it accepts no messages now."""

    def check(self, tx: Transaction, target: Queue, draft: Draft) -> None:
        """Raise for a draft that the queue would never accept."""

    def put(self, tx: Transaction, target: Queue, draft: Draft, cause: int | None = None) -> int:
        """Store a new message in a queue; returns its key."""

    def receive(self, queue: tuple[str, ...], wait: float | None, within: Within) -> Message | None:
        """Receive the next message of a queue or level, in one commit with what ``within`` does."""

    def works_on(self, target: Queue) -> bool:
        """Whether the messages of a queue are processed by the engine, so that they cannot be moved there unchanged."""

    def withdraw(self, tx: Transaction, queue: Queue, stored: Stored) -> None:
        """Remove an unread message."""

    def recall(self, sphere: str, node: str) -> list[MadeAfar] | str:
        """At another node, withdraw what was made there in a failed sphere, in a commit of that node.

        Returns all that was made there, or why the node cannot do it now. Idempotent.
        """
