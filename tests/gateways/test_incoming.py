"""What comes from outside: durable, once, with its sender and connection; what is no message is an error message."""

from __future__ import annotations

import threading

import pytest
from tests.gateways.conftest import Program

from postroom.errors import ArgumentInvalid, ArrivalRefused, EntryRefused, GatewayUnknown, QueueHeld, XmlMalformed
from postroom.gateways.incoming import Answers, Arrival, Entered
from postroom.limits import BODY_BYTES_MAX
from postroom.model.message import Message
from postroom.room import Postroom

PROGRAM = """
create queue orders kind incomingGateway mode persistent interface http port orders errorqueue errs
create queue answers kind outgoingGateway mode persistent interface http port orders errorqueue errs
create queue errs kind basic mode persistent
create property id as xs:integer queue orders value /order/id
create rule confirm for orders if (/order) then do enqueue <ok>{/order/id}</ok> into answers
"""


def arrival(body: str, number: str | None = None, endpoint: str = "orders") -> Arrival:
    return Arrival(endpoint, body.encode(), "application/xml", "10.0.0.1:5", {"x-order": "7"}, number)


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


def test_an_answer_that_nobody_waits_for_is_a_disconnected_transport(open_room: Postroom) -> None:
    open_room.send("answers", "<late/>", format="xml")
    open_room.run_until_idle()
    (error,) = open_room.queues.info("errs")
    assert "<class>network</class>" in error.body
    assert "<disconnectedTransport>" in error.body


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

    def tell(message: Message) -> None:
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
