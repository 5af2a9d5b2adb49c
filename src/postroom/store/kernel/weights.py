"""The total bytes of queues with such a limit.

Counted at first use, and updated by each send. It is counted again if messages have arrived otherwise, and before a
send is refused, because messages may have left.
"""

from __future__ import annotations

from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import StoreTable

_FIND = "SELECT bytes FROM weights WHERE queue = ? AND arrivals = ?"
_SET = """
INSERT INTO weights (queue, bytes, arrivals) VALUES (?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET bytes = excluded.bytes, arrivals = excluded.arrivals
"""
# Whoever was handed a message may give it back.
_MEASURE = """
SELECT coalesce(sum(octet_length(m.body)), 0) + (
    SELECT coalesce(sum(octet_length(h.body)), 0) FROM handouts h WHERE h.queue = ?
) FROM messages m WHERE m.queue = ? AND m.state IN (-2, -1, 1, 3, 4)
"""


class Weights(StoreTable):
    def at_most(self, queue: Queue, arrivals: int) -> int | None:
        """An upper bound for a queue with so many arrivals; None if it must be counted."""
        return self._session.value(_FIND, (queue.id, arrivals))

    def measured(self, queue: Queue) -> int:
        return self._session.number(_MEASURE, (queue.id, queue.id))

    def note(self, queue: Queue, bytes: int, arrivals: int) -> None:
        """Store the bytes of a queue with so many arrivals."""
        self._session.run(_SET, (queue.id, bytes, arrivals))
