"""Epochs of the graph, and messages that have passed as soon as they are there: the same on every store."""

from __future__ import annotations

import pytest

from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES
from postroom.room import Postroom
from postroom.store.kernel.batch import Batch
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.epochs import END, Epoch


def test_an_epoch_begins_with_a_change_and_ends_with_the_next(room: Postroom) -> None:
    def work(tx: Transaction) -> None:
        assert tx.epochs.at(5) is None
        for seq, version in ((10, 1), (20, 4)):
            tx.epochs.begin(seq, version)
        assert tx.epochs.at(9) == Epoch(1, 10, 20), "the oldest that is known"
        assert tx.epochs.at(10) == tx.epochs.at(19) == Epoch(1, 10, 20)
        assert tx.epochs.at(20) == Epoch(4, 20, END)

    room.store.transact("send", work)


def test_whose_messages_flow_and_which_is_the_first(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["a", "b"])
    seq = room.store.read(lambda tx: tx.journal.newest())
    queue = room.store.read(lambda tx: tx.queues.named_to_read("q"))
    assert queue is not None
    room.store.transact("send", lambda tx: tx.epochs.open(queue.id, seq))
    (flowing,) = room.store.read(lambda tx: tx.epochs.flowing())
    assert (flowing.name, flowing.since, flowing.end) == ("q", seq, END)
    assert room.store.read(lambda tx: tx.epochs.first(flowing)) is None, "those were there before"
    room.send("q", "c")
    first = room.store.read(lambda tx: tx.epochs.first(flowing))
    assert first is not None
    assert first > seq
    room.store.transact("send", lambda tx: tx.epochs.close(queue.id, first))
    (flowing,) = room.store.read(lambda tx: tx.epochs.flowing())
    assert room.store.read(lambda tx: tx.epochs.first(flowing)) is None, "it came too late"
    room.store.transact("send", lambda tx: tx.epochs.drop(queue.id))
    assert room.store.read(lambda tx: tx.epochs.flowing()) == []


def test_what_no_message_needs_is_forgotten(room: Postroom) -> None:
    room.queues.create("q")
    queue = room.store.read(lambda tx: tx.queues.named_to_read("q"))
    assert queue is not None
    start = room.store.read(lambda tx: tx.journal.newest())

    def begin(tx: Transaction) -> None:
        for version, seq in enumerate((start - 1, start), 1):
            tx.epochs.begin(seq, version)
        tx.epochs.open(queue.id, start)

    room.store.transact("send", begin)
    room.send("q", "waits")
    position = room.store.read(lambda tx: tx.journal.newest())
    room.store.transact("send", lambda tx: tx.epochs.begin(position + 10, 3))
    room.store.transact("send", lambda tx: tx.epochs.close(queue.id, position + 10))
    room.store.transact("send", lambda tx: tx.epochs.forget())
    assert room.store.read(lambda tx: tx.epochs.at(start - 1)) == Epoch(2, start, position + 10), "the first is gone"
    assert room.store.read(lambda tx: tx.epochs.at(position)) == Epoch(2, start, position + 10)
    assert len(room.store.read(lambda tx: tx.epochs.flowing())) == 1
    room.receive("q")
    room.store.transact("send", lambda tx: tx.epochs.forget())
    assert room.store.read(lambda tx: tx.epochs.at(position)) == Epoch(3, position + 10, END)
    assert room.store.read(lambda tx: tx.epochs.flowing()) == []
    assert room.store.read(lambda tx: tx.epochs.at(END)) == Epoch(3, position + 10, END)


def test_a_message_that_has_passed_a_queue_that_keeps_nothing_is_gone_but_not_forgotten(room: Postroom) -> None:
    room.queues.create("q", keep_processed=False)

    def work(tx: Transaction) -> int:
        queue = tx.queues.named("q")
        assert queue is not None
        batch = Batch(tx)
        (key,) = batch.reserve(2, 1)
        batch.put(queue, "p", "text", None, NO_PROPERTIES, None, "arc a", passed=True)
        batch.finish(0)
        return key

    key = key_text(room.store.transact("step", work))
    assert [event.verb for event in room.trace(key)] == ["put", "take"]
    assert room.journal.locate(key) is None
    (count,) = room.queues.accept("q").queues
    assert (count.unprocessed, count.processed) == (0, 0)


@pytest.mark.parametrize("waiting", [0, 2])
def test_a_message_that_has_passed_is_processed_from_the_start(room: Postroom, waiting: int) -> None:
    room.queues.create("q")
    room.send_many("q", [f"w{number}" for number in range(waiting)])

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        batch = Batch(tx)
        batch.reserve(5, 3)
        for body, passed in (("p1", True), ("w", False), ("p2", True)):
            batch.put(queue, body, "text", None, NO_PROPERTIES, None, "arc a", passed=passed)
        batch.finish(0)

    room.store.transact("step", work)
    assert [message.body for message in room.queues.history("q")] == ["p1", "p2"]
    assert [message.body for message in room.queues.info("q")] == [*(f"w{n}" for n in range(waiting)), "w"]
    (count,) = room.queues.accept("q").queues
    assert (count.unprocessed, count.processed) == (waiting + 1, 2)
    kept = room.queues.history("q").messages[0]
    assert kept.processed == kept.created
    assert [(event.verb, event.by) for event in room.trace(kept.key)] == [("put", "arc a"), ("take", "arc a")]
    room.send("q", "later")
    assert [room.receive("q").message.body for _ in range(waiting + 2)][-1] == "later"  # type: ignore[union-attr]  # there is one
    (count,) = room.queues.accept("q").queues
    assert (count.unprocessed, count.processed) == (0, waiting + 4)
