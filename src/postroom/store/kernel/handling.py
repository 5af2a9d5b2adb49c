"""Many messages of stations at once, each edited and moved in one event, for steps of procedures.

If one message is no longer where it was, nothing happens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from postroom.model.message import IN_SPHERE, Stored
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import numbered
from postroom.store.kernel.message_rows import arrived, new_row
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import Row
from postroom.store.kernel.transaction import Transaction


class Move(NamedTuple):
    """A message moves to a queue, or stays, optionally with another body."""

    stored: Stored
    source: Queue
    target: Queue
    verb: str
    body: str
    properties: str
    actor: str
    detail: str


class New(NamedTuple):
    key: int
    queue: Queue
    type: str
    properties: str
    body: str
    cause: int
    actor: str
    detail: str


def apply(tx: Transaction, changes: Sequence[Move | New]) -> list[Stored]:
    """Make the changes in order; returns each changed message. Queues must be locked."""
    if not changes:
        return []
    seqs, now = tx.session.journal_numbers(len(changes)), tx.now
    numbers = _numbers(tx.counts, seqs, changes)
    made: list[Stored] = []
    lines: list[Row] = []
    rewritten: list[Row] = []
    fresh: list[Row] = []
    editions: list[Row] = []
    gone: defaultdict[int, list[int]] = defaultdict(list)  # the numbers of those that leave a queue
    used: list[int] = []
    for seq, change in zip(seqs, changes, strict=True):
        if type(change) is Move:
            old, source, target, verb, body, properties, actor, detail = change
            key, here, there, number = old.key, source.id, target.id, next(numbers[target.id])
            draft = (body, old.format, old.type, properties)
            new = arrived(key, target.name, old.created, draft, old.cause, seq, number)
            rewritten.append((there, seq, number, body, properties, new.hash, key, here, old.position))
            lines.append(numbered(seq, now, verb, key, old.last, here, there, actor, detail))
            gone[here].append(old.number)
            if body != old.body:
                editions.append((key, seq, old.body, old.properties))
            if IN_SPHERE in old.properties:
                used.append(key)
        else:
            assert type(change) is New
            key, queue, kind, properties, body, cause, actor, detail = change
            new = arrived(key, queue.name, now, (body, "json", kind, properties), cause, seq, next(numbers[queue.id]))
            fresh.append(new_row(queue.id, new))
            lines.append(numbered(seq, now, "create", key, None, None, queue.id, actor, detail))
        made.append(new)
    for queue in {change.source.id: change.source for change in changes if type(change) is Move}.values():
        tx.counts.depart(queue, max(gone[queue.id]), len(gone[queue.id]), kept=False)
    if not tx.messages.rewrite(rewritten):
        raise Stale
    tx.messages.insert(fresh)
    tx.journal.add_lines(lines)
    tx.messages.keep_editions(editions)
    if used:  # a procedure that handles a message is done with it
        tx.spheres.processed(used)
    return made


def _numbers(counts: Counts, seqs: Sequence[int], changes: Sequence[Move | New]) -> dict[int, Iterator[int]]:
    """Arrival numbers in each queue; a message that stays becomes the newest there, too."""
    targets = [change.target if type(change) is Move else change[1] for change in changes]
    lines: defaultdict[int, list[int]] = defaultdict(list)
    for seq, queue in zip(seqs, targets, strict=True):
        lines[queue.id].append(seq)
    queues = {queue.id: queue for queue in targets}
    return {id: iter(counts.arrive(queue, lines[id])) for id, queue in queues.items()}
