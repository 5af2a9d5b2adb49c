"""Numbers of arrivals, and departures that are written once."""

from __future__ import annotations

import pytest
from tests.store.places import again, queue

from postroom.errors import StoreCorrupt
from postroom.store.kernel.transaction import Transaction


def test_arrivals_are_numbered_and_departures_written_at_the_end(tx: Transaction) -> None:
    place = queue(tx, "q")
    counted = tx.session.counts_arrivals
    assert list(tx.counts.arrive(place, (71, 72))) == ([1, 2] if counted else [71, 72])
    assert list(tx.counts.arrive(place, (75, 77, 78))) == ([3, 4, 5] if counted else [75, 77, 78])
    tx.counts.depart(place, 2, 2, kept=True)
    assert tx.queues.locked(place.id).departed == 0
    now = again(tx, place)
    assert (now.departed, now.processed) == (2, 2)
    assert now.arrivals == (2 if counted else 5), "the highest that has left is known to have come"
    tx.counts.purge(now, 1)
    tx.counts.come_back(now)
    tx.counts.keep(now)
    now = again(tx, place)
    assert (now.departed, now.processed) == (1, 2)


def test_a_queue_that_becomes_non_empty_wakes_and_notes_its_command_line(tx: Transaction) -> None:
    tx.queues.create("commanded", "rules", path="commanded", command="true", command_seconds=9)
    place = queue(tx, "commanded")
    tx.counts.arrive(place, (71,))
    assert tx.counts.settle() is True
    (effect,) = tx.outbox.all()
    assert effect.payload == {"command": "true", "queue": "commanded", "path": "commanded", "seconds": 9}
    tx.counts.clear()
    assert tx.counts.settle() is False


def test_more_departures_than_messages_are_damage(tx: Transaction) -> None:
    tx.counts.depart(queue(tx, "q"), 1, kept=False)
    with pytest.raises(StoreCorrupt, match="would hold -1 messages"):
        tx.counts.settle()
