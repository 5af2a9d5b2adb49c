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
        """The one queue that a reference means, locked; also if it takes nothing now."""

    def box(self, tx: Transaction, station: str) -> Queue:
        """The mailbox of a station, locked."""

    def recipient(self, tx: Transaction, name: tuple[str, ...]) -> str:
        """The name of the queue that a reference, or a station's name, stands for."""

    def reach(self, tx: Transaction, name: str) -> Queue:
        """The queue of a name, which is a sphere's to use, locked; and it takes messages now."""

    def check(self, tx: Transaction, target: Queue, draft: Draft) -> None:
        """Refuse what the queue will never take."""

    def put(self, tx: Transaction, target: Queue, draft: Draft, cause: int | None = None) -> int:
        """Store a new message in a queue that was reached; answers with its key."""

    def receive(self, queue: tuple[str, ...], wait: float | None, within: Within) -> Message | None:
        """Take the next message of a queue or level, in one commit with what ``within`` does to it."""

    def works_on(self, target: Queue) -> bool:
        """Whether what enters a queue is worked on, so that a message cannot be moved there as it is."""

    def withdraw(self, tx: Transaction, queue: Queue, stored: Stored) -> None:
        """Let a message disappear that nobody has taken."""

    def recall(self, sphere: str, node: str) -> list[MadeAfar] | str:
        """Withdraw at another node what was made there in a failed sphere, in a commit of that node.

        Answers with all that was made there, or with why the node cannot do it now. Doing it again changes nothing.
        """
