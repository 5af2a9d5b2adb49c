"""Deletes what nothing keeps any more: processed messages of queues that keep by slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from postroom.limits import REQUEST_KEPT_SECONDS
from postroom.model.moment import in_microseconds
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.queues import Queue, Queues
from postroom.store.kernel.session import Session

# Processed, and neither in a slice, nor to be sent, nor the answer to a request that may still ask for it.
_FREE = """
m.state = 0 AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.message = m.key)
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message = m.key)
    AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.response = m.key AND r.created >= ?)
"""
_FREE_SPENT = f"FROM spent p JOIN messages m ON m.key = p.message WHERE {_FREE}"
_FREE_PROCESSED = f"""
FROM messages m WHERE m.queue = ? AND {_FREE} AND NOT EXISTS (SELECT 1 FROM spent p WHERE p.message = m.key)
"""
_SPENT = f"SELECT m.key, m.queue {_FREE_SPENT} LIMIT ?"
_PROCESSED = f"SELECT m.key, m.queue {_FREE_PROCESSED} ORDER BY m.position LIMIT ?"
_COUNT_SPENT = f"SELECT count(*) {_FREE_SPENT}"
_COUNT_PROCESSED = f"SELECT count(*) {_FREE_PROCESSED}"
_FORGET = "DELETE FROM entries WHERE message = ?"
_UNSPEND = "DELETE FROM spent WHERE message = ?"
_UNANSWER = "DELETE FROM requests WHERE response = ?"
_STALE = "DELETE FROM spent WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.key = spent.message AND m.state = 0)"
_ALL_PROCESSED = "SELECT key FROM messages WHERE queue = ? AND state = 0"


class Retention:
    def __init__(self, session: Session, journal: Journal, queues: Queues, counts: Counts, messages: Messages) -> None:
        self._session = session
        self._journal = journal
        self._queues = queues
        self._counts = counts
        self._messages = messages

    def sweep(self, unsliced: Sequence[Queue], limit: int) -> int:
        """Delete up to ``limit`` processed messages that nothing keeps; trace still works.

        Messages of sliced queues were noted when they became free; in other queues every processed one is free.
        """
        free = self._session.rows(_SPENT, (self._asked_since, limit))
        for queue in unsliced:
            if len(free) < limit:
                free += self._session.rows(_PROCESSED, (queue.id, self._asked_since, limit - len(free)))
        self.remove(free)
        if not free:
            self._session.run(_STALE)
        return len(free)

    def processed(self, queue: Queue) -> Iterable[int]:
        """The keys of a queue's processed messages."""
        return (row[0] for row in self._session.rows(_ALL_PROCESSED, (queue.id,)))

    def sweepable(self, unsliced: Sequence[Queue]) -> int:
        """How many messages a sweep would delete."""
        since = self._asked_since
        counts = (self._session.number(_COUNT_PROCESSED, (queue.id, since)) for queue in unsliced)
        return self._session.number(_COUNT_SPENT, (since,)) + sum(counts)

    @property
    def _asked_since(self) -> int:
        """The time of the oldest request that may still ask for its answer."""
        return self._session.now - in_microseconds(REQUEST_KEPT_SECONDS)

    def remove(self, messages: Sequence[tuple[int, int]]) -> None:
        """Delete processed messages, by key and queue."""
        if not messages:
            return
        queues = {id: self._queues.locked(id) for id in sorted({id for _, id in messages})}
        keys = [(key,) for key, _ in messages]
        self._messages.sweep(key for key, _ in messages)
        for statement in (_FORGET, _UNSPEND, _UNANSWER):
            self._session.many(statement, keys)
        gone: dict[int, list[int]] = {}
        for key, queue in messages:
            gone.setdefault(queue, []).append(key)
        for id, some in sorted(gone.items()):
            self._journal.add("sweep", source=id, detail={"messages": len(some), "keys": list(_runs(some))})
            self._counts.purge(queues[id], len(some))


def _runs(keys: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Keys as ranges, because messages are often consecutive."""
    for _, run in groupby(enumerate(sorted(keys)), lambda pair: pair[1] - pair[0]):
        some = [key for _, key in run]
        yield some[0], some[-1]
