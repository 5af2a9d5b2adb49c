"""The verbs of queues, and a queue as an object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, FormatUnclear, QueueHeld, QueueUnknown
from postroom.model.body import Format
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
        with pytest.raises(ArgumentInvalid, match="bodies: a list is expected"):
            small.send_many("q", body)
    assert list(small.send_many("q", []).keys) == []


def test_a_queue_has_a_password_of_its_own_or_of_a_level_above(small: Postroom) -> None:
    small.queues.create("open")
    small.queues.create("closed", password="pw")
    assert (small.queues.has_password("open"), small.queues.has_password("closed")) == (False, True)
    assert small.queues.set_mode("open", keep_processed=False) == ["open"]
    assert small.queues.set_mode("open", keep_processed=False) == []


def read_by_rules(room: Postroom, folder: Path) -> None:
    file = folder / "claims.demaq"
    file.write_text(
        "create queue intake kind basic mode persistent\ncreate queue paid kind basic mode persistent\n"
        "create rule pay for intake if (/claim) then do enqueue <pay/> into paid\n"
    )
    room.load(file)
    room.queues.create("plain")


@pytest.mark.parametrize("warm", [False, True], ids=["first", "known queue"])
def test_a_document_for_rules_is_not_stored_as_text(room: Postroom, tmp_path: Path, warm: bool) -> None:
    read_by_rules(room, tmp_path)
    if warm:
        room.send("intake", "hello")
    sent = {body: room.show(room.send("intake", body).key).format for body in ("<claim/>", ' {"claim": 1}', "hello")}
    assert sent == {"<claim/>": Format.XML, ' {"claim": 1}': Format.JSON, "hello": Format.TEXT}
    many = room.send_many("intake", ["<claim/>", "[1]", "hello"])
    assert [room.show(key).format for key in many.keys] == [Format.XML, Format.JSON, Format.TEXT]
    shared = room.queues.distribute(["intake", "plain"], "<claim/>")
    assert [room.show(one.key or "").format for one in shared.deliveries] == [Format.XML, Format.TEXT]
    assert room.show(room.send("intake", b"<claim/>").key).format is Format.XML


def test_a_document_for_rules_that_is_none_is_refused_and_a_format_overrides(room: Postroom, tmp_path: Path) -> None:
    read_by_rules(room, tmp_path)
    for body, like in (("<claim>", "XML"), ("{claim: 1}", "JSON")):
        with pytest.raises(FormatUnclear, match=f"read by rules; the body begins like {like}.*--format text"):
            room.send("intake", body)
        with pytest.raises(FormatUnclear):
            room.send_many("intake", ["hello", body])
        assert [one.reason for one in room.queues.distribute(["intake", "plain"], body).deliveries] == [
            "format-unclear",
            None,
        ]
        assert room.show(room.send("intake", body, format="text").key).format is Format.TEXT
        assert room.show(room.send("plain", body).key).format is Format.TEXT
    assert room.show(room.send("intake", "<claim/>", format="text").key).format is Format.TEXT
    assert room.count("intake").queues[0].unprocessed == 3
