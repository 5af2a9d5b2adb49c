"""The verbs of queues, and a queue as an object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, QueueHeld, QueueUnknown
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_handle_has_the_verbs_of_its_queue(small: Postroom) -> None:
    queue = small.queues.create("q", password="pw")
    assert repr(queue) == "<queue q>"
    assert repr(small.queue("A", "B")) == "<queue A B>"
    queue.send({"n": 1}, properties={"p": 1})
    (message,) = queue.peek(limit=1)
    assert (message.body, message.properties) == ('{"n":1}', {"p": 1})
    queue.disable("pw", input_only=True)
    with pytest.raises(QueueHeld):
        queue.send("x")
    queue.enable("pw")
    assert queue.receive()
    assert [each.key for each in queue.history()] == [message.key]
    assert (queue.count().queues[0].unprocessed, queue.accept().queues[0].processed) == (0, 1)


def test_a_handle_of_nothing_is_refused_when_it_is_used(small: Postroom) -> None:
    small.queues.create("q")
    with pytest.raises(QueueUnknown):
        small.queue("other").count()


def test_both_halves_of_a_hold_exclude_each_other(small: Postroom) -> None:
    small.queues.create("q", password="pw")
    with pytest.raises(ArgumentInvalid, match="it excludes input_only"):
        small.queues.disable("q", password="pw", input_only=True, output_only=True)
    assert small.count("q").queues[0].held is False


def test_a_message_that_is_sent_again_is_the_cause_of_the_new_one(small: Postroom) -> None:
    small.queues.create("a")
    small.queues.create("b")
    first = small.send("a", "x", properties={"p": 1})
    received = small.receive("a").message
    assert received is not None
    second = small.send("b", received)
    assert small.show(second.key).cause == first.key
    third = small.send("b", received, cause=second.key)
    assert small.show(third.key).cause == second.key


def test_one_body_is_not_many(small: Postroom) -> None:
    small.queues.create("q")
    for body in ("text", b"bytes"):
        with pytest.raises(ArgumentInvalid, match="a list of bodies"):
            small.send_many("q", body)
    assert list(small.send_many("q", []).keys) == []


def test_a_queue_has_a_password_of_its_own_or_of_a_level_above(small: Postroom) -> None:
    small.queues.create("open")
    small.queues.create("closed", password="pw")
    assert (small.queues.has_password("open"), small.queues.has_password("closed")) == (False, True)
    assert small.queues.set_mode("open", keep_processed=False) == ["open"]
    assert small.queues.set_mode("open", keep_processed=False) == []
