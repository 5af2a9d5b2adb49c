"""The handle of a queue has the verbs."""

from __future__ import annotations

from postroom.queues.results import Received
from postroom.room import Postroom


def body(received: Received) -> str:
    assert received.message is not None
    return received.message.body


def test_the_handle_of_a_queue_has_the_verbs(room: Postroom) -> None:
    queue = room.queues.create("q", password="pw")
    queue.send("x")
    assert queue.accept().queues[0].unprocessed == 1
    assert [message.body for message in queue.info()] == ["x"]
    assert queue.disable("pw").changed == ("q",)
    assert queue.enable("pw").changed == ("q",)
    assert body(queue.receive()) == "x"
    assert len(queue.history().messages) == 1
    assert repr(room.queue("a", "b")) == "<queue a b>"
