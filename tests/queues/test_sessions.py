"""The session of a program: partial messages, and receives that its next verb makes final."""

from __future__ import annotations

import pytest

from postroom.errors import BodyTooLarge, OutputFailed
from postroom.limits import BODY_BYTES_MAX
from postroom.queues.results import Received
from postroom.queues.segments import Area, End
from postroom.queues.sessions import QueueSession
from postroom.room import Postroom

IN, OUT, OTHER = ("in",), ("out",), ("other",)


@pytest.fixture
def session(room: Postroom) -> QueueSession:
    for name in ("in", "out", "other"):
        room.queues.create(name, password="PW")
    return room.queues.session()


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def test_nobody_sees_a_message_before_its_end(room: Postroom, session: QueueSession) -> None:
    assert session.send([OUT], "AB", End.PARTIAL) == ["00"]
    assert session.send([OUT, OTHER], "CD", End.SEGMENT) == ["00", "00"]
    assert bodies(room, "out") == bodies(room, "other") == []
    assert session.send([OUT], "EF", End.GROUP) == ["00"]
    (message,) = room.peek("out")
    assert (message.body, message.properties) == ("ABCDEF", {"segments": "4,2", "end": "EGI"})
    assert session.send([OTHER], "", End.MESSAGE) == ["00"]
    assert bodies(room, "other") == ["CD"]


def test_partial_messages_are_purged_and_go_with_their_program(room: Postroom, session: QueueSession) -> None:
    session.send([OUT, OTHER], "AB", End.SEGMENT)
    assert session.purge([OUT, ("nowhere",)]) == ["00", "20"]
    assert session.purge([OUT]) == ["70"]
    session.close()
    again = room.queues.session()
    again.send([OTHER], "only this")
    assert bodies(room, "other") == ["only this"]


def test_each_destination_has_its_status_and_a_refused_send_can_be_repeated(
    room: Postroom, session: QueueSession
) -> None:
    room.queues.disable("out", password="PW", output_only=True)
    room.queues.disable("other", password="PW")
    assert session.send([OUT, OTHER, ("nowhere",)], "x", End.SEGMENT) == ["10", "10", "20"]
    assert session.send([OUT, OTHER, ("nowhere",)], "y") == ["10", "92", "20"]
    room.queues.enable("other", password="PW")
    assert session.send([OTHER], "y") == ["00"]
    assert bodies(room, "out") == bodies(room, "other") == ["xy"]


def test_a_receive_is_final_with_the_next_send_in_the_same_commit(room: Postroom, session: QueueSession) -> None:
    room.send("in", "order")
    assert session.receive(IN, area=Area(80)).message is not None
    session.send([OUT], "answer")
    session.close(orderly=False)
    assert (bodies(room, "in"), bodies(room, "out")) == ([], ["answer"])
    assert room.journal.verify().differences == ()


def test_a_send_that_no_queue_takes_makes_nothing_final(room: Postroom, session: QueueSession) -> None:
    room.queues.send_segments("out", ["one", "two"])
    reader = room.queues.session()
    assert reader.receive(OUT, segment=True).message.body == "one"  # type: ignore[union-attr]
    room.queues.disable("other", password="PW")
    room.send("in", "order")
    assert session.receive(IN).message.body == "order"  # type: ignore[union-attr]
    for destination, refusal in ((OUT, "91"), (OTHER, "92"), (("nowhere",), "20")):
        assert session.send([destination], "answer") == [refusal]
    session.close(orderly=False)
    assert bodies(room, "in") == ["order"]
    reader.close()


def test_a_send_that_some_queue_takes_is_final(room: Postroom, session: QueueSession) -> None:
    room.send("in", "order")
    session.receive(IN)
    assert session.send([("nowhere",), OUT], "answer") == ["20", "00"]
    session.close(orderly=False)
    assert (bodies(room, "in"), bodies(room, "out")) == ([], ["answer"])


@pytest.mark.parametrize("orderly", [True, False])
def test_what_was_received_last_is_back_unless_the_program_ended_in_order(
    room: Postroom, session: QueueSession, orderly: bool
) -> None:
    for text in ("one", "two"):
        room.send("in", text)
    assert session.receive(IN).message.body == "one"  # type: ignore[union-attr]
    assert session.receive(IN).message.body == "two"  # type: ignore[union-attr]
    session.send([OUT], "half", End.SEGMENT)  # no message yet, so nothing is final by it
    session.close(orderly=orderly)
    assert bodies(room, "in") == ([] if orderly else ["two"])


