"""Reliable messaging between two rooms: each message once and in order, whatever the line and the processes do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.gateways.conftest import Partner
from tests.gateways.killed import Process, killed_until
from tests.gateways.lossy import lossy
from tests.gateways.served import ORDER, REQUEST, bodies, listening, listens, loaded, opened, running, until

from postroom.gateways.reliable import protocol
from postroom.gateways.smtp_server import free_port
from postroom.model.soap import RELIABLE, fault_body, written
from postroom.room import Postroom

OUT = """
create queue supplier kind outgoingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue replies kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue errs kind basic mode persistent
"""
IN = """
create queue requests kind incomingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue offers kind outgoingGateway mode persistent interface supplier.wsdl port CapacityRequestPort
  using WS-ReliableMessaging errorqueue errs
create queue errs kind basic mode persistent
create rule offer for requests if (/*:capacityRequest) then do enqueue
  <offer xmlns="urn:example:types"><item>{string(/*/*:item)}</item><price>1</price></offer> into offers
"""
XML = {"content-type": "text/xml"}


def numbers(room: Postroom, queue: str) -> list[int]:
    return [int(number) for body in bodies(room, queue) for number in re.findall(r"<id>(\d+)</id>", body)]


def sequences(room: Postroom, queue: str = "supplier") -> list[tuple[int, bool]]:
    return [(each.upto, each.ended) for each in room._parts.store.read(lambda tx: tx.sequences.outgoing(queue))]


@pytest.fixture
def supplier(url: str, tmp_path: Path) -> Iterator[Postroom]:
    folder = tmp_path / "supplier"
    folder.mkdir()
    with opened(url) as it:
        it.gateways.add("CapacityRequestPort", "soap", path="/capacity", wait="20")
        loaded(it, folder, IN)
        yield it


@pytest.fixture
def buyer(tmp_path: Path) -> Iterator[Postroom]:
    with opened(str(tmp_path / "buyer.db")) as it:
        yield it


def lead(buyer: Postroom, tmp_path: Path, port: int, **settings: str) -> None:
    wanted = {"attempts": "100", "backoff": "0.01", **settings}
    buyer.gateways.add("CapacityRequestPort", "soap", address=f"http://127.0.0.1:{port}/capacity", **wanted)
    loaded(buyer, tmp_path, OUT)


def test_every_message_comes_once_and_in_order_over_a_bad_line(
    buyer: Postroom, supplier: Postroom, tmp_path: Path
) -> None:
    with listening(supplier) as port, lossy(port, seed=7) as line:
        lead(buyer, tmp_path, line.port)
        for number in range(1, 51):
            buyer.send("supplier", ORDER % number, format="xml")
        buyer.run_until_idle()
        assert (line.lost > 5, line.doubled > 5, line.delayed > 5) == (True, True, True)
    assert numbers(supplier, "requests") == list(range(1, 51))
    assert bodies(buyer, "errs") == bodies(supplier, "errs") == []
    assert buyer.engine.outbox() == []
    assert buyer.journal.verify().differences == supplier.journal.verify().differences == ()


def test_a_request_of_a_sequence_has_its_reply_over_a_bad_line(
    buyer: Postroom, supplier: Postroom, tmp_path: Path
) -> None:
    with listening(supplier) as port, running(supplier), lossy(port, seed=3) as line:
        lead(buyer, tmp_path, line.port)
        for number in range(6):
            buyer.send("supplier", REQUEST % (f"i{number}", 1), format="xml")
        buyer.run_until_idle()
    assert sorted(re.findall(r"<item>(i\d)</item>", "".join(bodies(buyer, "replies")))) == [f"i{n}" for n in range(6)]
    assert len(bodies(supplier, "requests")) == 6


def test_a_message_that_is_given_up_is_an_error_and_the_next_sequence_begins(
    buyer: Postroom, supplier: Postroom, tmp_path: Path
) -> None:
    with listening(supplier) as port:
        lead(buyer, tmp_path, port)
        buyer.send("supplier", ORDER % 1, format="xml")
        buyer.send("supplier", "<odd/>", format="xml")
        buyer.send("supplier", ORDER % 3, format="xml")
        buyer.run_until_idle()
        assert len(bodies(buyer, "errs")) == 1
        assert numbers(supplier, "requests") == [1, 3], "its end lets in what came behind the gap"
        assert sequences(buyer) == []
        buyer.send("supplier", ORDER % 4, format="xml")
        buyer.run_until_idle()
    assert numbers(supplier, "requests") == [1, 3, 4]
    assert sequences(buyer) == [(1, False)]


def test_a_dead_partner_is_an_error_message_after_the_last_attempt(buyer: Postroom, tmp_path: Path) -> None:
    lead(buyer, tmp_path, 9, attempts="2")
    buyer.send("supplier", ORDER % 1, format="xml")
    buyer.run_until_idle()
    (error,) = bodies(buyer, "errs")
    assert "<disconnectedTransport>http://127.0.0.1:9</disconnectedTransport>" in error


def test_a_sequence_that_the_partner_has_lost_is_an_error_message(
    buyer: Postroom, partner: Partner, tmp_path: Path
) -> None:
    created = written("1.1", [], protocol.create_sequence_response("urn:s"))
    lost = fault_body("1.1", "sender", "gone", subcode=(RELIABLE, "UnknownSequence"))
    partner.answers += [(200, XML, created.encode()), (500, XML, written("1.1", [], lost).encode())]
    lead(buyer, tmp_path, partner.port)
    buyer.send("supplier", ORDER % 1, format="xml")
    buyer.run_until_idle()
    (error,) = bodies(buyer, "errs")
    assert "<code>sequence-lost</code>" in error
    assert sequences(buyer) == []


def close_response(identifier: str, *ranges: tuple[int, int]) -> str:
    said = [protocol.acknowledgement(identifier, ranges, final=True)]
    return written("1.1", said, protocol.ended("CloseSequence", identifier))


def test_a_partner_that_acknowledges_nothing_as_it_answers_is_asked_at_the_end_of_its_sequence(
    buyer: Postroom, partner: Partner, tmp_path: Path
) -> None:
    """As gSOAP's plug-in does with one-way messages: what has come it says when its sequence is closed."""
    created = [written("1.1", [], protocol.create_sequence_response(name)) for name in ("urn:s", "urn:t")]
    ended = written("1.1", [], protocol.ended("TerminateSequence", "urn:s"))
    texts = [
        created[0], "", "", "", "", close_response("urn:s", (1, 2)), ended,
        created[1], "", "", close_response("urn:t", (1, 1)), ended,
    ]  # fmt: skip
    partner.answers += [(200, XML, text.encode()) if text else (202, {}, b"") for text in texts]
    lead(buyer, tmp_path, partner.port)
    for number in (1, 2, 3):
        buyer.send("supplier", ORDER % number, format="xml")
    buyer.run_until_idle()
    assert bodies(buyer, "errs") == []
    assert buyer.engine.outbox() == []
    assert sequences(buyer) == []
    numbered = [(re.search(r"MessageNumber>(\d)", text), re.search(r"<id>(\d)</id>", text)) for text in partner.bodies]
    assert [(number[1], order[1]) for number, order in numbered if number and order] == [
        ("1", "1"), ("2", "2"), ("3", "3"), ("1", "3"),
    ]  # fmt: skip


