"""Undo at another node: what procedures made there of the messages of a sphere that has failed.

The control node knows which nodes a sphere has come to, each node what was made there. First the node notes that the
sphere has failed, and withdraws what nobody has touched, in one commit; then the control node notes in its own commit
what became of it. A crash in between is no harm: the node answers the same again.
"""

from __future__ import annotations

from postroom.errors import NodeDown, NodeUnknown
from postroom.limits import NODE_SECONDS
from postroom.stations.mail.mail import recover
from postroom.stations.places import desk
from postroom.stations.places.network import Network
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar
from postroom.store.tables.spheres import STANDS, WITHDRAWN
from postroom.store.tables.tracking import STATIONS


def recall(network: Network, sphere: str, node: str) -> list[MadeAfar] | str:
    """Withdraw what can be; answers with all that was made there, or why the node cannot be asked."""

    def work() -> list[MadeAfar]:
        return network.filing_store(node).transact("compensate", lambda tx: _withdrawn(tx, sphere))

    try:
        recover(network, node)  # what has left there for a mailbox is undone in the mailbox
        return network.ask(node, NODE_SECONDS, work)
    except (NodeDown, NodeUnknown) as error:
        return str(error)


def _withdrawn(tx: Transaction, sphere: str) -> list[MadeAfar]:
    tx.afar.fail(sphere)
    made = tx.afar.made(sphere)
    desk.enter(tx, STATIONS)
    queues = tx.queues.locked_all({message.queue for message in made})
    found: list[MadeAfar] = []
    for each in made:
        if each.outcome is None:
            stored, queue = tx.messages.find(each.message), queues[each.queue]
            here = stored is not None and stored.processed is None and stored.queue == queue.name
            if stored is not None and here and tx.journal.is_first(stored.position):
                if stored.sound:  # a damaged one is never delivered
                    desk.remove(tx, queue, stored)
                each = tx.afar.settle(each, WITHDRAWN)
            else:
                each = tx.afar.settle(each, STANDS)
        found.append(each)
    return found
