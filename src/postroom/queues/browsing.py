"""Browses the messages that match a selector, without receiving them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from postroom.errors import ArgumentInvalid
from postroom.limits import PAGE_ROWS
from postroom.model.message import Message
from postroom.queues import locks, selecting
from postroom.queues.results import Listing
from postroom.queues.selectors import Selector
from postroom.queues.tree.addressing import Names, names_of, queues_even_retired
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


def browse(store: Store, queue: Names, where: Selector, limit: int | None) -> Listing:
    """The matching messages in the order of delivery; nothing is received.

    Those blocked by an earlier one of the same key come last. It uses an index if someone has received by these
    properties before; else it scans the queue.
    """
    if limit is not None and limit < 1:
        raise ArgumentInvalid(argument="limit", why="at least 1")
    names = names_of(queue)
    present = store.read(lambda tx: locks.unlocked(tx, queues_even_retired(tx, names)))
    return Listing(lambda: _chosen(store, present, where, limit))


def _chosen(store: Store, queues: Sequence[Queue], where: Selector, limit: int | None) -> Iterator[Message]:
    left = limit
    for queue in queues:
        keys, blocked = store.read(partial(_keys, queue, where, left))
        left = None if left is None else left - len(keys)
        for start in range(0, len(keys), PAGE_ROWS):
            page = keys[start : start + PAGE_ROWS]
            there = store.read(lambda tx, page=page: tx.messages.find_many(page))  # type: ignore[misc]
            waiting = [there[key] for key in page if key in there and there[key].processed is None]
            yield from (stored.image(blocked=stored.key in blocked) for stored in waiting)


def _keys(queue: Queue, where: Selector, limit: int | None, tx: Transaction) -> tuple[list[int], set[int]]:
    """The keys that can be delivered, in order; then those blocked by an earlier one of the same key."""
    known = tx.selections.names(queue)
    keys = [stored.key for stored in islice(selecting.wanted(tx, queue, where, known), limit)]
    behind = islice(selecting.blocked(tx, queue, where), None if limit is None else limit - len(keys))
    blocked = [stored.key for stored in behind]
    return keys + blocked, set(blocked)
