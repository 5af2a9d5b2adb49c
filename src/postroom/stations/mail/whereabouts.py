"""Where a message is and was: anyone may ask, about any message of the network."""

from __future__ import annotations

from postroom.errors import MessageGone, MessageUnknown, NodeDown
from postroom.model.key import key_number
from postroom.model.message import Message, Stored
from postroom.model.place import place_of
from postroom.stations.places.desk import GET, SHIP
from postroom.stations.places.names import mailbox
from postroom.stations.places.network import Network
from postroom.store.kernel.journal import Event
from postroom.store.kernel.queues import LEAVING
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import HANDED_OVER


def locate(network: Network, key: str) -> str | None:
    """The station, mailbox or queue of a message; None if it was processed or withdrawn and is no longer kept.

    Read from the control node's journal; unknown messages are looked for at the nodes.
    """
    number = key_number(key)
    here = network.control.read(lambda tx: tx.messages.find(number))
    if here is not None and here.queue != LEAVING:
        return place_of(here.queue)
    here, events = network.control.read(lambda tx: (tx.messages.find(number), tx.journal.trace(number)))
    if here is not None and here.queue != LEAVING:  # it has come meanwhile
        return place_of(here.queue)
    if events and events[-1].target is None and events[-1].verb != HANDED_OVER:
        return None
    last = next((event for event in reversed(events) if event.verb in (SHIP, GET) and event.detail), None)
    if last is not None and last.detail is not None:
        return str(last.detail["to"]) if last.verb == GET else mailbox(str(last.detail["to"]))
    if events:
        return None
    stored, down = _search(network, number)
    if stored is None:
        if down:
            raise down[0]
        raise MessageUnknown(key=key)
    return place_of(stored.queue)


def trace(network: Network, key: str) -> list[Event]:
    """All events of a message in all stores of the network that respond, oldest first."""
    number = key_number(key)
    events = network.control.read(lambda tx: tx.journal.trace(number))
    down: list[NodeDown] = []
    for node in network.nodes()[1:]:
        try:
            events += network.look(node, lambda tx: tx.journal.trace(number))
        except NodeDown as error:
            down.append(error)
    if not events:
        if down:
            raise down[0]
        raise MessageUnknown(key=key)
    return sorted(events, key=lambda event: event.time)


def show(network: Network, key: str) -> Message:
    """A message, wherever it is."""
    return find(network, key).image()


def find(network: Network, key: str) -> Stored:
    """A stored message, from any store."""
    number = key_number(key)
    stored, down = _search(network, number)
    if stored is None:
        if down:
            raise down[0]
        trace(network, key)  # tells a key that never was from a message that is gone
        raise MessageGone(key=key)
    return stored


def _search(network: Network, number: int) -> tuple[Stored | None, list[NodeDown]]:
    """A message by its key, from any store; one in transit may be in two."""

    def work(tx: Transaction) -> Stored | None:
        return tx.messages.shown(number)

    leaving: Stored | None = None
    down: list[NodeDown] = []
    for node in network.nodes():
        try:
            stored = network.look(node, work)
        except NodeDown as error:
            down.append(error)
            continue
        if stored is not None and stored.queue != LEAVING:
            return stored, down
        leaving = leaving or stored
    return leaving, down
