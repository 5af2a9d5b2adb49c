"""How far a reader of arrivals may go: never past a message that is still on its way."""

from __future__ import annotations

import threading

import pytest

import postroom
from postroom.engine.datasource.tail import Tail
from postroom.errors import QueueUnknown
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction


def numbers(room: Postroom, queue: str) -> list[int]:
    """The journal numbers of a queue's waiting messages."""

    def work(tx: Transaction) -> list[int]:
        found = tx.queues.named_to_read(queue)
        assert found is not None
        return tx.messages.positions(found, 0, 1000)

    return room.store.read(work)


def test_arrivals_are_followed_in_the_steps_that_are_asked_for(room: Postroom) -> None:
    queue = room.queues.create("q")
    tail = Tail(room.store, "q")
    assert tail.last(0) == 0
    room.send_many("q", ["a", "b", "c"])
    first, second, third = numbers(room, "q")
    assert tail.last(0, 1) == first
    assert tail.last(0, 2) == second
    assert tail.last(first, 99) == tail.last(0) == third
    assert tail.last(third) == third
    queue.receive()
    assert tail.last(third) == third, "being taken is no arrival"


def test_what_happens_elsewhere_is_passed_over_once(room: Postroom) -> None:
    queue, other = room.queues.create("q"), room.queues.create("other")
    tail = Tail(room.store, "q")
    queue.send("a")
    (start,) = numbers(room, "q")
    for _ in range(3):
        other.send("x")
        assert tail.last(start) == start
    quiet = tail._quiet
    assert quiet[0] == start
    assert quiet[1] > start
    assert tail.last(0) == start, "asked from an earlier number, it looks again"
    queue.send("b")
    assert tail.last(start) == numbers(room, "q")[1]


def test_a_message_that_is_moved_arrives_where_it_goes(room: Postroom) -> None:
    room.queues.create("q").send("a")
    room.queues.create("other")
    tails = [Tail(room.store, name) for name in ("q", "other")]
    before = [tail.last(0) for tail in tails]

    def work(tx: Transaction) -> None:
        source, target = tx.queues.named("q"), tx.queues.named("other")
        assert source is not None
        assert target is not None
        stored = tx.messages.head(source)
        assert stored is not None
        tx.messages.move(stored, source, target)

    room.store.transact("send", work)
    assert tails[0].last(before[0]) == before[0]
    assert [tails[1].last(before[1])] == numbers(room, "other")


def test_a_number_that_is_drawn_and_not_yet_committed_is_waited_for(postgres_url: str) -> None:
    with (
        postroom.open(postgres_url) as slow,
        postroom.open(postgres_url) as fast,
        postroom.open(postgres_url) as reader,
    ):
        slow.queues.create("q")
        slow.queues.create("other")
        for room in (slow, fast):
            for _ in range(4):
                room.send("other", "x")  # from now on each has keys in reserve, and they share no row but the queue's
        drawn, go_on = threading.Event(), threading.Event()

        def work(tx: Transaction) -> None:
            queue = tx.queues.named("q")
            assert queue is not None
            tx.messages.put(queue, Draft.of("slow"))
            drawn.set()
            assert go_on.wait(20)

        sender = threading.Thread(target=lambda: slow.store.transact("send", work))
        sender.start()
        assert drawn.wait(20)
        fast.send("other", "overtakes")
        answers: list[int] = []
        follower = threading.Thread(target=lambda: answers.append(Tail(reader.store, "q").last(0)))
        follower.start()
        follower.join(0.5)
        assert not answers, "the queue's row is locked by the sender"
        go_on.set()
        sender.join(20)
        follower.join(20)
        assert answers == numbers(fast, "q")
        assert answers[0] < numbers(fast, "other")[-1]


def test_a_queue_that_is_not_there_is_an_error(room: Postroom) -> None:
    room.queues.create("q")
    with pytest.raises(QueueUnknown):
        Tail(room.store, "none").last(0)
