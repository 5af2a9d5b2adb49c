"""Queues without a description: names, removal, and what happens to processed messages."""

from __future__ import annotations

import pytest

import postroom
from postroom.errors import ArgumentInvalid, NameInvalid, NameTaken, QueueInUse, QueueUnknown
from postroom.room import Postroom


@pytest.mark.parametrize(
    "name",
    [".", "..", "", " a", "a ", "a/b", "-a", "a\nb", "a\0b", "INP_0000", "OUT_12345", "x" * 201, "\u202eabc", "\ud800"],
)
def test_names_that_would_confuse_are_refused(room: Postroom, name: str) -> None:
    with pytest.raises(NameInvalid):
        room.queues.create(name)
    assert room.queues.accept().queues == ()


def test_a_name_is_given_once(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(NameTaken, match="basic"):
        room.queues.create("q")


def test_making_a_queue_that_is_there_can_be_fine(room: Postroom) -> None:
    room.queues.create("q", exist_ok=True).send("x")
    assert room.queues.create("q", exist_ok=True).accept().queues[0].unprocessed == 1


def test_a_queue_that_is_made_again_is_not_on_hold(room: Postroom) -> None:
    room.queues.create("q", password="pw")
    room.queues.disable("q", password="pw")
    room.queues.remove("q")
    room.queues.create("q")
    assert room.send("q", "x").status == "00"


def test_a_queue_with_unprocessed_messages_stays(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    with pytest.raises(QueueInUse):
        room.queues.remove("q")
    room.receive("q")
    room.queues.remove("q")
    with pytest.raises(QueueUnknown):
        room.queues.remove("q")


def test_a_described_queue_is_removed_by_its_description_only(tree: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="description"):
        tree.queues.remove("INP_0000")


def test_a_discarding_queue_keeps_no_processed_messages(room: Postroom) -> None:
    room.queues.create("q", keep_processed=False)
    room.send("q", "a\nb")
    room.receive("q", segment=True)
    assert room.receive("q", segment=True).end_of_message
    assert list(room.queues.history("q")) == []
    assert room.queues.accept("q").queues[0].processed == 0


def test_the_mode_of_a_whole_level_can_be_set_and_set_back(tree: Postroom) -> None:
    for queue in ("INP_0001", "INP_0002"):
        tree.send(queue, "x")
        tree.receive(queue)
    assert tree.queues.set_mode("MASTER-QUEUE", "SUBQ-3", keep_processed=False) == ["INP_0001", "INP_0002", "INP_0003"]
    assert list(tree.queues.history("MASTER-QUEUE")) == []
    assert tree.queues.set_mode("INP_0001", keep_processed=True) == ["INP_0001"]
    assert tree.queues.set_mode("INP_0001", keep_processed=True) == []
    tree.send("INP_0001", "y")
    tree.receive("INP_0001")
    assert [message.body for message in tree.queues.history("INP_0001")] == ["y"]


@pytest.mark.parametrize("password", ["", "elevenchars", "with space", "ümlaut", "a\n"])
def test_passwords_have_the_form_of_the_description_language(room: Postroom, password: str) -> None:
    with pytest.raises(ArgumentInvalid):
        room.queues.create("q", password=password)


def test_a_queue_of_an_earlier_version_whose_name_is_dots_can_still_be_used(room: Postroom, url: str) -> None:
    room.store.transact("create-queue", lambda tx: tx.queues.create("..", "basic", path="..", keep=True))
    room.close()
    with postroom.open(url) as again:
        again.queues.create("q")
        again.send("..", "x")
        assert again.count("..").queues[0].unprocessed == 1
        assert again.consumers.move("..", to="q").count == 1
        again.queues.remove("..")
        with pytest.raises(NameInvalid):
            again.queues.create("..")


def test_a_refused_name_says_what_to_do_instead(room: Postroom) -> None:
    with pytest.raises(NameInvalid, match=r"described in a \.qdl file, .* postroom load FILE\.qdl"):
        room.queues.create("shop/orders")
    room.queues.create("stock")
    with pytest.raises(NameTaken, match=r"use it as it is; in Python, exist_ok=True accepts it"):
        room.queues.create("stock")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "spheres keep what they need in the queues") for name in ("ACTIVE", "ABORTED", "COMP.Q", "ALIVE.Q")),
        ("meta:trading", "meta-spaces of flows"),
        ("*", "means all queues in a grant"),
    ],
)
def test_a_name_that_a_capability_needs_is_refused(room: Postroom, name: str, why: str) -> None:
    with pytest.raises(NameInvalid, match=why) as refused:
        room.queues.create(name)
    assert refused.value.advice == "Choose another name, as the message says."
    room.sphere("s").commit()