def test_a_sequence_that_was_closed_before_a_crash_is_accounted_for_again(
    buyer: Postroom, partner: Partner, tmp_path: Path
) -> None:
    created = written("1.1", [], protocol.create_sequence_response("urn:s"))
    shut = written("1.1", [], fault_body("1.1", "sender", "shut", subcode=(RELIABLE, "SequenceClosed")))
    again = written("1.1", [], protocol.create_sequence_response("urn:t"))
    told = protocol.acknowledgement("urn:t", [(1, 1)], final=False)
    ended = written("1.1", [], protocol.ended("TerminateSequence", "urn:s"))
    answers = [(200, created), (500, shut), (200, close_response("urn:s")), (200, ended), (200, again)]
    partner.answers += [(status, XML, text.encode()) for status, text in answers]
    partner.answers.append((200, XML, written("1.1", [told], "").encode()))
    lead(buyer, tmp_path, partner.port)
    buyer.send("supplier", ORDER % 1, format="xml")
    buyer.run_until_idle()
    assert bodies(buyer, "errs") == []
    assert sequences(buyer) == [(1, False)]


def test_what_had_come_before_its_sequence_was_closed_is_not_sent_again(
    buyer: Postroom, partner: Partner, tmp_path: Path
) -> None:
    created = written("1.1", [], protocol.create_sequence_response("urn:s"))
    shut = written("1.1", [], fault_body("1.1", "sender", "shut", subcode=(RELIABLE, "SequenceClosed")))
    ended = written("1.1", [], protocol.ended("TerminateSequence", "urn:s"))
    answers = [(200, created), (500, shut), (200, close_response("urn:s", (1, 1))), (200, ended)]
    partner.answers += [(status, XML, text.encode()) for status, text in answers]
    lead(buyer, tmp_path, partner.port)
    buyer.send("supplier", ORDER % 1, format="xml")
    buyer.run_until_idle()
    assert bodies(buyer, "errs") == []
    assert sequences(buyer) == []
    assert sum("MessageNumber>" in body for body in partner.bodies) == 1


