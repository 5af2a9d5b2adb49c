"""The session of a program: partial messages, and what was received and is not confirmed yet.

A program may send a message in portions, to several queues. They are kept in memory until one ends the message; the
store never has a part of it. A receive becomes final with the commit of the next send or receive, or when the program
ends normally. If it dies before, the message is back in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroom.errors import ArgumentInvalid, BodyTooLarge, PostroomError, QueueHeld, QueueLocked
from postroom.limits import BODY_BYTES_MAX, PARTIALS_MAX
from postroom.model.arguments import check_methods
from postroom.model.body import Format
from postroom.model.message import Draft, looks_like
from postroom.queues import status
from postroom.queues.leases.returning import Unconfirmed
from postroom.queues.results import Received
from postroom.queues.segments import Area, End, composed
from postroom.queues.tree.addressing import Names, names_of, one_to_read
from postroom.queues.verbs import Verbs
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class Partial(NamedTuple):
    """An incomplete message for one destination."""

    segments: tuple[str, ...] = ()  # those that are whole
    text: str = ""  # of the one that is not
    advancing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.segments or self.text)

    def with_text(self, text: str, end: End, advancing: str) -> Partial:
        size = sum(map(len, self.segments)) + len(self.text) + len(text)
        if size > BODY_BYTES_MAX:
            raise BodyTooLarge(size=size, limit=BODY_BYTES_MAX)
        if end is End.PARTIAL:
            return self._replace(text=self.text + text)
        if end.completes and self.segments and not self.text and not text:
            return self  # the end alone: its segments were whole before
        return Partial((*self.segments, self.text + text), "", (*self.advancing, advancing))


@check_methods
class QueueSession:
    """The verbs of one program, from start to end."""

    source: str | None  # the terminal that it sends as

    def __init__(self, store: Store, verbs: Verbs, source: str | None = None) -> None:
        self._store = store
        self.verbs = verbs
        self.source = source
        self._unconfirmed = Unconfirmed()
        self._partials: dict[Names, Partial] = {}

    def receive(
        self, queue: Names, *, area: Area | None = None, segment: bool = False, wait: float | None = None
    ) -> Received:
        """The next portion that fits into an area; all of a message or segment if no area is given."""
        where = Area(BODY_BYTES_MAX) if area is None else area
        try:
            return self.verbs.receive(queue, segment=segment, wait=wait, area=where, unconfirmed=self._unconfirmed)
        except (QueueHeld, QueueLocked):
            self.confirm()
            raise

    def send(self, destinations: Sequence[Names], text: str, end: End = End.MESSAGE, advancing: str = "") -> list[str]:
        """Send a portion to each destination; returns the status of each. A message is stored only when it ends."""
        every = [names_of(names) for names in destinations]
        if not every:
            raise ArgumentInvalid(argument="destinations", why="give at least one queue")
        after = {names: self._partials.get(names, Partial()).with_text(text, end, advancing) for names in every}
        if not end.completes:
            statuses = self._store.read(lambda tx: [_status(tx, names) for names in every])
            kept = {names: after[names] for names, key in zip(every, statuses, strict=True) if key != status.UNKNOWN}
            if len(self._partials.keys() | kept.keys()) > PARTIALS_MAX:
                raise BodyTooLarge(size=PARTIALS_MAX + 1, limit=PARTIALS_MAX)
            self._partials |= kept
            return statuses
        made = [(names, self._draft(after[names], end)) for names in every]
        unsaid = any(looks_like(draft.body, None) is not Format.TEXT for _, draft in made)
        done = self.verbs.distribute_each(made, self._unconfirmed, self.source, unsaid=unsaid)
        for names, delivery in zip(every, done.deliveries, strict=True):
            if delivery.key is not None:
                self._partials.pop(names, None)
        return [delivery.status for delivery in done.deliveries]

    def _draft(self, partial: Partial, end: End) -> Draft:
        group = end is End.GROUP
        body, properties = composed(partial.segments, group=group, source=self.source, advancing=partial.advancing)
        return Draft.of(body, properties=properties or None)

    def purge(self, destinations: Sequence[Names]) -> list[str]:
        """Drop incomplete messages for each destination; returns the status of each."""
        every = [names_of(names) for names in destinations]
        statuses = self._store.read(lambda tx: [_status(tx, names) for names in every])
        answer = []
        for names, key in zip(every, statuses, strict=True):
            had = self._partials.pop(names, None)
            answer.append(key if key == status.UNKNOWN else status.DONE if had else status.NO_PARTIAL)
        return answer

    def give_back(self) -> None:
        """Put back what was received and not confirmed; a message read in portions starts again."""
        self._unconfirmed.give_back(self._store, "its program gave it back")
        self.verbs.release_locks()

    def confirm(self) -> None:
        """Confirm what was received."""
        if self._unconfirmed.taken:
            self._store.transact("confirm", self._unconfirmed.confirm)
            self._unconfirmed.taken = []

    def close(self, *, orderly: bool = True) -> None:
        """End: confirms what was received if the program ended normally; drops incomplete messages, unlocks."""
        self._partials.clear()
        try:
            if orderly:
                self.confirm()
            else:
                self._unconfirmed.give_back(self._store, "its program ended before it did anything with it")
        finally:
            self.verbs.release_locks()


def _status(tx: Transaction, names: Names) -> str:
    """The status that a send to a queue would return."""
    try:
        queue = one_to_read(tx, names)
    except PostroomError as error:
        return error.status
    return status.QUEUED if queue.hold else status.DONE
