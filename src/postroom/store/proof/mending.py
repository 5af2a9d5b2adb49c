"""Setting right what the rest of a store knows: indexes by their tables, places and counts by the journal.

What messages say is nowhere else: a damaged one is set aside. If the journal itself is damaged, nothing is set by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.limits import JOURNAL_PAGE_ROWS
from postroom.model.key import key_text
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.audit import Audit
from postroom.store.proof.replay import Told, told
from postroom.store.proof.verification import PLACES, Difference, beginning, tables

_QUEUES = """
SELECT id, arrived, name, kind, path, ordinal, keep, command, command_seconds, hold, retired, door, departed, processed
FROM queues
"""
_SET_QUEUE = """
UPDATE queues SET name = ?, kind = ?, path = ?, ordinal = ?, keep = ?, command = ?, command_seconds = ?, hold = ?,
    retired = ?, door = ?, arrived = ?, departed = ?, processed = ? WHERE id = ?
"""


@dataclass(frozen=True, slots=True)
class Mended:
    """What was repaired, and what is left."""

    queues: int
    places: int  # of messages
    set_aside: tuple[str, ...]  # their keys
    left: tuple[Difference, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "queue_count": self.queues,
            "corrected_count": self.places,
            "set_aside": list(self.set_aside),
            "left": [difference.as_dict() for difference in self.left],
        }


def mend(tx: Transaction) -> Mended:
    """All in one transaction, which the journal tells of."""
    tx.session.rebuild_indexes()
    audit = Audit(tx.journal.gapless())
    known = told(audit.of(tx.journal.lines()), beginning(tx), tables(tx))
    by_journal = not audit.broken and not known.broken and not known.older
    queues, places = (_set_queues(tx, known), _set_places(tx, known)) if by_journal else (0, 0)
    aside = []
    for place in tx.soundness.unsound(None, JOURNAL_PAGE_ROWS)[1]:
        stored = tx.messages.find(place.key)
        if stored is not None and stored.processed is None:
            queue = tx.queues.named(place.queue)
            if queue is not None:
                tx.messages.set_aside(queue, stored)
                aside.append(key_text(place.key))
    if queues or places or aside:
        tx.journal.add("mend", detail={"queues": queues, "places": places, "set_aside": aside})
        tx.wake()
    return Mended(queues, places, tuple(aside))


def _set_queues(tx: Transaction, known: Told) -> int:
    changed = 0
    for id, arrived, *stored in tx.session.rows(_QUEUES):
        if id not in known.queues:
            continue
        settings, counts = known.queues[id], known.counts[id]
        fits = isinstance(arrived, int) and arrived <= counts.arrivals  # sends do not touch it
        if not fits or tuple(stored) != (*settings, counts.departed, counts.processed):
            changed += tx.session.run(_SET_QUEUE, (*settings, *counts, id))
    return changed


def _set_places(tx: Transaction, known: Told) -> int:
    """Each message that the journal has elsewhere or otherwise; one that it does not know is left as it is."""
    wrong = []
    for key, *stored in tx.session.pages(PLACES, JOURNAL_PAGE_ROWS):
        place = known.messages.get(key)
        if place is not None and tuple(stored) != tuple(place):
            queue, state, position, number, last, processed = place
            wrong.append((queue, int(state), position, number, None if last == position else last, processed, key))
    tx.messages.set_places(wrong)
    return len(wrong)
