"""What a sender may ask for a message, and how much a queue may hold; on both stores."""

from __future__ import annotations

from time import sleep
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid, QueueFull
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom


def leased(room: Postroom, queue: str = "q") -> LeasedMessage:
    message = room.receive(queue, lease=True).message
    assert message is not None
    return message


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    return room


# --- single messages ---


def test_urgent_messages_come_first_in_order(q: Postroom) -> None:
    for body, priority in (("a", 0), ("b", 5), ("c", 9), ("d", 5), ("e", 0)):
        q.send("q", body, priority=priority)
    first = q.receive("q").message
    assert first is not None
    assert first.body == "c"
    assert [leased(q).body for _ in range(4)] == ["b", "d", "a", "e"]
    sound(q)


def test_a_delayed_message_keeps_its_place_until_it_is_due(q: Postroom) -> None:
    q.send("q", "later", delay=0.8)
    q.send("q", "now")
    assert (q.count("q").queues[0].unprocessed, q.count("q").queues[0].delayed) == (1, 1)
    sound(q)
    sleep(0.85)
    assert [leased(q).body for _ in range(2)] == ["later", "now"]
    sound(q)


def test_one_shot_receives_wait_for_delayed_messages(q: Postroom) -> None:
    q.send("q", "later", delay=0.8)
    assert q.receive("q").message is None
    got = q.receive("q", wait=10).message
    assert got is not None
    assert got.body == "later"
    sound(q)


@pytest.mark.parametrize(("expired", "left"), [("drop", 0), ("dead-letters", 1)])
def test_expired_messages_are_not_received(q: Postroom, expired: str, left: int) -> None:
    q.queues.create("q.dead")
    q.consumers.set_policy("q", expired=expired)
    key = q.send("q", "old", expires=0.01).key
    q.send("q", "young", expires=600)
    sleep(0.05)
    assert leased(q).body == "young"
    assert q.receive("q").message is None
    assert [message.key for message in q.peek("q.dead")] == [key] * left
    sound(q)


def test_reply_to_and_correlation_are_properties(q: Postroom) -> None:
    q.send("q", "x", reply_to="answers", correlation="17", properties={"a": 1})
    assert leased(q).properties == {"a": 1, "correlation": "17", "reply_to": "answers"}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"priority": 10}, "priority"),
        ({"delay": -1}, "delay"),
        ({"expires": 1e12}, "expires"),
        ({"expires": 0}, "expires: seconds, more than 0"),
        ({"expires": 1e-9}, "expires: seconds, more than 0"),
    ],
)
def test_what_makes_no_sense_for_a_message_is_refused(q: Postroom, options: dict[str, Any], name: str) -> None:
    with pytest.raises(ArgumentInvalid, match=name):
        q.send("q", "x", **options)
    q.consumers.set_policy("q", order="strict")
    with pytest.raises(ArgumentInvalid, match="strict"):
        q.send("q", "x", delay=5)


# --- limits ---


def test_a_full_queue_refuses(q: Postroom) -> None:
    q.consumers.set_policy("q", max_messages=2)
    q.send_many("q", ["1", "2"])
    first = leased(q)
    for send in (lambda: q.send("q", "3"), lambda: q.send_many("q", ["3"]), lambda: q.send("q", "3", wait=0.1)):
        with pytest.raises(postroom.errors.QueueFull, match="may have 2 messages"):
            send()
    assert q.queues.distribute(["q"], "3").status == "94"
    first.done()
    q.send("q", "3", wait=5)
    sound(q)


def test_the_oldest_give_way_in_a_full_queue(q: Postroom) -> None:
    q.consumers.set_policy("q", max_messages=2, over="dead-letters")
    for body in "12345":
        q.send("q", body)
    assert [message.body for message in q.peek("q")] == ["4", "5"]
    assert [message.body for message in q.peek("q.dead")] == ["1", "2", "3"]
    sound(q)