def test_nothing_is_sent_for_a_message_that_another_has_by_now(room: Postroom, session: QueueSession) -> None:
    room.send("in", "order")
    session.receive(IN)
    room._parts.store.transact(
        "give-back", lambda tx: [tx.handouts.give_back(each, "test") for each in tx.handouts.all()]
    )
    with pytest.raises(OutputFailed):
        session.send([OUT], "answer")
    assert (bodies(room, "in"), bodies(room, "out")) == (["order"], [])


def test_two_sessions_of_a_process_have_locks_of_their_own(room: Postroom, session: QueueSession) -> None:
    room.queues.send_segments("in", ["one", "two"])
    other = room.queues.session()
    assert session.receive(IN, segment=True).message.body == "one"  # type: ignore[union-attr]
    with pytest.raises(Exception, match="locked"):
        other.receive(IN, segment=True, wait=0)
    session.close(orderly=False)
    assert other.receive(IN, segment=True, wait=0).message.body == "one"  # type: ignore[union-attr]
    other.close()


def test_a_partial_message_has_the_bound_of_a_message(session: QueueSession) -> None:
    half = "x" * (BODY_BYTES_MAX // 2 + 1)
    session.send([OUT], half, End.PARTIAL)
    with pytest.raises(BodyTooLarge):
        session.send([OUT], half, End.PARTIAL)


def test_what_was_received_is_given_back_while_the_program_goes_on(room: Postroom, session: QueueSession) -> None:
    room.send("in", "order")
    room.queues.send_segments("out", ["one", "two"])
    assert session.receive(IN).message.body == "order"  # type: ignore[union-attr]
    session.send([OTHER], "part", End.SEGMENT)
    session.give_back()
    assert bodies(room, "in") == ["order"]
    assert session.receive(OUT, segment=True).message.body == "one"  # type: ignore[union-attr]
    session.give_back()
    assert session.receive(OUT, segment=True).message.body == "one"  # type: ignore[union-attr]
    session.send([OTHER], "", End.MESSAGE)  # what was sent in part is still there
    assert bodies(room, "other") == ["part"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_message_that_is_being_read_goes_on_if_one_before_it_comes_back(room: Postroom, keep: bool) -> None:
    """The reader of the first dies while another has begun the second: what that one reads is of the second alone."""
    room.queues.create("in", keep_processed=keep)
    room.queues.send_segments("in", ["A1", "A2"])
    room.queues.send_segments("in", ["B1", "B2", "B3"])
    first, second, third = (room.queues.session() for _ in range(3))

    def read(session: QueueSession, area: Area | None = None, *, segment: bool = True) -> str:
        message = session.receive(IN, area=area, segment=segment, wait=0).message
        assert message is not None
        return message.body

    assert [read(first), read(first), read(second)] == ["A1", "A2", "B1"]
    first.close(orderly=False)
    assert [read(second), read(second)] == ["B2", "B3"]
    assert read(third, segment=False) == "A1A2"
    second.close(orderly=False)
    rest = Area(4)
    assert read(second, rest, segment=False) == "B1B2"  # an area that is too short
    third.close(orderly=False)
    assert read(second, rest, segment=False) == "B3"
    second.close()
    assert bodies(room, "in") == ["A1A2"]
    assert room.journal.verify().differences == ()


def test_a_receiver_that_confirms_what_it_wrote_goes_on_if_a_message_before_comes_back(room: Postroom) -> None:
    room.queues.create("in")
    room.queues.send_segments("in", ["A1", "A2"])
    room.queues.send_segments("in", ["B1", "B2"])
    other = room.queues.session()
    other.receive(IN)
    written: list[str] = []

    def write(received: Received) -> None:
        assert received.message is not None
        written.append(received.message.body)

    room.receive("in", segment=True, deliver=write)
    other.close(orderly=False)
    room.receive("in", segment=True, deliver=write)
    assert (written, bodies(room, "in")) == (["B1", "B2"], ["A1A2"])
    room.receive("in", deliver=write)
    assert (written[-1], bodies(room, "in")) == ("A1A2", [])
    assert room.journal.verify().differences == ()
