"""What the journal knows is set right: rows of queues, places of messages; what is damaged is set aside."""

from __future__ import annotations

from tests.store.places import found, put, queue

from postroom.model.key import key_text
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.mending import mend
from postroom.store.proof.verification import verified


def test_counts_and_places_are_set_by_the_journal(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored, taken, damaged = put(tx, place, "a"), put(tx, place, "b"), put(tx, place, "c")
    tx.messages.take(place, taken)
    tx.settle()
    tx.counts.clear()
    tx.session.run("UPDATE queues SET departed = 9, path = 'elsewhere' WHERE id = ?", (place.id,))
    tx.session.run("UPDATE messages SET position = 1, number = 9 WHERE key = ?", (stored.key,))
    tx.session.run("UPDATE messages SET body = 'forged' WHERE key = ?", (damaged.key,))
    assert verified(tx).differences
    mended = mend(tx)
    assert (mended.queues, mended.places, mended.set_aside) == (1, 1, (key_text(damaged.key),))
    assert found(tx, stored.key) == stored
    assert tx.messages.is_set_aside(damaged.key)
    tx.settle()
    tx.counts.clear()
    left = [difference for difference in verified(tx).differences if "no longer says" not in str(difference.tables)]
    assert left == []
    assert mend(tx).as_dict()["corrected_count"] == 0


def test_by_a_damaged_journal_nothing_is_set(tx: Transaction) -> None:
    place = queue(tx, "q")
    put(tx, place)
    tx.session.run("UPDATE journal SET actor = 'forged' WHERE verb = 'put'")
    tx.session.run("UPDATE queues SET departed = 9 WHERE id = ?", (place.id,))
    assert mend(tx).queues == 0
