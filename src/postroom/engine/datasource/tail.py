"""Following a queue: how far a reader may go without skipping a message whose commit is under way."""

from __future__ import annotations

from postroom.errors import QueueUnknown
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.scans import END


class Tail:
    """The end of one queue's arrivals, by journal number.

    Numbers are assigned before the commit, so a higher one may become visible first. But a sender assigns a queue's
    numbers under the lock of its row: with that lock, all numbers so far are visible, and later ones are higher.
    """

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._checked = (-1, -1)  # behind the first number nothing was archived up to the second
        self._quiet = (-1, -1)  # from the first number to the second nothing came to this queue

    def check(self, after: int) -> None:
        """Raise if lines after ``after`` have been archived."""
        if after == self._checked[0] and self._checked[1] == self._store.read(lambda tx: tx.journal.archives.end()):
            return

        def work(tx: Transaction) -> int:
            queue = tx.queues.named_to_read(self._queue)
            return 0 if queue is None else tx.scans.check_unarchived(queue, after)

        self._checked = (after, self._store.read(work))

    def last(self, after: int, limit: int = END) -> int:
        """The journal number of the last of the next ``limit`` arrivals; ``after`` itself if there is none."""
        since, until = self._quiet
        if since > after:
            until = after
        if until == self._store.read(lambda tx: tx.journal.newest()):  # a look without a lock, for the idle
            return after
        first = max(after, until)

        def work(tx: Transaction) -> tuple[int, int | None]:
            queue = tx.queues.named(self._queue)
            if queue is None:
                raise QueueUnknown(queue=self._queue, nearest=QueueUnknown.listing)
            newest = tx.journal.newest()
            return newest, tx.scans.last_arrival(queue, first, newest, limit)

        newest, messages = self._store.transact("follow", work)
        if messages is None:
            self._quiet = (after, newest)
            return after
        return messages
