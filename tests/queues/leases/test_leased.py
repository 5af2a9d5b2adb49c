"""What a leased message says of itself."""

from __future__ import annotations

import pytest

from postroom.queues.leases.leased import Leased
from postroom.room import Postroom


def test_a_leased_message_is_a_message_with_a_lease(room: Postroom) -> None:
    room.queues.create("q")
    key = room.send("q", {"n": 1}).key
    received = room.receive("q", lease=60)
    message = received.message
    assert message is not None
    assert (message.key, message.value, message.attempts, message.ended) == (key, {"n": 1}, 1, False)
    assert 50 < (message.until - message.created).total_seconds() < 70
    shape = received.as_dict()["message"]
    assert (shape["key"], shape["processed"]) == (key, None)
    assert shape["lease"] == message.lease
    assert repr(message) == f"<message {key} in q, lease {message.lease}, attempt 1>"
    message.done()
    assert message.ended
    assert room.show(key).processed is not None


@pytest.mark.parametrize("then", ["lease", "release", "fail"])
def test_a_message_counts_as_processed_when_its_lease_was_done_and_not_before(room: Postroom, then: str) -> None:
    room.queues.create("q")
    room.consumers.set_policy("q", attempts=9, backoff=3600)
    key = room.send("q", "x").key
    message = room.receive("q", lease=60).message
    assert message is not None
    if then == "release":
        message.release(delay=600)
    if then == "fail":
        message.fail("no")
    assert room.receive("q").message is None
    assert (room.show(key).processed, room.show(key).as_dict()["processed"]) == (None, None)
    assert not room.journal.why(key).processed
    if then == "lease":
        message.done()
        assert room.show(key).processed is not None
        assert room.journal.why(key).processed


def test_nothing_to_lease_is_false(room: Postroom) -> None:
    room.queues.create("q")
    received = room.receive("q", lease=60)
    assert not received
    assert received.as_dict() == {"status": "00", "message": None} == Leased(None).as_dict()
