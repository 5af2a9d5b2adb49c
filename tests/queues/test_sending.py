"""Sends: bodies, types, several destinations, several senders; keys against a second send."""

from __future__ import annotations

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    BodyMismatch,
    TypeUnknown,
)
from postroom.model.message import Draft
from postroom.model.types import Field, Kind, MessageType
from postroom.queues.results import Received, Sent
from postroom.queues.sending import Posting
from postroom.room import Postroom


def body(received: Received) -> str:
    assert received.message is not None
    return received.message.body


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


def test_sends_of_several_people_have_an_outcome_each(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "before")
    wanted = [
        Posting(("q",), Draft.of("one"), None, None, "ann"),
        Posting(("q",), Draft.of("two"), "k", None, "bob"),
        Posting(("nowhere",), Draft.of("three"), None, None, "ann"),
        Posting(("q",), Draft.of("two"), "k", None, "bob"),
        Posting(("q",), Draft.of("four", type="Unknown"), None, None, "ann"),
        Posting(("q",), Draft.of("five"), "", None, "ann"),
    ]
    one, two, three, again, four, five = room._parts.verbs.send_each(wanted)
    assert isinstance(one, Sent)
    assert isinstance(two, Sent)
    assert again == two
    assert [type(each).__name__ for each in (three, four, five)] == ["QueueUnknown", "TypeUnknown", "ArgumentInvalid"]
    assert [message.body for message in room.peek("q")] == ["before", "one", "two"]
    assert [room.trace(sent.key)[0].by for sent in (one, two)] == ["ann", "bob"]
