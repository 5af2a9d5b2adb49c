"""How spheres use the queues of every capability: plain ones by the verbs, mailboxes by mail."""

from __future__ import annotations

from collections.abc import Callable

from postroom.errors import MessageCorrupt
from postroom.model.message import Draft, Message, Stored
from postroom.queues.results import Received
from postroom.queues.verbs import Verbs
from postroom.spheres.access import Within
from postroom.stations.mail import posting
from postroom.stations.mail.undoing import recall
from postroom.stations.places import desk
from postroom.stations.places.names import mailbox
from postroom.stations.places.network import Network
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar
from postroom.store.tables.types import check_typed


class SphereAccess:
    def __init__(self, verbs: Verbs, network: Network) -> None:
        self._verbs = verbs
        self._network = network
        self._forms = network.forms

    def find(self, tx: Transaction, queue: tuple[str, ...]) -> Queue:
        return self._verbs.find(tx, queue)

    def box(self, tx: Transaction, station: str) -> Queue:
        return posting.box(tx, station)

    def recipient(self, tx: Transaction, name: tuple[str, ...]) -> str:
        if len(name) == 1 and tx.queues.named_to_read(name[0]) is None and tx.nodes.home(name[0]) is not None:
            return mailbox(name[0])
        return self._verbs.find(tx, name).name

    def reach(self, tx: Transaction, name: str) -> Queue:
        prefix = mailbox("")
        return (
            posting.box(tx, name.removeprefix(prefix))
            if name.startswith(prefix)
            else self._verbs.find_open(tx, (name,))
        )

    def check(self, tx: Transaction, target: Queue, draft: Draft) -> None:
        if target.kind == MAILBOX:
            posting.check(tx, self._forms, draft)
        elif draft.type is not None:
            check_typed(tx, draft)

    def put(self, tx: Transaction, target: Queue, draft: Draft, cause: int | None = None) -> int:
        if target.kind == MAILBOX:
            return posting.post(tx, self._forms, target, draft, cause)
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
            desk.remove(tx, queue, stored)
        else:
            tx.messages.remove(queue, stored, "withdraw")

    def recall(self, sphere: str, node: str) -> list[MadeAfar] | str:
        return recall(self._network, sphere, node)
