"""What a message was made for, and what was made for it, also when it is gone."""

from __future__ import annotations

import pytest
from tests.store.places import put, queue

from postroom.errors import MessageUnknown
from postroom.model.message import Draft
from postroom.store.kernel.causes import Origin
from postroom.store.kernel.transaction import Transaction


def test_causes_and_effects_are_known_of_messages_that_are_gone(tx: Transaction) -> None:
    place = queue(tx, "q")
    cause = put(tx, place, "cause", type="T")
    keys = tx.messages.put_many(place, [Draft.of("a"), Draft.of("b")], cause.key)
    tx.messages.remove(place, cause, "withdraw")
    assert tx.causes.origin(cause.key) == Origin(None, "T")
    assert tx.causes.origin(keys[0]) == Origin(cause.key, None)
    assert tx.causes.effects(cause.key, 10) == list(keys)
    assert tx.causes.effects(cause.key, 1) == [keys[0]]
    tx.causes.require(cause.key)
    with pytest.raises(MessageUnknown):
        tx.causes.require(999_999_999)
