"""The data of a step: arrivals, the sets of messages that they read, and their effects.

Evaluation only returns effects; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self


class Granule(NamedTuple):
    """A set of messages that a rule may read: a slice, the entries of an index, or a whole queue."""

    kind: str
    name: str
    value: str = ""
    until: int = 0  # if it is not 0, only messages that were there at that moment


class Document(NamedTuple):
    """A message in such a set, as a rule sees it."""

    key: int  # 0 for one that is not stored yet
    format: str
    type: str | None
    body: str
    place: int = 0  # its number in its queue; of one that is not stored yet, among the actions of what made it


class Arrival(NamedTuple):
    """A claimed message, with its content and the sets that its rules read."""

    order: int  # its number in the claim
    queue: str
    key: int
    format: str
    type: str | None
    body: str
    properties: str
    created: int
    cause: int | None
    reads: tuple[tuple[Granule, ...], ...] = ()
    failure: str | None = None  # why it cannot be evaluated: it killed its worker

    def failing(self, why: str) -> Self:
        return self._replace(failure=why)

    @property
    def granules(self) -> tuple[Granule, ...]:
        return tuple(granule for read in self.reads for granule in read)


class Enqueue(NamedTuple):
    """A new message, with everything that its queue requires."""

    rule: str
    queue: str
    format: str
    type: str | None
    properties: str
    body: str
    slices: tuple[tuple[str, str], ...] = ()
    entries: tuple[tuple[str, str], ...] = ()
    delay: int | None = None  # microseconds, for an echo queue
    failed: bool = False  # an error message in the place of what the message should have led to
    passed: bool = False  # kept as processed from the start: what it leads to is among the same effects
    compensates: bool = False  # the message before it: remembered by the sphere that both are sent in

    @property
    def document(self) -> Document:
        return Document(0, self.format, self.type, self.body)


#: The end of a new message that has nothing besides its body, for those who make very many.
PLAIN = tuple(Enqueue._field_defaults.values())


class ResetSlice(NamedTuple):
    rule: str
    slicing: str
    value: str


class Failed(NamedTuple):
    """A failed attempt at a message whose queue has attempts; always the first effect."""

    reason: str
    final: bool  # it goes to the dead letters; else it waits for its next attempt


Action = Enqueue | ResetSlice | Failed
Effects = tuple[Action, ...]


class Change(NamedTuple):
    """What a message's effects do to one granule: add a document, or (None) reset it."""

    at: int  # the number of the message that makes it
    document: Document | None


def moment(delay: int | None, now: int) -> int | None:
    """When a message is due that waits: so many microseconds from now; a negative number is the moment itself.

    >>> moment(None, 5), moment(3, 5), moment(-9, 5)
    (None, 8, 9)
    """
    if delay is None:
        return None
    return -delay if delay < 0 else now + delay


def changes(at: int, effects: Effects) -> Iterator[tuple[Granule, Change]]:
    """The changes that effects make to granules."""
    for place, action in enumerate([effect for effect in effects if not isinstance(effect, Failed)]):
        if isinstance(action, ResetSlice):
            yield Granule("slice", action.slicing, action.value), Change(at, None)
            continue
        if action.compensates:  # nobody sees it before its sphere fails
            continue
        change = Change(at, action.document._replace(place=place))
        yield Granule("queue", action.queue), change
        for name, value in action.slices:
            yield Granule("slice", name, value), change
        for name, value in action.entries:
            yield Granule("index", name, value), change
