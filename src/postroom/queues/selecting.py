"""The next messages that match a selector, in the queue's order of delivery.

A selector chooses among the messages that the order permits: in free order all that wait, by priority; in strict order
only the first, so if that does not match, nothing is delivered; with an order ``by`` a property the first of each
value.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from postroom.limits import PAGE_ROWS, SELECT_COUNT_FIRST, SELECT_COUNT_MAX
from postroom.model.message import Stored
from postroom.model.order import compared
from postroom.queues.selectors import Condition, Selector
from postroom.store.kernel.deliveries import lane_of
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.policies import STRICT, Policy
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.selections import Span
from postroom.store.kernel.transaction import Transaction


def claim(tx: Transaction, queue: Queue, selector: Selector, limit: int, policy: Policy) -> list[Stored]:
    """The next matching messages that may be delivered, at most ``limit``. The queue is locked for this transaction."""
    if policy.order == STRICT:
        return [stored for stored in tx.deliveries.claim(queue, 1, policy) if selector.chooses(stored.properties)]
    known = tx.selections.ask(queue, {*selector.wanted, *([] if policy.by is None else [policy.by])})
    claimed: list[Stored] = []
    lanes: set[str | None] = set()
    for stored in wanted(tx, queue, selector, known):
        lane = lane_of(stored, policy)
        if lane is not None and lane not in lanes and tx.deliveries.is_taken(queue, lane, stored):
            tx.deliveries.make_way(queue, stored, lane)
            continue
        if lane is not None and (lane in lanes or not _is_first(tx, queue, stored, lane, policy)):
            tx.deliveries.block(queue, stored, lane)  # it comes back when those before it have left
            continue
        lanes.add(lane)
        claimed.append(stored)
        if len(claimed) == limit:
            break
    return claimed


def wanted(tx: Transaction, queue: Queue, selector: Selector, known: set[str]) -> Iterator[Stored]:
    """All waiting messages that match, in order; by index entries if there are any for these properties."""
    spans = _best(tx, queue, selector, known)
    if spans is None:
        yield from _walk(tx, queue, selector)
        return
    seen: set[int] = set()
    merged = heapq.merge(*(tx.selections.candidates(queue, span) for span in spans))
    page: list[int] = []
    size = 10  # the first is wanted most often
    for candidate in merged:
        if candidate.message not in seen:
            seen.add(candidate.message)
            page.append(candidate.message)
        if len(page) == size:
            yield from _chosen(tx, selector, page)
            page, size = [], PAGE_ROWS
    yield from _chosen(tx, selector, page)


def blocked(tx: Transaction, queue: Queue, selector: Selector) -> Iterator[Stored]:
    """All matching messages that are blocked by an earlier one of the same key, in arrival order."""
    after = 0
    while page := tx.messages.page(queue, State.BLOCKED, after, PAGE_ROWS):
        yield from (stored for stored in page if selector.chooses(stored.properties))
        after = page[-1].position


def _best(tx: Transaction, queue: Queue, selector: Selector, known: set[str]) -> list[Span] | None:
    """The spans with the fewest messages; None if no property is indexed."""
    groups = [spans for spans in selector.spans() if spans[0].name in known]
    if len(groups) < 2:
        return groups[0] if groups else None
    for most in (SELECT_COUNT_FIRST, SELECT_COUNT_MAX):
        counted = [sum(tx.selections.count(queue, span, most) for span in spans) for spans in groups]
        fewest = min(counted)
        if fewest < most:
            break
    return groups[counted.index(fewest)]


def _chosen(tx: Transaction, selector: Selector, keys: list[int]) -> Iterator[Stored]:
    """The matching ones of some candidates; of the others only the properties are read."""
    meant = [key for key, properties in tx.selections.properties(keys) if selector.chooses(properties)]
    messages = tx.messages.find_many(meant)
    for key in keys:
        if key in messages:
            yield messages[key]


def _walk(tx: Transaction, queue: Queue, selector: Selector) -> Iterator[Stored]:
    """Scan all waiting messages by priority."""
    urgent = tx.deliveries.urgent(queue)
    yield from (stored for stored in urgent if selector.chooses(stored.properties))
    seen, after = {stored.key for stored in urgent}, 0
    while page := tx.messages.page(queue, State.UNPROCESSED, after, PAGE_ROWS):
        yield from (stored for stored in page if stored.key not in seen and selector.chooses(stored.properties))
        after = page[-1].position


def _is_first(tx: Transaction, queue: Queue, stored: Stored, lane: str, policy: Policy) -> bool:
    """Whether no earlier message of the same key waits."""
    assert policy.by is not None
    value = stored.message().properties[policy.by]
    assert value is not None
    span = Condition("=", compared(value)).span(policy.by)
    assert span is not None
    for candidate in tx.selections.candidates(queue, span, 10):
        if candidate.message == stored.key:
            return True
        other = tx.messages.find(candidate.message)
        if other is not None and lane_of(other, policy) == lane:
            return False
    return True
