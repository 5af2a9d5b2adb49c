"""Hashes, chains and counts, looked at one by one."""

from __future__ import annotations

from tests.store.places import again, put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.soundness import Gap, Place


def test_messages_that_no_longer_say_what_was_sent_are_told(tx: Transaction) -> None:
    place = queue(tx, "q")
    some = [put(tx, place, str(number)) for number in range(3)]
    tx.session.run("UPDATE messages SET body = 'forged' WHERE key = ?", (some[0].key,))
    assert tx.soundness.unsound(None, 10) == (3, [Place(some[0].key, "q")])
    assert tx.soundness.unsound(2, 10) == (2, []), "the newest alone"
    tx.messages.set_aside(place, some[0])
    assert tx.soundness.unsound(None, 10) == (2, [])
    assert tx.soundness.set_aside(10) == [Place(some[0].key, "q")]


def test_a_way_with_a_gap_is_told(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored, other = put(tx, place), put(tx, place)
    tx.messages.take(place, stored)
    assert tx.soundness.torn(None, tx.journal.newest(), 10) == []
    tx.session.run("DELETE FROM journal WHERE seq = ?", (stored.position,))
    assert tx.soundness.torn(None, tx.journal.newest(), 10) == [Gap(stored.key, None)]
    tx.session.run("DELETE FROM journal WHERE seq = ?", (other.position,))
    assert set(tx.soundness.torn(None, tx.journal.newest(), 10)) == {Gap(stored.key, None), Gap(other.key, None)}


def test_messages_are_counted_by_queue_and_state(tx: Transaction) -> None:
    place = queue(tx, "q")
    taken, _ = put(tx, place), put(tx, place)
    tx.messages.take(place, taken)
    assert tx.soundness.counts() == {(place.id, 0): 1, (place.id, 1): 1}
    assert tx.soundness.since(again(tx, place), tx.now - 1) == 1
    assert tx.soundness.since(again(tx, place), tx.now) == 0
