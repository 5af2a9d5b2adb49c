"""The causal history of a message: causes, effects, and the events of each, from all nodes.

A message has one cause. If a procedure made it of several messages, all of them are its causes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from postroom.engine.spheres import sphere_of
from postroom.errors import MessageUnknown, NodeDown
from postroom.limits import STORY_MESSAGES_MAX
from postroom.model.html_table import html_table
from postroom.model.key import key_number, key_text
from postroom.model.message import Stored
from postroom.model.place import place_of
from postroom.stations.mail.whereabouts import locate
from postroom.stations.places.network import Network
from postroom.store.kernel.causes import Origin
from postroom.store.kernel.journal import Event
from postroom.store.kernel.queues import LEAVING
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import Send


@dataclass(frozen=True, slots=True)
class StoryMessage:
    """One message of a story."""

    key: str
    type: str | None
    place: str | None  # None if it is no longer kept
    depth: int  # how many causes stand above it
    causes: tuple[str, ...]  # the one that led to it first
    effects: tuple[str, ...]
    sphere: str | None  # that it belongs to
    outcome: str | None  # what became of it with its sphere
    events: tuple[Event, ...]  # by the first of them it was made

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "type": self.type,
            "place": self.place,
            "depth": self.depth,
            "causes": list(self.causes),
            "led_to": list(self.effects),
            "sphere": self.sphere,
            "outcome": self.outcome,
            "by": self.events[0].by,
            "events": [event.as_dict() for event in self.events],
        }


@dataclass(frozen=True, slots=True)
class Story:
    """The messages as a tree: each comes below the first of its causes."""

    key: str
    messages: tuple[StoryMessage, ...]
    complete: bool  # else there are more messages than a story tells
    silent: tuple[str, ...] = ()  # nodes that did not answer

    def _repr_html_(self) -> str:
        headings = ["message", "type", "place", "time", "verb", "from", "to", "by"]
        rows = [
            ("\u2003" * told.depth + told.key, told.type, told.place, event.time, event.verb, *_ends(event), event.by)
            for told in self.messages
            for event in told.events
        ]
        return html_table(f"trace of {self.key}", headings, rows, len(rows))

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "messages": [message.as_dict() for message in self.messages],
            "complete": self.complete,
            "silent": list(self.silent),
        }


def _ends(event: Event) -> tuple[str | None, str | None]:
    return place_of(event.source), place_of(event.target)


def story(network: Network, key: str) -> Story:
    """The causal history of a message, with the messages processed together with it."""
    teller = _Teller(network)
    number = key_number(key)
    if teller.find(number) is None:
        if teller.down:
            raise next(iter(teller.down.values()))
        raise MessageUnknown(key=key)
    teller.follow(number, teller.causes)
    teller.follow(number, teller.effects)
    for met in list(teller.told.values()):
        for partner in met.partners:
            teller.add(partner)
    return Story(key_text(number), teller.tree(), teller.complete, tuple(teller.down))


#: What becomes of a compensation that is not needed means that the message itself stands.
_STANDS = {"discarded": "stands", "kept": "stands"}


class _Found(NamedTuple):
    """What the stores know about a message."""

    events: tuple[Event, ...]
    stored: Stored | None
    origin: Origin
    effects: tuple[int, ...]
    send: Send | None

    @property
    def partners(self) -> list[int]:
        """The messages that were processed together with it."""
        return list(dict.fromkeys(key for event in self.events for key in _keys(event, "with")))


class _Teller:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._nodes = network.nodes()
        self.down: dict[str, NodeDown] = {}
        self._known: dict[int, _Found | None] = {}
        self.told: dict[int, _Found] = {}
        self.complete = True

    # --- gathering ---

    def find(self, number: int) -> _Found | None:
        """A message from all nodes that respond; cached."""
        if number not in self._known:
            self._known[number] = self._found(number)
        return self._known[number]

    def _found(self, number: int) -> _Found | None:
        def work(tx: Transaction) -> _Found | None:
            origin = tx.causes.origin(number)
            if origin is None:
                return None
            effects = tx.causes.effects(number, STORY_MESSAGES_MAX + 1)
            events = tuple(tx.journal.trace(number))
            return _Found(events, tx.messages.find(number), origin, tuple(effects), tx.spheres.sent(number))

        some: list[_Found] = []
        for node in self._nodes:
            if node not in self.down:
                try:
                    known = self._network.look(node, work)
                except NodeDown as error:
                    self.down[node] = error
                else:
                    some += [known] if known is not None and known.events else []
        return _joined(some) if some else None

    def causes(self, number: int) -> list[int]:
        """The causes of a message: its cause, and those that were processed together with it."""
        known = self.find(number)
        first = None if known is None else known.origin.cause
        cause = None if first is None else self.find(first)
        if first is None or cause is None:
            return []
        making = (event for event in cause.events if number in _keys(event, "made"))
        return [first, *(key for event in making for key in _keys(event, "with"))]

    def effects(self, number: int) -> list[int]:
        """The messages that were made from a message."""
        known = self.find(number)
        if known is None:
            return []
        shared = (key for event in known.events for key in _keys(event, "made"))
        return sorted({*known.effects, *shared})

    # --- walking ---

    def follow(self, number: int, way: Callable[[int], Iterable[int]]) -> None:
        """Add a message and all its causes or effects, nearest first."""
        ahead = deque([number])
        self.add(number)
        seen = {number}
        while ahead and self.complete:
            for key in way(ahead.popleft()):
                if key not in seen and self.add(key):
                    seen.add(key)
                    ahead.append(key)

    def add(self, number: int) -> bool:
        """Add a message; False if it is unknown, or there is no more room."""
        known = self.told.get(number) or self.find(number)
        if known is None:
            return False
        if number not in self.told and len(self.told) >= STORY_MESSAGES_MAX:
            self.complete = False
            return False
        self.told[number] = known
        return True

    # --- telling ---

    def tree(self) -> tuple[StoryMessage, ...]:
        below: dict[int | None, list[int]] = {}
        for number in sorted(self.told, key=lambda key: (self.told[key].events[0].time, key)):
            above = next((cause for cause in self.causes(number) if cause in self.told), None)
            below.setdefault(above, []).append(number)
        order: list[StoryMessage] = []
        ahead = [(number, 0) for number in reversed(below.get(None, ()))]
        while ahead:
            number, depth = ahead.pop()
            order.append(self._told(number, depth))
            ahead += [(effect, depth + 1) for effect in reversed(below.get(number, ()))]
        return tuple(order)

    def _told(self, number: int, depth: int) -> StoryMessage:
        known = self.told[number]
        stored, send = known.stored, known.send
        place = None if stored is None else place_of(stored.queue)
        if stored is not None and stored.queue == LEAVING:
            place = locate(self._network, key_text(number))
        sphere = (known.events[0].detail or {}).get("sphere") if send is None else send.sphere
        if sphere is None and stored is not None and stored.sound:  # made for a message of a sphere
            sphere = sphere_of(stored)
        return StoryMessage(
            key_text(number),
            known.origin.type,
            place,
            depth,
            tuple(key_text(cause) for cause in self.causes(number)),
            tuple(key_text(effect) for effect in self.effects(number)),
            sphere,
            None if send is None else _STANDS.get(send.outcome or "", send.outcome),
            known.events,
        )


def _joined(some: list[_Found]) -> _Found:
    """Merge what several stores know about a message."""
    present = [part.stored for part in some if part.stored is not None]
    present.sort(key=lambda stored: stored.queue == LEAVING)
    stored = present[0] if present else None
    events = sorted((event for part in some for event in part.events), key=lambda event: event.time)
    effects = sorted({key for part in some for key in part.effects})
    origin = some[0].origin if stored is None or stored.sound else Origin(None, None)
    send = next((part.send for part in some if part.send is not None), None)
    return _Found(tuple(events), stored, origin, tuple(effects), send)


def _keys(event: Event, word: str) -> list[int]:
    """The messages in an event's detail."""
    keys = () if event.detail is None else event.detail.get(word, ())
    return [key_number(key) for key in keys] if isinstance(keys, list) else []
