"""Sends of several messages with an idempotency key: done once, and told the same, whoever repeats them and when."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid, QueueUnknown
from postroom.room import Postroom

TRADING = "domain trading\nspace Trades : [issue: string, price: int]\n"


def test_a_batch_is_sent_once_also_by_another_process_after_a_restart(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("orders")
        first = room.send_many("orders", ["a", "b", "c"], idempotency_key="k")
        room.send("orders", "between")
        again = room.send_many("orders", ["a", "b", "c"], idempotency_key="k")
        assert (list(again.keys), again.status) == (list(first.keys), first.status)
    with postroom.open(url) as room:
        assert list(room.send_many("orders", ["a", "b", "c"], idempotency_key="k").keys) == list(first.keys)
        assert [message.body for message in room.peek("orders")] == ["a", "b", "c", "between"]
        assert not room.journal.verify().differences


@pytest.mark.parametrize("other", [["a", "x"], ["a"], ["b", "a"], ["ab"]])
def test_a_key_is_for_one_batch(room: Postroom, other: list[str]) -> None:
    room.queues.create("orders")
    room.send_many("orders", ["a", "b"], idempotency_key="k")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send_many("orders", other, idempotency_key="k")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send("orders", "a", idempotency_key="k")
    room.send("orders", "single", idempotency_key="s")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send_many("orders", ["single"], idempotency_key="s")
    assert room.count("orders").queues[0].unprocessed == 3


def test_a_key_is_for_one_verb(room: Postroom) -> None:
    """Each answers in its own way: what one was told cannot be told to the other."""
    room.queues.create("orders")
    room.queues.distribute(["orders"], "a", idempotency_key="k")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send_many("orders", ["a"], idempotency_key="k")
    room.send_many("orders", ["b"], idempotency_key="m")
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.queues.distribute(["orders"], "b", idempotency_key="m")
    assert room.count("orders").queues[0].unprocessed == 2


def test_messages_to_several_queues_are_sent_once_and_refusals_are_told_again(room: Postroom) -> None:
    for name in ("a", "b"):
        room.queues.create(name, password="secret")
    room.queues.disable("b", password="secret")
    first = room.queues.distribute(["a", "b", "nowhere"], "x", idempotency_key="k")
    room.queues.enable("b", password="secret")
    assert room.queues.distribute(["a", "b", "nowhere"], "x", idempotency_key="k") == first
    assert [delivery.reason for delivery in first.deliveries] == [None, "queue-held", "queue-unknown"]
    assert [count.unprocessed for count in room.count().queues if count.queue in ("a", "b")] == [1, 0]


def test_what_was_refused_as_a_whole_is_tried_again(room: Postroom) -> None:
    with pytest.raises(QueueUnknown):
        room.send_many("later", ["x"], idempotency_key="k")
    assert room.queues.distribute(["later"], "x", idempotency_key="d").deliveries[0].key is None
    room.queues.create("later")
    assert len(room.send_many("later", ["x"], idempotency_key="k").keys) == 1
    assert room.queues.distribute(["later"], "x", idempotency_key="d").deliveries[0].key is not None
    assert list(room.send_many("later", [], idempotency_key="none").keys) == []


def test_segments_and_publications_have_keys_too(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    room.load(tmp_path / "trading.flow")
    room.queues.create("orders")
    assert len({room.queues.send_segments("orders", ["a", "b"], idempotency_key="s").key for _ in range(2)}) == 1
    events: list[Any] = [{"issue": "A", "price": 1}, {"issue": "B", "price": 2}]
    first = room.flows.publish_many("Trades", events, idempotency_key="p")
    assert list(room.flows.publish_many("Trades", events, idempotency_key="p").keys) == list(first.keys)
    with pytest.raises(ArgumentInvalid):
        room.flows.publish_many("Trades", events[:1], idempotency_key="p")
    counts = {count.queue: count.unprocessed for count in room.count().queues}
    assert (counts["orders"], counts["Trades"]) == (1, 2)


def test_two_who_send_the_same_at_once_are_one(room: Postroom) -> None:
    room.queues.create("orders")
    told: list[tuple[str, ...]] = []

    def send() -> None:
        told.append(tuple(room.send_many("orders", ["a", "b"], idempotency_key="k").keys))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(told), len(set(told))) == (8, 1)
    assert room.count("orders").queues[0].unprocessed == 2


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b"])
def test_a_key_is_a_text_of_bounded_length(room: Postroom, key: str) -> None:
    room.queues.create("orders")
    for send in (room.send_many, room.queues.send_segments):
        with pytest.raises(ArgumentInvalid, match="idempotency key"):
            send("orders", ["a"], idempotency_key=key)
    with pytest.raises(ArgumentInvalid, match="idempotency key"):
        room.queues.distribute(["orders"], "a", idempotency_key=key)
    assert room.count("orders").queues[0].unprocessed == 0
