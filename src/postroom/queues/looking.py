"""Counts and lists messages of queues without receiving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter

from postroom.errors import ArgumentInvalid
from postroom.limits import PAGE_ROWS
from postroom.model.message import Message, Stored
from postroom.queues import locks
from postroom.queues.results import (
    Accepted,
    Listing,
    QueueCount,
)
from postroom.queues.tree.addressing import (
    Names,
    names_of,
    queues_even_retired,
    queues_of,
)
from postroom.queues.user import QueueUser
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


class LookVerbs(QueueUser):
    """The verbs that only read."""

    def accept(self, queue: Names = (), *, locked: bool = False) -> Accepted:
        """Count the messages of queues; without a name, of all queues, including locked ones."""

        def work(tx: Transaction) -> tuple[QueueCount, ...]:
            queues = queues_of(tx, names_of(queue)) if queue else tx.queues.all()
            if queue and not locked:
                locks.unlocked(tx, queues)
            tx.messages.check_end(match for match in queues if not match.unprocessed)
            aside = tx.deliveries.put_aside()
            return tuple(QueueCount.of(match, tx.now, *aside(match)) for match in queues)

        return Accepted(self._store.read(work))

    def info(self, queue: Names, limit: int | None = None, after: str | None = None) -> Listing:
        """All unprocessed messages, including those blocked by an earlier one of the same key."""
        return self._listing(names_of(queue), State.UNPROCESSED, limit, after)

    def history(self, queue: Names, limit: int | None = None, after: str | None = None) -> Listing:
        """All processed messages, in the order of their processing."""
        return self._listing(names_of(queue), State.PROCESSED, limit, after)

    def _listing(self, names: Names, state: State, limit: int | None, after: str | None) -> Listing:
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        queues: Sequence[Queue] = self._store.read(lambda tx: locks.unlocked(tx, queues_even_retired(tx, names)))
        begins = 0
        if after is not None:
            queues, begins = _behind(queues, after)
        listing = Listing(lambda: self._pages(listing, queues, state, limit, begins))
        return listing

    def _pages(
        self, listing: Listing, queues: Sequence[Queue], state: State, limit: int | None, after: int
    ) -> Iterator[Message]:
        listing.next = None
        for queue in queues:
            while limit is None or limit > 0:
                size = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit)
                page, blocked = self._store.read(partial(_page, queue, state, after, size))
                yield from (stored.image(blocked=stored.key in blocked) for stored in page)
                limit = None if limit is None else limit - len(page)
                if len(page) < size:
                    break
                after = page[-1].position
                listing.next = f"{after}@{queue.path}" if limit == 0 else None
            after = 0


def _behind(queues: Sequence[Queue], cursor: str) -> tuple[Sequence[Queue], int]:
    """The queues from the end of a page on, and the position in the first of them."""
    position, _, path = cursor.partition("@")
    paths = [queue.path for queue in queues]
    if not (position.isascii() and position.isdigit() and len(position) < 19 and path in paths):
        raise ArgumentInvalid(argument="after", why="it is what the page before has as next")
    return queues[paths.index(path) :], int(position)


def _page(queue: Queue, state: State, after: int, size: int, tx: Transaction) -> tuple[list[Stored], set[int]]:
    """Messages in order, and the keys of those blocked by an earlier one of the same key."""
    page = tx.messages.page(queue, state, after, size)
    if state is not State.UNPROCESSED:
        return page, set()
    if len(page) < size:
        tx.messages.check_end([queue], page[-1].position if page else after)
    waiting = tx.messages.page(queue, State.BLOCKED, after, size)
    merged = sorted([*page, *waiting], key=attrgetter("position"))[:size] if waiting else page
    return merged, {stored.key for stored in waiting}
