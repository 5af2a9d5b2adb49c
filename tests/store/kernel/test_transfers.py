"""A message between two stores: three commits, each of which may be repeated. Here the two are queues of one store."""

from __future__ import annotations

import pytest
from tests.store.places import again, found, put, queue

from postroom.errors import StoreCorrupt
from postroom.store.kernel.queues import LEAVING
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import HANDED_OVER


def test_a_parcel_leaves_is_let_go_and_comes_back_under_its_key(tx: Transaction) -> None:
    desk = queue(tx, "desk")
    stored = put(tx, desk, "letter")
    parcel = tx.transfers.depart(stored, desk, "ship", "ann", "bob", 0, '{"sent":1}')
    assert (parcel.hop, parcel.stored.queue, parcel.stored.properties) == (1, LEAVING, '{"sent":1}')
    assert parcel.stored.sound
    parcel = tx.transfers.noted(parcel, 4)
    assert tx.transfers.pending() == [parcel] == [tx.transfers.still_leaving(stored.key)]
    tx.settle()
    tx.counts.clear()
    seq = tx.transfers.conclude(parcel)
    assert seq is not None
    assert tx.transfers.conclude(parcel) is None, "it was let go"
    assert (tx.messages.find(stored.key), tx.transfers.pending()) == (None, [])
    assert tx.transfers.arrived(parcel) is None
    here = tx.transfers.arrive(parcel, again(tx, desk), 7)
    assert found(tx, stored.key) == here
    assert tx.transfers.arrived(parcel) == 7
    assert [event.verb for event in tx.journal.trace(stored.key)] == ["put", "ship", HANDED_OVER, "ship"]
    assert tx.transfers.depart(here, again(tx, desk), "ship", "bob", "ann", 0).hop == 2


def test_a_parcel_that_does_not_match_its_hash_is_not_taken_in(tx: Transaction) -> None:
    desk = queue(tx, "desk")
    parcel = tx.transfers.depart(put(tx, desk), desk, "ship", "ann", "bob", 0)
    with pytest.raises(StoreCorrupt, match="does not match its hash"):
        tx.transfers.arrive(parcel._replace(stored=parcel.stored._replace(body="forged")), desk, 0)
