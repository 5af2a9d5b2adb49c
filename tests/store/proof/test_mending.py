"""What the journal knows is set right: rows of queues, places of messages; what is damaged is set aside."""

from __future__ import annotations

import pytest
from tests.store.places import found, put, queue

from postroom.model.key import key_text
from postroom.room import Postroom
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


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM selected WHERE name = 'region'",
        "UPDATE selected SET word = 'US' WHERE name = 'region'",
        "UPDATE selected SET number = 9 WHERE name = 'total'",
        "UPDATE selected SET position = position + 1000",
        "INSERT INTO selected SELECT * FROM selected",
        "UPDATE selected SET message = message + 1000",
        "UPDATE selected SET queue = 77 WHERE name = 'total'",
    ],
)
def test_entries_of_selectors_are_found_and_made_anew(room: Postroom, damage: str) -> None:
    room.queues.create("q")
    keys = [room.send("q", str(n), properties={"region": "EU", "total": n, "sent": True}).key for n in range(4)]
    where = "region = 'EU' and total > 0"
    assert room.receive("q", where=where).message.key == keys[1]  # type: ignore[union-attr]
    assert room.journal.verify().differences == ()
    room.store.transact("mend", lambda tx: tx.session.run(damage))
    found = room.journal.verify().differences
    assert found
    assert all(difference.what.startswith("selector entry ") for difference in found), found
    mended = room.journal.mend()
    assert mended.entries > 0
    assert mended.left == ()
    assert mended.as_dict()["entry_count"] == mended.entries
    assert room.receive("q", where=where).message.key == keys[2]  # type: ignore[union-attr]
    assert room.journal.mend().entries == 0
