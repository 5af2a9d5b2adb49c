"""The receiving side against a client that speaks the protocol by hand: order, repetition, ends, and faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.gateways.served import ORDER, bodies, listening, loaded, opened

from postroom.gateways.reliable import protocol
from postroom.limits import SEQUENCE_WINDOW
from postroom.model.soap import Envelope, read_envelope, written
from postroom.room import Postroom

IN = """
create queue requests kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue errs kind basic mode persistent
"""
Ask = Callable[..., Envelope]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postroom]:
    folder = tmp_path_factory.mktemp("destination")
    with opened(str(folder / "room.db")) as it:
        it.gateways.add("CapacityRequestPort", "soap", path="/capacity")
        loaded(it, folder, IN)
        yield it


@pytest.fixture(scope="module")
def ask(room: Postroom) -> Iterator[Ask]:
    with listening(room) as port, httpx.Client(trust_env=False, timeout=60) as client:

        def post(body: str, *headers: str) -> Envelope:
            text = written("1.1", list(headers), body)
            answer = client.post(
                f"http://127.0.0.1:{port}/capacity", content=text.encode(), headers={"content-type": "text/xml"}
            )
            return read_envelope(answer.content)

        yield post


@pytest.fixture
def name(ask: Ask) -> str:
    return protocol.identifier_of(ask(protocol.create_sequence()).content())


def numbers(room: Postroom, since: int) -> list[int]:
    return [int(re.findall(r"<id>(\d+)</id>", body)[0]) for body in bodies(room, "requests")[since:]]


def fault(envelope: Envelope) -> str:
    found = envelope.fault()
    assert found is not None
    return found.code.rpartition(":")[2]


def test_messages_enter_in_order_and_once(room: Postroom, ask: Ask, name: str) -> None:
    since = len(bodies(room, "requests"))
    for number, ranges, there in (
        (3, [(3, 3)], []), (1, [(1, 1), (3, 3)], [1]), (3, [(1, 1), (3, 3)], [1]), (5, [(1, 1), (3, 3), (5, 5)], [1]),
        (2, [(1, 3), (5, 5)], [1, 2, 3]), (1, [(1, 3), (5, 5)], [1, 2, 3]), (4, [(1, 5)], [1, 2, 3, 4, 5]),
    ):  # fmt: skip
        answer = ask(ORDER % number, protocol.sequence(name, number))
        assert protocol.acknowledged(answer, name) == ranges
        assert numbers(room, since) == there


def test_an_acknowledgement_can_be_asked_for(ask: Ask, name: str) -> None:
    assert "None" in ask("", protocol.ack_requested(name)).text()
    ask(ORDER % 1, protocol.sequence(name, 1))
    assert protocol.acknowledged(ask("", protocol.ack_requested(name)), name) == [(1, 1)]


def test_a_sequence_is_closed_and_terminated_and_its_kept_messages_enter(room: Postroom, ask: Ask, name: str) -> None:
    since = len(bodies(room, "requests"))
    for number in (1, 3, 4):
        ask(ORDER % number, protocol.sequence(name, number))
    closed = ask(protocol.ending("CloseSequence", name, 4))
    assert protocol.acknowledged(closed, name) == [(1, 1), (3, 4)]
    assert "Final" in closed.text()
    assert fault(ask(ORDER % 2, protocol.sequence(name, 2))) == "SequenceClosed"
    assert numbers(room, since) == [1]
    for _ in range(2):
        ended = ask(protocol.ending("TerminateSequence", name, 4))
        assert protocol.body_name(ended) == "TerminateSequenceResponse"
        assert protocol.acknowledged(ended, name) == [(1, 1), (3, 4)], "what never came is not acknowledged"
    assert numbers(room, since) == [1, 3, 4], "what was acknowledged is not lost"
    late = ask(ORDER % 2, protocol.sequence(name, 2))
    assert fault(late) == "SequenceTerminated"
    assert protocol.acknowledged(ask("", protocol.ack_requested(name)), name) == [(1, 1), (3, 4)]
    assert protocol.acknowledged(ask(ORDER % 4, protocol.sequence(name, 4)), name) == [(1, 1), (3, 4)]
    assert numbers(room, since) == [1, 3, 4]
    assert fault(ask(ORDER % 9, protocol.sequence(name, 9))) == "SequenceTerminated"


def test_what_is_wrong_has_its_fault(room: Postroom, ask: Ask, name: str) -> None:
    assert fault(ask(ORDER % 1)) == "WSRMRequired"
    assert fault(ask(ORDER % 1, protocol.sequence("urn:none", 1))) == "UnknownSequence"
    assert fault(ask("", protocol.ack_requested("urn:none"))) == "UnknownSequence"
    assert fault(ask(protocol.ending("TerminateSequence", "urn:none", 1))) == "UnknownSequence"
    assert fault(ask(ORDER % 1, protocol.sequence(name, 0))) == "MessageNumberRollover"
    early = ask(ORDER % 1, protocol.sequence(name, SEQUENCE_WINDOW + 1))
    assert fault(early) == "Server"
    assert protocol.acknowledged(early, name) == []


def test_a_message_that_is_refused_has_come(room: Postroom, ask: Ask, name: str) -> None:
    """Its number would be waited for forever; its error message has what it said."""
    since, before = len(bodies(room, "requests")), len(bodies(room, "errs"))
    bad = ask('<order xmlns="urn:example:types"><id>x</id></order>', protocol.sequence(name, 2))
    assert fault(bad) == "Client"
    assert protocol.acknowledged(bad, name) == [(2, 2)]
    ask(ORDER % 3, protocol.sequence(name, 3))
    ask(ORDER % 1, protocol.sequence(name, 1))
    assert numbers(room, since) == [1, 3]
    assert len(bodies(room, "errs")) == before + 1
    assert protocol.acknowledged(ask("<odd/>", protocol.sequence(name, 4)), name) == [(1, 4)]
    assert len(bodies(room, "errs")) == before + 2


def test_a_port_takes_so_many_sequences(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.gateways.reliable.destination.SEQUENCES_MAX", 0)
    assert fault(ask(protocol.create_sequence())) == "CreateSequenceRefused"


def test_a_queue_on_hold_acknowledges_nothing(room: Postroom, ask: Ask, name: str) -> None:
    since = len(bodies(room, "requests"))
    room.queues.set_password("requests", password="p")
    room.queues.disable("requests", password="p")
    held = ask(ORDER % 1, protocol.sequence(name, 1))
    assert (fault(held), protocol.acknowledged(held, name)) == ("Server", [])
    assert fault(ask(protocol.ending("TerminateSequence", name, 1))) == "Server"
    room.queues.enable("requests", password="p")
    assert protocol.acknowledged(ask(ORDER % 1, protocol.sequence(name, 1)), name) == [(1, 1)]
    assert numbers(room, since) == [1]


def test_old_sequences_are_forgotten(tmp_path: Path, room: Postroom, ask: Ask, name: str) -> None:
    store = room._parts.store
    later = store.session.clock() + 10**13
    gone = store.transact("sequence", lambda tx: tx.sequences.forget(later))
    assert name in gone
    assert fault(ask(ORDER % 1, protocol.sequence(name, 1))) == "UnknownSequence"
