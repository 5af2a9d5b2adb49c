"""Send, receive, accept, info and history, as the commands of the Multics text say."""

from __future__ import annotations

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    BodyMismatch,
    QueueHeld,
    QueueUnknown,
    TypeUnknown,
)
from postroom.model.types import Field, Kind, MessageType
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


def test_info_releases_nothing_and_can_be_limited(tree: Postroom) -> None:
    tree.send_many("INP_0001", ["a", "b"])
    tree.send("INP_0002", "c")
    assert [message.body for message in tree.queues.info("MASTER-QUEUE")] == ["a", "b", "c"]
    assert [message.body for message in tree.queues.info("MASTER-QUEUE", limit=2)] == ["a", "b"]
    assert tree.queues.info("MASTER-QUEUE").messages == tree.queues.info("MASTER-QUEUE").messages
    with pytest.raises(ArgumentInvalid):
        tree.queues.info("MASTER-QUEUE", limit=0)


def test_long_listings_are_read_a_page_at_a_time(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", [str(number) for number in range(1203)])
    assert [message.body for message in room.queues.info("q")] == [str(number) for number in range(1203)]
    assert [message.body for message in room.queues.info("q", limit=501)] == [str(number) for number in range(501)]


def test_distribute_serves_who_can_be_served_and_names_the_others(tree: Postroom) -> None:
    tree.queues.disable("INP_0000", password="QUE")
    shared = tree.queues.distribute(["OQ3", "OQ4", "INP_0000", "NOBODY", "MASTER-QUEUE/SUBQ-3"], "closing time")
    assert [(one.queue, one.error_key, one.reason) for one in shared.deliveries] == [
        ("OUT_0000", "0", None),
        ("OUT_0001", "0", None),
        ("INP_0000", "1", "queue-held"),
        ("NOBODY", "1", "queue-unknown"),
        ("MASTER-QUEUE SUBQ-3", "1", "queue-not-single"),
    ]
    assert shared.status == "20"
    assert [body(tree.receive(queue)) for queue in ("OQ3", "OQ4")] == ["closing time"] * 2
    assert tree.queues.distribute(["OQ3", "INP_0000"], "x").status == "92"
    assert tree.queues.distribute(["OQ3"], "x").status == "00"
    with pytest.raises(ArgumentInvalid):
        tree.queues.distribute([], "x")


def test_typed_messages_are_checked_at_the_door_and_read_field_by_field(room: Postroom) -> None:
    room.queues.create("q")
    room.definitions.define_type(MessageType("Order", (Field("No", Kind.INT, required=True), Field("Note"))))
    with pytest.raises(BodyMismatch, match="No"):
        room.send("q", {"Note": "x"}, type="Order")
    with pytest.raises(TypeUnknown, match="did you mean Order"):
        room.send("q", {"No": 1}, type="order")
    room.send("q", {"No": 17, "Note": "soon"}, type="Order")
    assert [body(room.receive("q", segment=True)) for _ in range(2)] == ["No: 17", "Note: soon"]
    room.send("q", {"No": 18}, type="Order")
    room.definitions.define_type(MessageType("Order", (Field("Other"),)))
    assert body(room.receive("q", segment=True)) == '{"No":18}'


def test_one_string_is_not_many_bodies(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(ArgumentInvalid):
        room.send_many("q", "abc")
    assert repr(room.send("q", {"a": 1})) == "Sent(key='00001.00001', status='00')"
    received = room.receive("q")
    assert received.message is not None
    assert received.message.value == {"a": 1}


def test_names_with_quotes_marks_and_signs_are_only_data(room: Postroom) -> None:
    for name in ("a'b", 'a"b', "a;DROP TABLE messages", "a%sb", "a?b", "\u202eabc"[1:], "ünï", "a b"):
        room.queues.create(name)
        room.send(name, name)
        assert body(room.receive(name)) == name
        assert room.queues.accept(name).queues[0].processed == 1


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


def test_held_queues_below_a_level_are_passed_and_named(tree: Postroom) -> None:
    tree.send("INP_0000", "held")
    tree.send("INP_0002", "free")
    tree.queues.disable("INP_0000", password="QUE")
    received = tree.receive("MASTER-QUEUE")
    assert (body(received), received.held, received.passed) == ("free", ("INP_0000",), ("INP_0001",))
    assert received.as_dict()["held_queues"] == ["INP_0000"]
    with pytest.raises(QueueHeld):
        tree.receive("MASTER-QUEUE", "SUBQ-1")


def test_the_idempotency_key_must_be_text(room: Postroom) -> None:
    room.queues.create("q")
    for bad in ("", "x" * 201, "a\0"):
        with pytest.raises(ArgumentInvalid):
            room.send("q", "x", idempotency_key=bad)
    assert room.send("q", "x", idempotency_key="k") == room.send("q", "x", idempotency_key="k")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send("q", "y", idempotency_key="k")


def test_bodies_of_every_kind(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", {"a": [1, None]})
    room.send("q", b"bytes")
    room.send("q", "<a/>", format=postroom.Format.XML)
    formats = [(message.format, message.body) for message in room.queues.info("q")]
    assert formats == [("json", '{"a":[1,null]}'), ("text", "bytes"), ("xml", "<a/>")]
