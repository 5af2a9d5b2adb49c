"""A message that is received in one sphere and was sent in another: every order of their ends, and what is left."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from postroom.model.message import Message
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

from .invariants import check

ENDS = [
    (order, sender, receiver)
    for order in permutations(("sender", "receiver"))
    for sender, receiver in product(("commit", "abort"), repeat=2)
]


@pytest.fixture
def work(room: Postroom) -> Postroom:
    room.queues.create("work")
    room.send("work", "before")
    return room


def waiting(room: Postroom, queue: str = "work") -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def begun(room: Postroom, compensation: str | None = "cancel 7") -> tuple[Sphere, Sphere, Message]:
    """One sphere has sent between two others' messages, the other has received it."""
    sender, receiver = room.sphere("s"), room.sphere("t")
    sender.send("work", "book 7", compensation=compensation)
    room.send("work", "after")
    room.receive("work")
    message = receiver.receive("work")
    assert message is not None
    assert message.body == "book 7"
    assert waiting(room) == ["after"]
    return sender, receiver, message


def over(room: Postroom) -> None:
    check(room, over=True)
    assert room.journal.verify().differences == ()


@pytest.mark.parametrize("compensation", ["cancel 7", None])
@pytest.mark.parametrize(("order", "sender", "receiver"), ENDS)
def test_a_message_that_is_given_back_is_settled_by_the_end_of_its_sphere(
    work: Postroom, order: tuple[str, str], sender: str, receiver: str, compensation: str | None
) -> None:
    first, second, message = begun(work, compensation)
    spheres, ends = {"sender": first, "receiver": second}, {"sender": sender, "receiver": receiver}
    for who in order:
        getattr(spheres[who], ends[who])()
    found = list(work.queues.info("work"))
    if receiver == "abort" and sender == "commit":
        assert [each.body for each in found] == ["book 7", "after"], "in its place"
        assert (found[0].key, found[0].properties, found[0].processed) == (message.key, {"sphere": "s"}, None)
    elif receiver == "abort":
        assert [each.body for each in found] == ["after"], "the primary is gone, and nothing undoes what nobody had"
    elif sender == "abort" and compensation is not None:
        assert [each.body for each in found] == ["after", "cancel 7"]
    else:
        assert [each.body for each in found] == ["after"]
    outcome = work.spheres.show("s").sends[0].outcome
    if sender == "abort" and receiver == "abort":
        assert outcome == "withdrawn"
    over(work)


def test_a_compensation_that_someone_has_taken_stays_theirs_and_the_primary_does_not_come_back(work: Postroom) -> None:
    sender, receiver, _ = begun(work)
    sender.abort()
    assert [work.receive("work").message.body for _ in range(2)] == ["after", "cancel 7"]  # type: ignore[union-attr]
    receiver.abort()
    assert waiting(work) == []
    over(work)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_compensation_that_a_third_sphere_has_disappears_when_that_gives_it_back(work: Postroom, end: str) -> None:
    sender, receiver, _ = begun(work)
    sender.abort()
    third = work.sphere("u")
    work.receive("work")
    undo = third.receive("work")
    assert undo is not None
    assert undo.body == "cancel 7"
    receiver.abort()
    getattr(third, end)()
    assert waiting(work) == []
    over(work)


def test_a_compensation_that_is_given_back_first_is_there_again(work: Postroom) -> None:
    sender, receiver, _ = begun(work)
    sender.abort()
    third = work.sphere("u")
    work.receive("work")
    third.receive("work")
    third.abort()
    assert waiting(work) == ["cancel 7"]
    receiver.commit()
    assert waiting(work) == ["cancel 7"]
    over(work)


def test_a_sphere_may_receive_what_it_sent_and_both_the_primary_and_its_compensation(work: Postroom) -> None:
    work.receive("work")
    one = work.sphere("own")
    one.send("work", "mine", compensation="not mine")
    assert one.receive("work") is not None
    one.abort()
    assert waiting(work) == []
    sender, receiver = work.sphere("s"), work.sphere("t")
    sender.send("work", "book 7", compensation="cancel 7")
    receiver.receive("work")
    sender.abort()
    assert receiver.receive("work").body == "cancel 7"  # type: ignore[union-attr]
    receiver.abort()
    assert waiting(work) == []
    over(work)


def test_what_is_given_back_counts_how_often_it_was_given_out_and_keeps_its_place(work: Postroom) -> None:
    work.send("work", "two")
    for _ in range(3):
        with work.sphere() as sphere:
            message = sphere.receive("work")
            assert message is not None
            assert message.body == "before"
            sphere.abort()
        assert waiting(work) == ["before", "two"]
    returns = [event for event in work.trace(work.queues.info("work").messages[0].key) if event.verb == "give-back"]
    assert [(event.detail or {})["attempts"] for event in returns] == [1, 2, 3]
    assert len({message.key for message in work.queues.info("work")}) == 2
    over(work)


def test_what_a_recipient_said_of_a_message_that_it_gave_back_does_not_count(work: Postroom) -> None:
    sender, receiver, message = begun(work)
    sender.require("work", processing_within=60)
    message.acknowledge(processed=True)
    message.membership.join()
    assert work.spheres.show("s").sends[0].processed is not None
    receiver.abort()
    told = work.spheres.show("s")
    assert (told.sends[0].received, told.sends[0].processed, told.parts) == (None, None, ())
    again = work.receive("work").message
    assert again is not None
    assert again.key == message.key
    again.acknowledge(processed=True)
    sender.commit()
    over(work)


@pytest.mark.parametrize("keep", [True, False])
def test_whatever_becomes_of_processed_messages_those_that_may_come_back_stay(room: Postroom, keep: bool) -> None:
    room.queues.create("work", keep_processed=keep)
    room.send("work", "one")
    room.send("work", "two")
    sphere = room.sphere("s")
    sphere.receive("work")
    room.queues.set_mode("work", keep_processed=False)
    sphere.receive("work")
    room.journal.verify()
    sphere.abort()
    assert waiting(room) == ["one", "two"]
    with room.sphere("t") as after:
        after.receive("work")
    assert (waiting(room), room.queues.history("work").messages) == (["two"], [])
    over(room)
