"""What a journal has come to, written down and read again."""

from __future__ import annotations

import json
import zlib

import pytest
from tests.store.places import put, queue

from postroom.errors import StoreCorrupt
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof import snapshot
from postroom.store.proof.replay import told


def test_a_replay_that_begins_at_a_snapshot_comes_to_the_same(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored = put(tx, place, "a")
    half = snapshot.read(snapshot.written(told(tx.journal.lines())))
    middle = tx.journal.newest()
    tx.messages.take(place, stored)
    put(tx, place, "b")
    whole = told(tx.journal.lines())
    rest = told((line for line in tx.journal.lines() if line.seq > middle), half)
    assert (rest.messages, rest.counts, rest.queues) == (whole.messages, whole.counts, whole.queues)
    assert snapshot.written(rest) == snapshot.written(whole)


@pytest.mark.parametrize("state", [b"no", zlib.compress(b"{}"), zlib.compress(json.dumps({"format": 99}).encode())])
def test_what_is_no_snapshot_is_damage(state: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        snapshot.read(state)
