"""Repairs what can be derived: indexes from their tables, places and counts from the journal.

Bodies exist only once: a damaged message is set aside. A damaged journal is not used for repairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.limits import DIFFERENCES_MAX, JOURNAL_PAGE_ROWS
from postroom.model.key import key_text
from postroom.store.kernel.queues import ARRIVALS, DEPARTED, LOCK_ID, PROCESSED, TALLIED
from postroom.store.kernel.statement import Statement, postgres_words
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.audit import Audit
from postroom.store.proof.replay import Told, told
from postroom.store.proof.verification import Difference, beginning, places, tables

_QUEUES = (
    "SELECT q.id, "
    + Statement("q.arrived", postgres_words(ARRIVALS))
    + """, q.name, q.kind, q.path, q.ordinal, q.keep, q.command, q.command_seconds, q.hold, q.retired, q.door, """
    + DEPARTED
    + ", "
    + PROCESSED
    + " FROM queues q"
    + TALLIED
    + " ORDER BY q.id"
)
_IDS = "SELECT id FROM queues ORDER BY id"
_SET_QUEUE = """
UPDATE queues SET name = ?, kind = ?, path = ?, ordinal = ?, keep = ?, command = ?, command_seconds = ?, hold = ?,
    retired = ?, door = ?, arrived = ?, departed = ?, processed = ? WHERE id = ?
"""
_SET_TALLY = Statement("", "SELECT postroom_set_tally(?, ?, ?, ?)")


@dataclass(frozen=True, slots=True)
class Mended:
    """What was repaired, and what is left."""

    queues: int
    places: int  # of messages
    set_aside: tuple[str, ...]  # their keys
    entries: int = 0  # of selectors
    left: tuple[Difference, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "queue_count": self.queues,
            "corrected_count": self.places,
            "entry_count": self.entries,
            "set_aside": list(self.set_aside),
            "left": [difference.as_dict() for difference in self.left],
        }


def mend(tx: Transaction) -> Mended:
    """Repair in one transaction, which is recorded in the journal."""
    tx.session.rebuild_indexes()
    for (id,) in tx.session.rows(_IDS):
        tx.session.lock(LOCK_ID, id)
    audit = Audit(tx.journal.gapless())
    known = told(audit.of(tx.journal.lines()), beginning(tx), tables(tx))
    by_journal = not audit.broken and not known.broken and not known.older
    places = _set_places(tx, known) if by_journal else 0  # before the counts: what is leased is counted from its rows
    queues = _set_queues(tx, known, moved=places > 0) if by_journal else 0
    aside = []
    for place in tx.soundness.unsound(None, JOURNAL_PAGE_ROWS)[1]:
        stored = tx.messages.find(place.key)
        if stored is not None and stored.processed is None:
            queue = tx.queues.named(place.queue)
            if queue is not None:
                tx.messages.set_aside(queue, stored)
                aside.append(key_text(place.key))
    entries = _set_entries(tx)
    if queues or places or aside or entries:
        tx.journal.add("mend", detail={"queues": queues, "places": places, "set_aside": aside, "entries": entries})
        tx.wake()
    return Mended(queues, places, tuple(aside), entries)


def _set_entries(tx: Transaction) -> int:
    """Rebuild the entries of selectors if one is missing, wrong or superfluous."""
    missing, left_over = tx.selections.differences(DIFFERENCES_MAX)
    wrong = {(entry.message, entry.name) for entry in (*missing, *left_over)}
    if wrong:
        tx.selections.rebuild()
    return len(wrong)


def _set_queues(tx: Transaction, known: Told, *, moved: bool) -> int:
    changed, counted = 0, tx.session.counts_arrivals
    for id, arrived, *stored in tx.session.rows(_QUEUES):
        if id not in known.queues:
            continue
        settings, counts = known.queues[id], known.counts[id]
        fits = isinstance(arrived, int) and arrived <= counts.arrivals  # sends do not touch it
        if not counted:
            fits = arrived == counts.arrivals
        same = fits and tuple(stored) == (*settings, counts.departed, counts.processed)
        if not same:
            changed += tx.session.run(_SET_QUEUE, (*settings, *counts, id))
        if not counted and (moved or not same):
            tx.session.run(_SET_TALLY, (id, *counts))
    return changed


def _set_places(tx: Transaction, known: Told) -> int:
    """Correct each message that differs from the journal; unknown ones stay."""
    wrong = []
    for key, stored in places(tx, known):
        place = known.messages.get(key)
        if place is not None and stored != place:
            number = place.number if tx.session.counts_arrivals else known.came.get(key, stored.number)
            last = None if place.last == place.position else place.last
            wrong.append((*place._replace(state=int(place.state), number=number, last=last), key))  # type: ignore[arg-type]
    tx.messages.set_places(wrong)
    return len(wrong) + _set_leases(tx, known)


def _set_leases(tx: Transaction, known: Told) -> int:
    """Restore leases that only the journal has, as expired: the next receive takes the message back."""
    there = {delivery.fence for delivery in tx.deliveries.all()}
    lost = {fence: key for fence, key in known.leases.items() if fence not in there}
    for fence, key in lost.items():
        tx.deliveries.add_lost(fence, key, known.messages[key].queue)
    for fence in there - set(known.leases):
        tx.deliveries.forget(fence)
    return len(lost) + len(there - set(known.leases))
