"""Editions of a message: its content before each edit, and the changes of each event.

Each store keeps the editions that were replaced there. Ordered by time, with the current body, they are complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from postroom.errors import ArgumentInvalid, MessageGone
from postroom.model.key import key_number
from postroom.model.message import Message, Stored
from postroom.stations.mail import whereabouts
from postroom.stations.places.network import Network
from postroom.store.kernel.journal import Event
from postroom.store.kernel.transaction import Transaction


class _Replaced(NamedTuple):
    """A replaced edition, with the time and event of its replacement."""

    time: int
    node: str
    seq: int
    body: str
    properties: str


@dataclass(frozen=True, slots=True)
class Valued:
    """An event, its edition, and the fields that it wrote; None for a field that was emptied."""

    event: Event
    edition: int | None = None
    values: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        shape = self.event.as_dict()
        return shape if self.edition is None else {**shape, "edition": self.edition, "values": self.values}


def show(network: Network, key: str, edition: int) -> Message:
    """An edition of a message; 1 is as it was created."""
    now = whereabouts.find(network, key)
    if not now.sound:
        return now.image()
    before = _replaced(network, key_number(key))
    count = len(before) + 1
    if not 1 <= edition <= count:
        why = f"{key} has edition 1 alone" if count == 1 else f"{key} has editions 1 to {count}"
        raise ArgumentInvalid(argument="edition", why=why)
    if edition == count:
        return now.image()
    old = before[edition - 1]
    return Message(now._replace(body=old.body, properties=old.properties))


def trace(network: Network, key: str) -> list[Valued]:
    """The history of a message with the values written; for a deleted one, the last values are unknown."""
    number = key_number(key)
    before = _replaced(network, number)
    now: Stored | None
    try:
        now = whereabouts.find(network, key)
    except MessageGone:
        now = None
    last = now.body if now is not None and now.sound else None
    bodies: list[str | None] = [*(edition.body for edition in before), last]
    edits = {(edition.node, edition.seq): place for place, edition in enumerate(before)}
    events: list[Valued] = []
    for node, event in _events(network, number):
        place = edits.get((node, event.seq))
        if event.verb == "create" and not any(valued.edition for valued in events):
            events.append(Valued(event, 1, _written(None, bodies[0])))
        elif place is not None:
            events.append(Valued(event, place + 2, _written(bodies[place], bodies[place + 1])))
        else:
            events.append(Valued(event))
    return events


def _replaced(network: Network, number: int) -> list[_Replaced]:
    """The replaced editions from all stores; raises if one does not respond, because the history would be wrong."""
    editions: list[_Replaced] = []
    for node in network.nodes():

        def work(tx: Transaction, node: str = node) -> list[_Replaced]:
            return [
                _Replaced(tx.journal.time_of(seq) or 0, node, seq, body, properties)
                for seq, body, properties in tx.messages.editions(number)
            ]

        editions += network.look(node, work)
    return sorted(editions)


def _events(network: Network, number: int) -> list[tuple[str, Event]]:
    events: list[tuple[str, Event]] = []
    for node in network.nodes():
        events += [(node, event) for event in network.look(node, lambda tx: tx.journal.trace(number))]
    return sorted(events, key=lambda pair: pair[1].time)


def _written(old: str | None, new: str | None) -> dict[str, Any] | None:
    """The fields that differ; None if one of the two is unknown, or has no fields."""
    if new is None:
        return None
    try:
        was, says = {} if old is None else json.loads(old), json.loads(new)
    except ValueError:
        return None
    if not isinstance(was, dict) or not isinstance(says, dict):
        return None
    names = dict.fromkeys([*says, *was])
    return {name: says.get(name) for name in names if says.get(name) != was.get(name)}