# --- with kills of either side ---


def exchanged_with_kills(tmp_path: Path, count: int, kills: int, seed: int) -> None:
    urls = {name: str(tmp_path / f"{name}.db") for name in ("buyer", "supplier")}
    port = free_port("127.0.0.1")
    with lossy(port, seed=seed) as line:
        with opened(urls["supplier"]) as supplier:
            supplier.gateways.add("CapacityRequestPort", "soap", path="/capacity")
            folder = tmp_path / "supplier"
            folder.mkdir()
            loaded(supplier, folder, IN)
        with opened(urls["buyer"]) as buyer:
            lead(buyer, tmp_path, line.port)
            buyer.send_many("supplier", [ORDER % number for number in range(1, count + 1)], format="xml")
        listener = Process.of_ours("--room", urls["supplier"], "gateway", "listen", "--http", f"127.0.0.1:{port}")
        until(lambda: listens(port))  # attempts that fail before are the further apart, the more there were
        sender = Process.of_ours("--room", urls["buyer"], "run", "--until-idle")
        killed_until([listener, sender], lambda: _is_sent(urls["buyer"]), kills, Random(seed), 60 + count)
    with opened(urls["supplier"]) as supplier, opened(urls["buyer"]) as buyer:
        assert numbers(supplier, "requests") == list(range(1, count + 1))
        assert bodies(buyer, "errs") == bodies(supplier, "errs") == []
        assert buyer.journal.verify().differences == supplier.journal.verify().differences == ()


def _is_sent(url: str) -> bool:
    with opened(url) as buyer:
        return not buyer.engine.outbox()


@pytest.mark.slow
def test_a_thousand_messages_come_once_and_in_order_with_kills_of_either_side(tmp_path: Path) -> None:
    exchanged_with_kills(tmp_path, 1_000, 12, seed=11)


def test_numbers_survive_kills_of_either_side(tmp_path: Path) -> None:
    exchanged_with_kills(tmp_path, 20, 1, seed=5)


def test_sequences_end_when_they_are_long(
    buyer: Postroom, supplier: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.gateways.reliable.source.SEQUENCE_MESSAGES", 3)
    with listening(supplier) as port:
        lead(buyer, tmp_path, port)
        for number in range(1, 9):
            buyer.send("supplier", ORDER % number, format="xml")
            buyer.run_until_idle()
    assert numbers(supplier, "requests") == list(range(1, 9))
    assert sequences(buyer)[-1] == (2, False)
