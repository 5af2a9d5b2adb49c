"""Sends and ends of leases in one commit."""

from __future__ import annotations

import pytest

from postroom.errors import LeaseOver, QueueUnknown
from postroom.model.message import Draft
from postroom.queues.leases.leasing import Ended
from postroom.queues.sending import Posting
from postroom.room import Postroom


def posting(queue: str, body: str, key: str | None = None) -> Posting:
    return Posting((queue,), Draft.of(body), key, None, "ann")


@pytest.fixture
def lease(room: Postroom) -> int:
    room.queues.create("orders")
    room.queues.create("answers")
    room.send("orders", "17")
    leased = room.receive("orders", lease=60).message
    assert leased is not None
    return leased.lease


def test_an_answer_and_the_end_of_its_order_are_one_commit(room: Postroom, lease: int) -> None:
    (sent,) = room._parts.together.commit([posting("answers", "done")], [Ended(lease)])
    taken, put = room.journal.last(2)
    assert (taken.time, {taken.verb, put.verb}) == (put.time, {"take", "put"})
    assert room.show(sent.key).body == "done"
    assert room.count("orders").queues[0].processed == 1


def test_if_one_is_refused_nothing_has_happened(room: Postroom, lease: int) -> None:
    together = room._parts.together
    with pytest.raises(QueueUnknown):
        together.commit([posting("answers", "a"), posting("nowhere", "b")], [Ended(lease)])
    assert room.count("answers").queues[0].unprocessed == 0
    assert room.count("orders").queues[0].leased == 1
    together.commit([], [Ended(lease, "not today")])
    with pytest.raises(LeaseOver):
        together.commit([posting("answers", "a")], [Ended(lease)])
    assert room.count("answers").queues[0].unprocessed == 0
    assert not room.journal.verify().differences


def test_a_repeated_key_and_a_final_failure(room: Postroom, lease: int) -> None:
    together = room._parts.together
    once, twice = together.commit(
        [posting("answers", "a", "k"), posting("answers", "a", "k")], [Ended(lease, "x", True)]
    )
    assert once.key == twice.key
    assert room.peek("orders.dead")


def test_ends_of_many_have_an_outcome_each(room: Postroom, lease: int) -> None:
    leasing = room._parts.leasing
    room.send("orders", "18")
    other = room.receive("orders", lease=60).message
    assert other is not None
    leasing.done(lease)
    outcomes = leasing.end_each([Ended(lease), Ended(other.lease)])
    assert [type(each) for each in outcomes] == [LeaseOver, type(None)]
    assert room.count("orders").queues[0].processed == 2
    assert leasing.extend_each([lease, other.lease], 5) == [lease, other.lease]
    leasing.release_each([lease, other.lease])  # what is over is left as it is


def test_what_is_sent_behind_the_long_way_does_not_overtake_it(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "known")
    text, document = posting("q", "text"), posting("q", "{}")._replace(unsaid=True)
    room._parts.verbs.send_each([text, document, text, document])
    assert [message.body for message in room.peek("q")] == ["known", "text", "{}", "text", "{}"]
