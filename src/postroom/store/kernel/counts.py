"""What a transaction changes in the counts of queues, and which queues it makes non-empty.

Numbers are given out here, and departures are written once, at the end of the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.store.kernel.outbox import Outbox
from postroom.store.kernel.queues import Queue, Queues


@dataclass(slots=True)
class Change:
    queue: Queue  # as it was before this transaction changed it
    arrived: int = 0
    departed: int = 0
    processed: int = 0
    highest: int = 0  # the highest number among the departed


class Counts:
    def __init__(self, queues: Queues, outbox: Outbox) -> None:
        self._queues = queues
        self._outbox = outbox
        self._changes: dict[int, Change] = {}

    def arrive(self, queue: Queue, count: int) -> int:
        """Number ``count`` arrivals; answers with the first number."""
        change = self._of(queue)
        first = change.queue.arrivals + change.arrived + 1
        change.arrived += count
        return first

    def depart(self, queue: Queue, number: int, count: int = 1, *, kept: bool) -> None:
        """``count`` messages leave, of which one has the highest ``number``."""
        change = self._of(queue)
        change.departed += count
        change.processed += count if kept else 0
        change.highest = max(change.highest, number)

    def come_back(self, queue: Queue) -> None:
        """One that had left to be given back is there again, under its number."""
        self._of(queue).departed -= 1

    def keep(self, queue: Queue) -> None:
        """One that had left to be given back stays as a processed one."""
        self._of(queue).processed += 1

    def purge(self, queue: Queue, count: int) -> None:
        self._of(queue).processed -= count

    def clear(self) -> None:
        if self._changes:
            self._changes.clear()

    def settle(self) -> bool:
        """Write what departed; note the command lines of queues that became non-empty. True if any did."""
        filled = False
        # In the order of ids: two transactions over the same queues never wait for each other in a circle.
        for id, change in sorted(self._changes.items(), key=lambda item: item[0]):
            queue = change.queue
            left = queue.unprocessed + change.arrived - change.departed
            if left < 0:
                raise StoreCorrupt(why=f"{queue.name} would hold {left} messages")
            if change.departed or change.processed or change.highest:  # some may have come back as others left
                self._queues.count(id, departed=change.departed, processed=change.processed, arrived=change.highest)
            if left and not queue.unprocessed:
                filled = True
                if queue.command is not None:
                    payload: dict[str, Any] = {"command": queue.command, "queue": queue.name, "path": queue.path}
                    if queue.command_seconds is not None:
                        payload["seconds"] = queue.command_seconds
                    self._outbox.add("command", payload, destination=queue.name)
        return filled

    def _of(self, queue: Queue) -> Change:
        change = self._changes.get(queue.id)
        if change is None:
            change = self._changes[queue.id] = Change(queue)
        return change
