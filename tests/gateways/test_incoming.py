"""What comes from outside: durable, once, with its sender and connection; what is no message is an error message."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.faults.upkeep_workload import write_here
from tests.gateways.conftest import Program

from postroom.engine import archiving
from postroom.errors import (
    ArgumentInvalid,
    ArrivalRefused,
    EntryRefused,
    GatewayUnknown,
    MessageGone,
    PostroomError,
    QueueHeld,
    XmlMalformed,
)
from postroom.gateways.incoming import Answers, Entered
from postroom.gateways.transport import Arrival
from postroom.limits import BODY_BYTES_MAX
from postroom.model.message import Message
from postroom.room import Postroom
from postroom.store.upkeep import retention

PROGRAM = """
create queue orders kind incomingGateway mode persistent interface http port orders errorqueue errs
create queue answers kind outgoingGateway mode persistent interface http port orders errorqueue errs
create queue errs kind basic mode persistent
create property id as xs:integer queue orders value /order/id
create rule confirm for orders if (/order) then do enqueue <ok>{/order/id}</ok> into answers
"""


def arrival(body: str, number: str | None = None, endpoint: str = "orders") -> Arrival:
    return Arrival(endpoint, body.encode(), "application/xml", "10.0.0.1:5", {"x-order": "7"}, number)


def proven(body: str, token: str, number: str | None = None) -> Arrival:
    return replace(arrival(body, number), token=token)


@pytest.fixture
def open_room(room: Postroom, program: Program) -> Postroom:
    room.gateways.add("orders", "http", path="/orders")
    program(room, PROGRAM)
    return room


def test_a_message_has_its_sender_connection_and_headers(open_room: Postroom) -> None:
    """D-16, D-23."""
    entered = open_room._parts.incoming.accept(arrival("<order><id>7</id></order>"))
    message = open_room.show(entered.key)
    assert (message.queue, message.format) == ("orders", "xml")
    assert message.properties == {
        "id": 7, "sender": "10.0.0.1:5", "connection": entered.connection, "x-order": "7",
    }  # fmt: skip
    assert [event.by for event in open_room.trace(entered.key)] == ["orders"]


def test_a_message_that_has_the_connection_is_the_answer(open_room: Postroom) -> None:
    incoming = open_room._parts.incoming
    entered = incoming.accept(arrival("<order><id>7</id></order>"))
    assert entered.connection is not None
    assert incoming.answer_of(entered.connection) == (True, None)
    open_room.run_until_idle()
    known, message = incoming.answer_of(entered.connection)
    assert known
    assert message is not None
    assert message.body == "<ok><id>7</id></ok>"
    assert incoming.answer_of("nobody") == (False, None)
    assert list(open_room.queues.info("answers")) == []


def answered(room: Postroom) -> tuple[str, Message]:
    """A request that has its answer, by its connection."""
    incoming = room._parts.incoming
    connection = incoming.accept(arrival("<order><id>7</id></order>")).connection
    assert connection is not None
    room.run_until_idle()
    message = incoming.answer_of(connection)[1]
    assert message is not None
    return connection, message


def test_no_sweep_removes_an_answer_that_may_be_asked_for(open_room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, message = answered(open_room)
    assert open_room.engine.sweepable()["messages"] == 1
    assert open_room.engine.sweep() == 1  # the request itself, of which nobody asks
    assert open_room._parts.incoming.answer_of(connection) == (True, message)
    held = open_room.journal.why(message.key)
    assert (held.removable, held.answers) == (False, True)
    monkeypatch.setattr(retention, "REQUEST_KEPT_SECONDS", -1.0)
    assert open_room.engine.sweepable()["messages"] == 1
    assert open_room.engine.sweep() == 1
    assert open_room._parts.incoming.answer_of(connection) == (False, None)  # both go together


def test_a_slice_that_is_reset_does_not_take_an_answer_along(room: Postroom, program: Program) -> None:
    room.gateways.add("orders", "http", path="/orders")
    more = """create slicing talk on connection
    create rule over for talk if (/over) then do reset"""
    rule = "do enqueue <ok>{/order/id}</ok> into answers"
    program(room, PROGRAM.replace(rule, f"({rule}, do enqueue <over/> into steps)") + more
            + " create queue steps kind basic mode persistent")  # fmt: skip
    connection, message = answered(room)
    assert room.journal.slice("talk", connection) == []
    room.engine.sweep()
    assert room._parts.incoming.answer_of(connection) == (True, message)


def test_a_request_whose_answer_was_purged_learns_that_it_is_gone(open_room: Postroom) -> None:
    incoming = open_room._parts.incoming
    entered = incoming.accept(arrival("<order><id>7</id></order>"))
    assert entered.connection is not None
    open_room.queues.set_password("answers", password="p")
    open_room.queues.disable("answers", password="p", output_only=True)
    open_room.run_until_idle()
    told: list[Message | PostroomError] = []
    ended = threading.Event()

    def tell(outcome: Message | PostroomError) -> None:
        told.append(outcome)
        ended.set()

    assert len(open_room.consumers.purge("answers").moves) == 1
    with Answers(open_room._parts.store, incoming) as answers:
        answers.wait_for(entered.connection, tell)
        assert ended.wait(10)
    assert isinstance(told[0], MessageGone)
    with pytest.raises(MessageGone):
        incoming.answer_of(entered.connection)


def test_a_request_that_was_purged_itself_is_gone(open_room: Postroom) -> None:
    incoming = open_room._parts.incoming
    first, second = (incoming.accept(arrival("<order><id>7</id></order>")) for _ in range(2))
    assert first.connection is not None
    open_room.consumers.purge("orders")
    with pytest.raises(MessageGone, match=first.key):
        incoming.answer_of(first.connection)
    assert second.connection is not None
    with pytest.raises(MessageGone, match=second.key):
        incoming.answer_of(second.connection)


def test_a_request_that_no_queue_answers_any_more_is_told_so(open_room: Postroom, program: Program) -> None:
    connection = open_room._parts.incoming.accept(arrival("<order><id>7</id></order>")).connection
    assert connection is not None
    program(open_room, "".join(line for line in PROGRAM.splitlines(True) if "answers" not in line))
    with pytest.raises(GatewayUnknown, match="orders"):
        open_room._parts.incoming.answer_of(connection)


def test_an_archive_leaves_answers_where_they_are(
    open_room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, message = answered(open_room)
    monkeypatch.setattr(archiving, "spark_writer", lambda spark: write_here)
    open_room.engine.sweep()
    open_room.journal.archive(timedelta(0), tmp_path / "old")
    assert open_room._parts.incoming.answer_of(connection) == (True, message)


def test_an_answer_that_nobody_waits_for_is_a_disconnected_transport(open_room: Postroom) -> None:
    open_room.send("answers", "<late/>", format="xml")
    open_room.run_until_idle()
    (error,) = open_room.queues.info("errs")
    assert "<class>network</class>" in error.body
    assert "<disconnectedTransport>" in error.body


def test_a_token_is_good_once_whichever_process_sees_it(open_room: Postroom) -> None:
    """It is kept with its message: another body with it is refused, and tells of it; the same number is the same."""
    accept = open_room._parts.incoming.accept
    entered = accept(proven("<order><id>1</id></order>", "t1", "n1"))
    assert accept(proven("<order><id>1</id></order>", "t2", "n1")).key == entered.key
    for number in (None, "n2"):
        with pytest.raises(ArrivalRefused, match="its token was used before"):
            accept(proven("<order><id>2</id></order>", "t1", number))
    assert accept(proven("<order><id>3</id></order>", "t3")).key > entered.key
    assert len(list(open_room.queues.info("orders"))) == 2
    assert len(list(open_room.queues.info("errs"))) == 2


def test_a_long_message_that_is_refused_is_told_by_its_beginning(open_room: Postroom) -> None:
    with pytest.raises(XmlMalformed):
        open_room._parts.incoming.accept(arrival("<order>" + "x" * 600_000))
    (error,) = open_room.queues.info("errs")
    assert "; its first 524288 of 600007 bytes are here" in error.body


def test_the_same_number_is_the_same_message(open_room: Postroom) -> None:
    incoming = open_room._parts.incoming
    first, second = (incoming.accept(arrival("<order><id>7</id></order>", "n1")) for _ in range(2))
    assert first == second
    with pytest.raises(ArgumentInvalid, match="used for another message"):
        incoming.accept(arrival("<order><id>8</id></order>", "n1"))
    assert len(list(open_room.queues.info("orders"))) == 1


@pytest.mark.parametrize(("body", "error", "code"), [
    ("<order>", XmlMalformed, "xml-malformed"),
    ("<order><id>seven</id></order>", EntryRefused, "entry-refused"),
    ("x" * (BODY_BYTES_MAX + 1), ArrivalRefused, "arrival-refused"),
])  # fmt: skip
def test_what_is_no_message_is_an_error_message(
    open_room: Postroom, body: str, error: type[Exception], code: str
) -> None:
    """D-60: message related, with what came."""
    with pytest.raises(error):
        open_room._parts.incoming.accept(arrival(body))
    (told,) = open_room.queues.info("errs")
    assert f"<class>message</class><code>{code}</code>" in told.body
    assert "<initialMessage>" in told.body
    assert list(open_room.queues.info("orders")) == []


def test_one_that_is_refused_leaves_the_others_of_its_commit_alone(open_room: Postroom) -> None:
    incoming = open_room._parts.incoming
    good = "<order><id>1</id></order>"
    outcomes = incoming.accept_many([arrival(good), arrival("<"), arrival(good, endpoint="no"), arrival(good)])
    assert [type(outcome) for outcome in outcomes] == [Entered, XmlMalformed, GatewayUnknown, Entered]
    assert len(list(open_room.queues.info("orders"))) == 2
    assert len(list(open_room.queues.info("errs"))) == 1


def test_a_queue_on_hold_takes_nothing_in(open_room: Postroom) -> None:
    open_room.queues.set_password("orders", password="p")
    open_room.queues.disable("orders", password="p")
    with pytest.raises(QueueHeld):
        open_room._parts.incoming.accept(arrival("<order><id>7</id></order>"))


def test_whoever_waits_is_told_at_once(open_room: Postroom) -> None:
    incoming, told, seen = open_room._parts.incoming, threading.Event(), list[Message]()
    entered = incoming.accept(arrival("<order><id>7</id></order>"))
    assert entered.connection is not None

    def tell(message: Message | PostroomError) -> None:
        assert isinstance(message, Message)
        seen.append(message)
        told.set()

    with Answers(open_room.store, incoming) as answers:
        answers.wait_for(entered.connection, tell)
        open_room.run_until_idle()
        assert told.wait(10)
    assert seen[0].body == "<ok><id>7</id></ok>"


def test_requests_are_forgotten_after_their_time(open_room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    incoming = open_room._parts.incoming
    entered = incoming.accept(arrival("<order><id>7</id></order>"))
    assert entered.connection is not None
    incoming.forget()
    assert incoming.answer_of(entered.connection)[0]
    monkeypatch.setattr("postroom.gateways.incoming.REQUEST_KEPT_SECONDS", -1.0)
    monkeypatch.setattr("postroom.gateways.incoming._FORGET_SECONDS", 0.0)
    incoming.forget()
    assert not incoming.answer_of(entered.connection)[0]
