"""Looking at queues: count, peek and history; nothing is released."""

from __future__ import annotations

import pytest

from postroom.errors import (
    ArgumentInvalid,
    QueueUnknown,
)
from postroom.room import Postroom


def test_info_releases_nothing_and_can_be_limited(tree: Postroom) -> None:
    tree.send_many("INP_0001", ["a", "b"])
    tree.send("INP_0002", "c")
    assert [message.body for message in tree.queues.info("MASTER-QUEUE")] == ["a", "b", "c"]
    assert [message.body for message in tree.queues.info("MASTER-QUEUE", limit=2)] == ["a", "b"]
    assert tree.queues.info("MASTER-QUEUE").messages == tree.queues.info("MASTER-QUEUE").messages
    with pytest.raises(ArgumentInvalid):
        tree.queues.info("MASTER-QUEUE", limit=0)


def test_pages_go_on_over_the_queues_of_a_level_and_whatever_leaves_meanwhile(tree: Postroom) -> None:
    tree.send_many("INP_0001", ["a", "b"])
    tree.send_many("INP_0002", ["c", "d", "e"])
    first = tree.queues.peek("MASTER-QUEUE", limit=2)
    assert first.next is None, "it was not read yet"
    assert [message.body for message in first] == ["a", "b"]
    tree.receive("INP_0001")
    tree.receive("INP_0001")  # the last of the page is gone: its place is known all the same
    second = tree.queues.peek("MASTER-QUEUE", limit=2, after=first.next)
    assert [message.body for message in second] == ["c", "d"]
    third = tree.queues.peek("MASTER-QUEUE", limit=2, after=second.next)
    assert [message.body for message in third] == ["e"]
    assert third.next is None
    for wrong in ("", "1", "x@INP_0001", "-1@INP_0001", "1@nowhere", "\u0661@INP_0001", "9" * 30 + "@INP_0001"):
        with pytest.raises(ArgumentInvalid, match="after"):
            tree.queues.peek("MASTER-QUEUE", limit=2, after=wrong)


def test_long_listings_are_read_a_page_at_a_time(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", [str(number) for number in range(1203)])
    assert [message.body for message in room.queues.info("q")] == [str(number) for number in range(1203)]
    assert [message.body for message in room.queues.info("q", limit=501)] == [str(number) for number in range(501)]


def test_count_and_peek_have_the_names_of_multics_as_aliases(room: Postroom) -> None:
    queue = room.queues.create("q")
    room.send_many("q", ["x", "y"])
    assert room.count("q").queues[0].unprocessed == 2
    assert [message.body for message in room.peek("q", limit=1)] == ["x"]
    for one in (room.queues.accept("q"), queue.accept(), queue.count()):
        assert one.as_dict() == room.count("q").as_dict()
    for other in (room.queues.info("q"), queue.info(), queue.peek()):
        assert other.messages == room.peek("q").messages
    assert [message.body for message in queue.info(limit=1)] == ["x"]
    assert room.count("q").queues[0].unprocessed == 2, "nothing was received"


def test_a_retired_queue_keeps_its_history_and_takes_no_more(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    room.receive("q")
    room.queues.remove("q")
    with pytest.raises(QueueUnknown):
        room.send("q", "y")
    assert [message.body for message in room.queues.history("q")] == ["x"]
    room.queues.create("q")
    assert room.queues.accept("q").queues[0].processed == 1
