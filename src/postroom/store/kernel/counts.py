"""The changes of a transaction to the counts of queues, and the queues that become non-empty.

It assigns arrival numbers, and writes all changes once, at the end of the transaction. Of a queue that is shared it
writes nothing: what has changed there is counted from the rows of messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.limits import FOLD_LINES
from postroom.store.kernel.outbox import Outbox
from postroom.store.kernel.queues import Admission, Queue, Queues, Unshared
from postroom.store.kernel.session import Session

_SELECTED = "SELECT 1 FROM selections WHERE queue = ? LIMIT 1"


@dataclass(slots=True)
class Change:
    queue: Queue  # as it was before this transaction changed it
    arrived: int = 0
    departed: int = 0
    processed: int = 0
    leased: int = 0  # how many of the departed are leased now, more than before
    highest: int = 0  # the highest number among the departed


class Counts:
    def __init__(self, session: Session, queues: Queues, outbox: Outbox) -> None:
        self._session = session
        self._queues = queues
        self._outbox = outbox
        self._changes: dict[int, Change] = {}
        self._unfolded: dict[int, int] = {}  # of shared queues: how many changes since their counts were written down

    def arrive(self, queue: Queue, lines: Sequence[int]) -> Sequence[int]:
        """Number arrivals, one for each journal line, in the same order."""
        change = self._of(queue)
        first = change.queue.arrivals + change.arrived + 1
        change.arrived += len(lines)
        return range(first, first + len(lines)) if self._session.counts_arrivals else lines

    def waiting(self, queue: Queue) -> int:
        """How many messages can be received, including this transaction's changes."""
        change = self._of(queue)
        return change.queue.unprocessed + change.arrived - change.departed

    def newest(self, queue: Queue) -> int:
        """The highest number so far."""
        change = self._of(queue)
        return change.queue.arrivals + change.arrived

    def depart(self, queue: Queue, number: int, count: int = 1, *, kept: bool, leased: int = 0) -> None:
        """Note that ``count`` messages leave, with the highest ``number`` among them; so many of them are leased."""
        if self._queues.is_shared(queue.id) and (leased or not kept):
            raise Unshared  # what is gone from the rows could not be counted
        change = self._of(queue)
        change.departed += count
        change.leased += leased
        change.processed += count if kept else 0
        change.highest = max(change.highest, number)

    def come_back(self, queue: Queue) -> None:
        """A message that left temporarily is back, under its number."""
        self._alone(queue).departed -= 1

    def end_lease(self, queue: Queue) -> None:
        """A message that left temporarily is no longer leased, whatever happens to it."""
        self._alone(queue).leased -= 1

    def keep(self, queue: Queue) -> None:
        """A message that left temporarily stays as processed."""
        self._alone(queue).processed += 1

    def purge(self, queue: Queue, count: int) -> None:
        self._alone(queue).processed -= count

    def clear(self) -> None:
        if self._changes:
            self._changes.clear()

    def settle(self, lines: Collection[int] = ()) -> bool:
        """Write departures; note messages to send, and command lines of queues that became non-empty.

        True if others have to be woken. For messages returned to a queue in ``lines``, only its line is woken.
        """
        filled = False
        sending: list[tuple[int, Queue]] = []
        for id, change in self._to_write():
            queue = change.queue
            left = queue.unprocessed + change.arrived - change.departed
            if left < 0:
                raise StoreCorrupt(why=f"{queue.name} would hold {left} messages")
            if change.arrived and queue.admission & Admission.SENDING:
                sending += [(key, queue) for key in self._outbox.arrived(queue, change.arrived)]
                filled = True
            departed, processed = change.departed, change.processed
            if not self._session.counts_arrivals:  # what is leased is counted from its rows
                departed -= change.leased
                self._queues.tally(id, arrived=change.arrived, departed=departed, processed=processed)
            elif departed or processed or change.highest:  # some may have come back as others left
                self._queues.count(id, departed=departed, processed=processed, highest=change.highest)
            if change.arrived and not filled and self._session.row(_SELECTED, (id,)) is not None:
                filled = True  # who waits for some of its messages may wait though there are others
            if left and not queue.unprocessed:
                filled = filled or bool(change.arrived) or id not in lines
                if queue.command is not None:
                    payload: dict[str, Any] = {"command": queue.command, "queue": queue.name, "path": queue.path}
                    if queue.command_seconds is not None:
                        payload["seconds"] = queue.command_seconds
                    self._outbox.add("command", payload, destination=queue.name)
        self._outbox.add_messages(sending)
        return filled

    def _to_write(self) -> Iterator[tuple[int, Change]]:
        """The changes of queues that this transaction has alone; those of others are only added up.

        In the order of ids: two transactions over the same queues never wait for each other in a circle.
        """
        for id, change in sorted(self._changes.items(), key=lambda item: item[0]):
            if self._queues.is_shared(id):  # who waits for what has come there is woken by whoever shares it
                self._unfolded[id] = self._unfolded.get(id, 0) + change.arrived + change.departed
            else:
                yield id, change

    def to_fold(self) -> list[int]:
        """The shared queues with so many changes that their counts are to be written down; asked once."""
        found = [id for id, changes in self._unfolded.items() if changes >= FOLD_LINES]
        for id in found:
            del self._unfolded[id]
        return found

    def _alone(self, queue: Queue) -> Change:
        """The change of a queue that must not be shared for it."""
        if self._queues.is_shared(queue.id):
            raise Unshared
        return self._of(queue)

    def _of(self, queue: Queue) -> Change:
        change = self._changes.get(queue.id)
        if change is None:
            change = self._changes[queue.id] = Change(queue)
        return change
