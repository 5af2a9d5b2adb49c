"""What a transaction changed in the queues' counts, and which queues it made non-empty.

Arrivals at an open door were counted there already; everything else is written once, at the end of the transaction.
"""

from __future__ import annotations

from postroom.errors import StoreCorrupt
from postroom.store.outbox import Outbox
from postroom.store.queues import Place, Queues


class Counts:
    def __init__(self, queues: Queues, outbox: Outbox) -> None:
        self._queues = queues
        self._outbox = outbox
        self._changes: dict[int, list[int]] = {}
        self._filled: list[Place] = []

    def admitted(self, place: Place, count: int) -> None:
        """Messages came in that the queue's row counts already."""
        if place.unprocessed == count:
            self._filled.append(place)

    def add(self, queue: int, unprocessed: int, processed: int) -> None:
        change = self._changes.get(queue)
        if change is None:
            self._changes[queue] = [unprocessed, processed]
        else:
            change[0] += unprocessed
            change[1] += processed

    def clear(self) -> None:
        if self._changes or self._filled:
            self._changes.clear()
            self._filled.clear()

    def settle(self) -> bool:
        """Write the counts; note the command lines of queues that became non-empty. True if any did."""
        # In the order of ids: two transactions over the same queues never wait for each other in a circle.
        for queue, (unprocessed, processed) in sorted(self._changes.items()) if self._changes else ():
            place = self._queues.count(queue, unprocessed, processed)
            if place.unprocessed < 0:
                raise StoreCorrupt(why=f"{place.name} would hold {place.unprocessed} messages")
            if 0 < unprocessed == place.unprocessed:
                self._filled.append(place)
        if not self._filled:
            return False
        for place in self._filled:
            if place.command is not None:
                payload = {"command": place.command, "queue": place.name, "path": place.path}
                self._outbox.add("command", payload)
        return True
