"""How spheres use the queues of every capability: plain ones by the verbs, mailboxes by mail.

Most spheres have nothing to do with stations, which take longer to import than all else here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom.errors import MessageCorrupt
from postroom.model.message import Draft, Message, Stored
from postroom.queues.results import Received
from postroom.queues.verbs import Verbs
from postroom.spheres.access import Within
from postroom.stations.places.names import mailbox
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from postroom.stations.places.network import Network
    from postroom.store.tables.remote_spheres import MadeAfar


class SphereAccess:
    def __init__(self, verbs: Verbs, network: Callable[[], Network]) -> None:
        self._verbs = verbs
        self._network = network

    def find(self, tx: Transaction, queue: tuple[str, ...]) -> Queue:
        return self._verbs.find(tx, queue)

    def box(self, tx: Transaction, station: str) -> Queue:
        from postroom.stations.mail.posting import box

        return box(tx, station)

    def recipient(self, tx: Transaction, name: tuple[str, ...]) -> str:
        if len(name) == 1 and tx.queues.named_to_read(name[0]) is None and tx.nodes.home(name[0]) is not None:
            return mailbox(name[0])
        return self._verbs.find(tx, name).name

    def reach(self, tx: Transaction, name: str) -> Queue:
        prefix = mailbox("")
        return (
            self.box(tx, name.removeprefix(prefix)) if name.startswith(prefix) else self._verbs.find_open(tx, (name,))
        )

    def check(self, tx: Transaction, target: Queue, draft: Draft) -> None:
        if target.kind == MAILBOX:
            from postroom.stations.mail.posting import check

            check(tx, self._network().forms, draft)
        elif draft.type is not None:
            from postroom.store.tables.types import check_typed

            check_typed(tx, draft)

    def put(self, tx: Transaction, target: Queue, draft: Draft, cause: int | None = None) -> int:
        if target.kind == MAILBOX:
            from postroom.stations.mail.posting import post

            return post(tx, self._network().forms, target, draft, cause)
        return self._verbs.put(tx, target, [draft], cause)[0]

    def receive(self, queue: tuple[str, ...], wait: float | None, within: Within) -> Message | None:
        def both(tx: Transaction, take: Callable[[], Received | MessageCorrupt]) -> Received | MessageCorrupt:
            received: list[Received | MessageCorrupt] = []

            def taken() -> Message | None:
                received.append(take())
                return received[0].message if isinstance(received[0], Received) else None

            within(tx, taken)
            return received[0]

        return self._verbs.receive(queue, wait=wait, within=both).message

    def works_on(self, target: Queue) -> bool:
        return bool(target.admission) or target.kind == MAILBOX

    def withdraw(self, tx: Transaction, queue: Queue, stored: Stored) -> None:
        if queue.kind in (MAILBOX, STATION):
            from postroom.stations.places.desk import remove

            remove(tx, queue, stored)
        else:
            tx.messages.remove(queue, stored, "withdraw")

    def recall(self, sphere: str, node: str) -> list[MadeAfar] | str:
        from postroom.stations.mail.undoing import recall

        return recall(self._network(), sphere, node)
