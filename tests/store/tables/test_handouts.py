"""A message that was taken and not confirmed comes back to its place, kept or not."""

from __future__ import annotations

import pytest
from tests.store.places import again, found, put, queue

from postroom.limits import HANDOUT_SECONDS
from postroom.model.moment import in_microseconds
from postroom.store.kernel.journal import RETURN
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.queues import Keep
from postroom.store.kernel.transaction import Transaction


@pytest.mark.parametrize("keep", [Keep.ALL, Keep.NOTHING, Keep.SLICED])
def test_what_nobody_confirms_is_back_as_it_was(tx: Transaction, keep: Keep) -> None:
    place = queue(tx, "q", keep=keep)
    stored, later = put(tx, place, "first"), put(tx, place, "later")
    tx.handouts.add(place, stored, "elsewhere/1/1")
    assert tx.handouts.copy(stored.key) == stored
    tx.messages.take(place, stored)
    (handout,) = tx.handouts.all(again(tx, place))
    assert handout.expires == tx.now + in_microseconds(HANDOUT_SECONDS)
    assert not handout.is_over(handout.expires)
    assert handout.is_over(handout.expires + 1), "of another machine, only the time tells"
    assert tx.handouts.give_back(handout, "it ended")
    assert not tx.handouts.give_back(handout, "it ended")
    back = found(tx, stored.key)
    assert back == stored._replace(last=back.last)
    now = again(tx, place)
    assert (now.unprocessed, now.processed) == (2, 0)
    assert tx.messages.head(now) == back
    assert [event.verb for event in tx.journal.trace(stored.key)] == ["put", "take", RETURN]
    assert found(tx, later.key) == later


def test_a_confirmation_is_the_owners_and_counts_once(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored = put(tx, place)
    tx.handouts.add(place, stored, process_token())
    assert tx.handouts.over() == []
    assert not tx.handouts.confirm(stored.key, "another")
    assert tx.handouts.confirm(stored.key, process_token())
    assert not tx.handouts.confirm(stored.key, process_token())
    assert tx.handouts.copy(stored.key) is None
    assert not tx.handouts.put_back(place.id, stored, "it is not among the taken")
