"""Receives: what was passed, what ends a message, what a held level does."""

from __future__ import annotations

import pytest

from postroom.errors import (
    QueueHeld,
)
from postroom.queues.results import Received
from postroom.room import Postroom


def body(received: Received) -> str:
    assert received.message is not None
    return received.message.body


def test_a_receive_over_a_subtree_names_each_empty_queue_it_passed(tree: Postroom) -> None:
    tree.send("INP_0003", "last")
    received = tree.receive("MASTER-QUEUE", "SUBQ-3")
    assert (received.passed, body(received)) == (("INP_0001", "INP_0002"), "last")
    nothing = tree.receive("MASTER-QUEUE")
    assert nothing.message is None
    assert nothing.passed == ("INP_0000", "INP_0001", "INP_0002", "INP_0003")
    assert nothing.as_dict() == {
        "status": "00",
        "message": None,
        "passed": ["INP_0000", "INP_0001", "INP_0002", "INP_0003"],
        "end_of_message": False,
    }


def test_a_whole_receive_is_the_end_of_its_message_and_sets_its_time(tree: Postroom) -> None:
    tree.send("INP_0000", "x")
    received = tree.receive("INP_0000")
    assert received.end_of_message
    assert received.message is not None
    assert received.message.processed is not None
    assert received.message.processed >= received.message.created
    (kept,) = tree.queues.history("INP_0000")
    assert kept == received.message


def test_held_queues_below_a_level_are_passed_and_named(tree: Postroom) -> None:
    tree.send("INP_0000", "held")
    tree.send("INP_0002", "free")
    tree.queues.disable("INP_0000", password="QUE")
    received = tree.receive("MASTER-QUEUE")
    assert (body(received), received.held, received.passed) == ("free", ("INP_0000",), ("INP_0001",))
    assert received.as_dict()["held_queues"] == ["INP_0000"]
    with pytest.raises(QueueHeld):
        tree.receive("MASTER-QUEUE", "SUBQ-1")