@pytest.mark.parametrize("limit", [{"max_messages": 2}, {"max_bytes": 2}], ids=["messages", "bytes"])
def test_more_than_a_queue_may_have_come_together_as_they_come_one_by_one(q: Postroom, limit: dict[str, int]) -> None:
    q.consumers.set_policy("q", **limit, over="dead-letters")  # type: ignore[arg-type]
    q.send("q", "0")
    assert len(q.send_many("q", list("12345")).keys) == 5
    assert [message.body for message in q.peek("q")] == ["4", "5"]
    assert [message.body for message in q.peek("q.dead")] == ["0", "1", "2", "3"]
    q.consumers.set_policy("q", over="refuse")
    with pytest.raises(postroom.errors.QueueFull):
        q.send_many("q", list("678"))
    if "max_bytes" in limit:
        q.consumers.set_policy("q", over="dead-letters")
        with pytest.raises(postroom.errors.QueueFull):
            q.send_many("q", ["6", "too much", "7"])
    assert [message.body for message in q.peek("q")] == ["4", "5"]
    sound(q)


def test_messages_that_wait_too_long_close_their_queue(q: Postroom) -> None:
    q.consumers.set_policy("q", max_age=0.05)
    q.send("q", "old")
    sleep(0.1)
    with pytest.raises(postroom.errors.QueueFull, match="oldest"):
        q.send("q", "new")
    q.consumers.set_policy("q", over="dead-letters")
    q.send("q", "new")
    assert [message.body for message in q.peek("q")] == ["new"]
    sound(q)


# --- bytes ---


def test_a_queue_that_has_enough_bytes_refuses(q: Postroom) -> None:
    q.consumers.set_policy("q", max_bytes=10)
    q.send("q", "12345")
    q.send("q", "ü2")  # three bytes
    for send in (lambda: q.send("q", "123"), lambda: q.send_many("q", ["1", "2", "3"]), lambda: q.send("q", "x" * 11)):
        with pytest.raises(postroom.errors.QueueFull, match="may have 10 bytes and has 8"):
            send()
    q.send("q", "12")
    first = leased(q)
    with pytest.raises(postroom.errors.QueueFull):  # what is leased is still in the queue
        q.send("q", "1")
    first.done()
    q.send("q", "12345", wait=5)
    sound(q)


def test_bytes_are_counted_whatever_way_messages_came_and_went(q: Postroom) -> None:
    q.queues.create("other")
    q.consumers.set_policy("q", max_bytes=10)
    q.send("q", "1234")
    q.send("other", "123456")
    q.consumers.move("other", to="q")  # limits hold for sends, and what was moved counts
    with pytest.raises(postroom.errors.QueueFull, match="has 10;"):
        q.send("q", "1")
    assert q.receive("q").message
    q.send("q", "1", delay=3_600)
    q.consumers.purge("q")
    q.send("q", "1234567890")
    with pytest.raises(ValueError, match="again"):
        q.receive("q", deliver=_refuse)
    with pytest.raises(postroom.errors.QueueFull, match="has 10;"):
        q.send("q", "1")
    sound(q)


def _refuse(received: Any) -> None:
    raise ValueError("again")


def test_the_oldest_give_way_until_there_are_few_bytes(q: Postroom) -> None:
    q.consumers.set_policy("q", max_bytes=6, over="dead-letters")
    q.send("q", "urgent"[:2], priority=9)
    for body in ("bb", "cc", "dddd"):
        q.send("q", body)
    assert [message.body for message in q.peek("q.dead")] == ["ur", "bb"]  # the oldest, not the most urgent
    with pytest.raises(postroom.errors.QueueFull):
        q.send("q", "1234567")
    assert [message.body for message in q.peek("q")] == ["cc", "dddd"]
    sound(q)


def test_the_oldest_give_way_and_not_the_most_urgent(q: Postroom) -> None:
    q.consumers.set_policy("q", max_messages=2, over="dead-letters")
    q.send("q", "old")
    q.send("q", "urgent", priority=9)
    q.send("q", "new")
    assert [message.body for message in q.peek("q.dead")] == ["old"]
    sound(q)


def test_a_full_queue_says_how_many_were_to_come(q: Postroom) -> None:
    q.consumers.set_policy("q", max_messages=3)
    q.send("q", "x")
    with pytest.raises(QueueFull, match=r"may have 3 messages and has 1; 3 more were to come$"):
        q.send_many("q", ["x"] * 3)
    q.send_many("q", ["x"] * 2)
    with pytest.raises(QueueFull, match=r"has 3; 1 more was to come$"):
        q.send("q", "x")
    q.receive_many("q", count=2, lease=60)[0].done()
    assert q.receive("q").message is not None
    with pytest.raises(QueueFull, match=r"has 1; 5 more were to come, too many for one send"):
        q.send_many("q", ["x"] * 5)
