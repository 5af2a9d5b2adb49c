"""Undo at another node: withdraw what procedures made there of the messages of a failed sphere.

The node notes in one commit that the sphere has failed, and withdraws untouched messages. Then the control node
notes the result in its own commit. After a crash in between, the node gives the same answer again.
"""

from __future__ import annotations

from postroom.errors import NodeDown, NodeUnknown
from postroom.limits import NODE_SECONDS
from postroom.stations.mail.mail import recover
from postroom.stations.places import desk
from postroom.stations.places.network import Network
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar
from postroom.store.tables.spheres import STANDS, WITHDRAWN
from postroom.store.tables.tracking import STATIONS


def recall(network: Network, sphere: str, node: str) -> list[MadeAfar] | str:
    """Withdraw what is possible; returns all that was made there, or why the node does not respond."""

    def work() -> list[MadeAfar]:
        return network.indexed_store(node).transact("compensate", lambda tx: _withdrawn(tx, sphere))

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
    return [message if message.outcome else _settled(tx, message, queues[message.queue]) for message in made]


def _settled(tx: Transaction, message: MadeAfar, queue: Queue) -> MadeAfar:
    """The outcome for a message: withdrawn, unless someone has touched it."""
    stored = tx.messages.find(message.message)
    if stored is None or stored.processed is not None or stored.queue != queue.name:
        return tx.afar.settle(message, STANDS)
    if not tx.journal.is_first(stored.position):
        return tx.afar.settle(message, STANDS)
    if stored.sound:  # a damaged one is never delivered
        desk.remove(tx, queue, stored)
    return tx.afar.settle(message, WITHDRAWN)
