"""Keys come from a counter in blocks that grow; what was not used is a gap and never repeated."""

from __future__ import annotations

import pytest

from postroom.errors import KeysExhausted
from postroom.limits import KEY_TAIL
from postroom.store.kernel.keys import Keys
from postroom.store.kernel.transaction import Transaction


def test_keys_grow_and_two_dispensers_share_no_key(tx: Transaction) -> None:
    first, second = Keys(tx.session), Keys(tx.session)
    given = [keys.next() for _ in range(20) for keys in (first, second)]
    assert len(set(given)) == len(given)
    some = first.take(100)
    assert list(some) == list(range(some[0], some[0] + 100)), "those of one call are in a row"
    assert some[0] > max(given)
    assert first.used


def test_a_key_that_was_not_used_is_given_again_and_a_block_that_was_rolled_back_is_not(tx: Transaction) -> None:
    keys = Keys(tx.session)
    keys.take(1)
    keys.take(2)
    key = keys.next()
    keys.give_back(key)
    assert keys.next() == key
    keys.rolled_back()
    assert keys.ready() is None


def test_a_block_of_another_store_ends(tx: Transaction) -> None:
    keys = Keys(tx.session)
    head = keys.give_block()
    keys.use_block(head)
    assert keys.lent
    assert keys.next() == head * KEY_TAIL + 1
    with pytest.raises(KeysExhausted):
        keys.take(KEY_TAIL)
    keys.use_block(head + 1, needed=1)  # there are enough
    assert keys.next() == head * KEY_TAIL + 2
