"""Bodies on their way to a server: digits, null and the words of a send are what they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.interfaces.http.conftest import Two

from postroom import errors
from postroom.model.moment import to_microseconds

_EXACT = '{"n": 1.000000000000000000000000001, "big": 123456789012345678901234567890}'


def test_a_body_is_stored_and_read_as_it_was_written(two: Two) -> None:
    queue = two.queue()
    two.it.send(queue, _EXACT, format="json")
    two.it.send(queue, {"n": Decimal("1.10"), "day": datetime(2026, 1, 2, tzinfo=UTC)})
    two.it.send_many(queue, ["text", {"a": [1, 2.5]}, b"bytes"])
    two.it.send(queue, "<a>\u00e9</a>", format="xml", type=None, properties={"p": 1, "q": None})
    bodies = [each.body for each in two.it.peek(queue)]
    assert bodies[0] == _EXACT
    assert bodies == [each.body for each in two.here.peek(queue)]
    assert [each.format.value for each in two.it.peek(queue)] == ["json", "json", "text", "json", "text", "xml"]
    assert two.it.receive(queue).message == two.here.queues.history(queue).messages[0]
    assert [each.body for each in two.it.queues.history(queue)] == [_EXACT]


def test_a_message_goes_on_with_its_digits_and_its_cause(two: Two) -> None:
    first, second = two.queue(), two.queue()
    two.it.send(first, _EXACT, format="json", properties={"x": 1})
    message = two.it.receive(first).message
    assert message is not None
    two.it.send(second, message)
    found = two.it.peek(second).messages[0]
    assert (found.body, found.format, found.cause) == (_EXACT, message.format, message.key)


def test_wishes_of_a_send(two: Two) -> None:
    queue = two.queue()
    two.it.send(queue, "low")
    two.it.send(queue, "high", priority=9)
    two.it.send(queue, "later", delay=3600)
    two.it.send(queue, "at", at=datetime.now(UTC) + timedelta(hours=1))
    two.it.send(queue, "answer to", reply_to="back", correlation="7", expires=3600)
    counted = two.it.count(queue).queues[0]
    assert (counted.unprocessed, counted.delayed) == (3, 2)
    received = [two.it.receive(queue).message for _ in range(3)]
    assert [each and each.body for each in received] == ["high", "low", "answer to"]
    assert received[2] is not None
    assert received[2].properties == {"reply_to": "back", "correlation": "7"}
    queue = two.queue()
    two.it.consumers.set_policy(queue, max_messages=1)
    two.it.send(queue, "one")
    with pytest.raises(errors.QueueFull):
        two.it.send(queue, "two", wait=0.1)


def test_a_time_is_the_same_with_any_zone_and_is_utc_without_one(two: Two) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    oslo = at.astimezone(timezone(timedelta(hours=2)))
    for given in (at, oslo, at.replace(tzinfo=None)):
        queue = two.queue()
        key = two.it.send(queue, "later", at=given).key
        (put,) = two.it.trace(key)
        assert put.detail == {"due": to_microseconds(at)}, given


def test_null_is_a_body(two: Two) -> None:
    queue = two.queue()
    two.it.send(queue, None)
    received = two.it.receive(queue).message
    assert received is not None
    assert (received.body, received.format, received.value) == ("null", "json", None)
