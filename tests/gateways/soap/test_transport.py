"""SOAP going out: to partners on loopback, checked by their interface, with faults and replies as messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateways.conftest import Partner
from tests.gateways.served import ORDER, REQUEST, bodies, loaded, opened

from postroom.errors import GatewayInvalid, ProgramInvalid
from postroom.model.soap import fault_body, read_envelope, written
from postroom.room import Postroom

PROGRAM = """
create queue supplier kind outgoingGateway mode persistent interface supplier.wsdl port {port} errorqueue errs
create queue replies kind incomingGateway mode persistent interface supplier.wsdl port {port} errorqueue errs
create queue errs kind basic mode persistent
"""
OFFER = '<offer xmlns="urn:example:types"><item>bolts</item><price>3.5</price></offer>'
XML = {"content-type": "text/xml"}


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with opened(sqlite_url) as it:
        yield it


@pytest.fixture
def buyer(room: Postroom, partner: Partner, tmp_path: Path) -> Postroom:
    for port in ("CapacityRequestPort", "CapacityRequestPort12"):
        room.gateways.add(port, "soap", address=partner.address, attempts="3", backoff="0.01")
    loaded(room, tmp_path, PROGRAM.format(port="CapacityRequestPort"))
    return room


def test_a_message_goes_out_in_an_envelope_and_its_reply_is_a_message(buyer: Postroom, partner: Partner) -> None:
    partner.answers.append((200, XML, written("1.1", [], OFFER).encode()))
    buyer.send("supplier", REQUEST % ("bolts", 7), format="xml")
    buyer.run_until_idle()
    ((_, headers, body),) = partner.got
    assert headers["soapaction"] == '"urn:example:ask"'
    assert headers["content-type"] == "text/xml; charset=utf-8"
    assert read_envelope(body).message() == REQUEST % ("bolts", 7)
    assert bodies(buyer, "replies") == [OFFER]


def test_an_envelope_has_the_version_of_its_port(room: Postroom, partner: Partner, tmp_path: Path) -> None:
    room.gateways.add("CapacityRequestPort12", "soap", address=partner.address)
    loaded(room, tmp_path, PROGRAM.format(port="CapacityRequestPort12"))
    room.send("supplier", ORDER % 1, format="xml")
    room.run_until_idle()
    ((_, headers, body),) = partner.got
    assert headers["content-type"] == 'application/soap+xml; charset=utf-8; action="urn:example:place"'
    assert read_envelope(body).version == "1.2"


@pytest.mark.parametrize(("status", "body", "code", "said"), [
    (500, written("1.1", [], fault_body("1.1", "receiver", "no", '<refusal xmlns="urn:example:types">full</refusal>')),
     "fault", "&lt;refusal"),
    (200, written("1.1", [], fault_body("1.1", "sender", "never")), "fault", "never"),
    (400, "<html/>", "refused", "no envelope"),
    (200, "<html/>", "refused", "no envelope"),
    (200, written("1.1", [], "<x/><y/>"), "refused", "more than one"),
    (200, '<!DOCTYPE x [<!ENTITY y "z">]>' + written("1.1", [], OFFER), "refused", "DOCTYPE"),
])  # fmt: skip
def test_a_fault_and_what_is_no_answer_are_error_messages(
    buyer: Postroom, partner: Partner, status: int, body: str, code: str, said: str
) -> None:
    partner.answers.append((status, XML, body.encode()))
    buyer.send("supplier", REQUEST % ("bolts", 7), format="xml")
    buyer.run_until_idle()
    (error,) = bodies(buyer, "errs")
    assert f"<class>network</class><code>{code}</code>" in error
    assert said in error
    assert len(partner.got) == 1, "it is not sent again"
    assert bodies(buyer, "replies") == []


def test_what_may_pass_is_tried_again(buyer: Postroom, partner: Partner) -> None:
    late = written("1.1", [], fault_body("1.1", "receiver", "later"))
    partner.answers += [(503, XML, late.encode()), (502, {}, b""), (200, XML, written("1.1", [], OFFER).encode())]
    buyer.send("supplier", REQUEST % ("bolts", 7), format="xml")
    buyer.run_until_idle()
    assert len(partner.got) == 3
    assert len({headers["idempotency-key"] for _, headers, _ in partner.got}) == 1
    assert bodies(buyer, "replies") == [OFFER]


@pytest.mark.parametrize("body", [REQUEST.replace("%d", "many") % "x", "<odd/>", OFFER])
def test_what_the_interface_does_not_know_is_not_sent(buyer: Postroom, partner: Partner, body: str) -> None:
    buyer.send("supplier", body, format="xml")
    buyer.run_until_idle()
    (error,) = bodies(buyer, "errs")
    assert "<class>message</class><code>schema-invalid</code>" in error
    assert partner.got == []


@pytest.mark.parametrize("reply", [OFFER.replace("3.5", "cheap"), ORDER % 1])
def test_a_reply_that_the_interface_does_not_know_is_an_error_message(
    buyer: Postroom, partner: Partner, reply: str
) -> None:
    partner.answers.append((200, XML, written("1.1", [], reply).encode()))
    buyer.send("supplier", REQUEST % ("bolts", 7), format="xml")
    buyer.run_until_idle()
    (error,) = bodies(buyer, "errs")
    assert "a reply cannot be taken in" in error
    assert bodies(buyer, "replies") == []


LINE = "create queue q kind outgoingGateway mode persistent"
REFUSED = [
    (f"{LINE} interface none.wsdl port CapacityRequestPort", "none.wsdl", "interface-read"),
    (f"{LINE} interface supplier.wsdl port CapacityRequestPrt",
     "it has no port CapacityRequestPrt; did you mean", "interface-usable"),
    (f"{LINE} interface supplier.wsdl port SumPort", "this room has no gateway SumPort", "gateway-known"),
    (f"{LINE} interface supplier.wsdl port http", "it has no port http", "interface-usable"),
    (f"{LINE} port CapacityRequestPort", "needs interface FILE.wsdl", "gateway-known"),
    (f"{LINE} interface soap port CapacityRequestPort", "needs interface FILE.wsdl", "gateway-known"),
    (f"{LINE} interface http port http using WS-ReliableMessaging", "is for SOAP", "interface-usable"),
    (f"{LINE} interface supplier.wsdl port CapacityRequestPort using WS-Security policy p.xml", "p.xml",
     "interface-read"),
    (f"{LINE} interface supplier.wsdl port CapacityRequestPort using WS-Foo policy p.xml",
     "no Web Service extension WS-Foo", "extension-known"),
    (f"{LINE} interface nix.wsdl port CapacityRequestPort schema nix.xsd using WS-Foo",
     "no Web Service extension WS-Foo", "extension-known"),
    (f"{LINE} interface supplier.wsdl port CapacityRequestPort using WS-Foo policy supplier.xsd",
     "no Web Service extension WS-Foo", "extension-known"),
    (f"{LINE} interface supplier.wsdl port CapacityRequestPort using WS-Security policy supplier.xsd",
     "the root of a policy is wsp:Policy", "interface-usable"),
    (LINE.replace("persistent", "transient")
     + " interface supplier.wsdl port CapacityRequestPort using WS-ReliableMessaging",
     "needs mode persistent", "reliable-persistent"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "why", "rule"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_program_names_and_is_not_there_is_refused_with_its_place(
    buyer: Postroom, tmp_path: Path, line: str, why: str, rule: str
) -> None:
    buyer.gateways.add("http", "http", address="http://127.0.0.1:9/")
    with pytest.raises(ProgramInvalid) as error:
        loaded(buyer, tmp_path, f"create queue other kind basic mode persistent\n{line}\n", "bad.demaq")
    assert why in str(error.value)
    assert "bad.demaq:2:1: " in str(error.value)
    assert rule in str(error.value)


def test_queues_at_one_port_say_the_same(buyer: Postroom, tmp_path: Path) -> None:
    more = "create queue more kind outgoingGateway mode persistent interface supplier.wsdl port CapacityRequestPort"
    with pytest.raises(ProgramInvalid, match="has another interface or policy"):
        loaded(buyer, tmp_path, f"{more} using WS-ReliableMessaging\n", "more.demaq")


def test_the_definitions_of_a_room_print_their_files(buyer: Postroom, tmp_path: Path) -> None:
    printed = {name: text.decode() for name, text in buyer.definitions.files().items()}
    assert {"supplier.wsdl", "supplier-supplier.xsd"} <= printed.keys()
    assert "replies.wsdl" not in printed, "queues of one port share their interface"
    assert 'schemaLocation="supplier-supplier.xsd"' in printed["supplier.wsdl"]
    for name, text in printed.items():
        (tmp_path / name).write_text(text)
    assert buyer.load(tmp_path / "p.demaq").removed == ()


def test_settings_are_checked(room: Postroom) -> None:
    with pytest.raises(GatewayInvalid, match="address=URL"):
        room.gateways.add("x", "soap")
    with pytest.raises(GatewayInvalid, match="env:NAME"):
        room.gateways.add("x", "soap", path="/x", wss_password="secret")
