"""One transaction has one time, and says at its end whether someone is to be woken."""

from __future__ import annotations

from tests.store.places import put, queue

from postroom.store.kernel.transaction import Transaction


def test_who_waits_is_woken_by_an_arrival_in_an_empty_queue_or_on_demand(tx: Transaction) -> None:
    place = queue(tx, "q")
    assert tx.settle() is False
    put(tx, place)
    assert tx.settle() is True
    tx.clear()
    assert tx.settle() is False
    tx.wake()
    assert tx.settle() is True
    assert tx.now == tx.session.now
