"""Endpoints: added, listed, tried and removed; named by programs; no secret is stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gateways.conftest import Partner, Program

from postroom.errors import (
    GatewayExists,
    GatewayInUse,
    GatewayInvalid,
    GatewayUnknown,
    GatewayUnreachable,
    ProgramInvalid,
)
from postroom.room import Postroom


def test_an_endpoint_is_kept_without_its_secret(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-itself")
    room.gateways.add("a", "http", address="https://a.example/", token="env:TOKEN")
    (found,) = room.gateways.all()
    assert found["settings"]["token"] == "env:TOKEN"
    assert found["directions"] == ["out", "reply"]
    assert "s3cret" not in repr(room.journal.last(10))
    assert [event.detail for event in room.journal.last(1)] == [{"gateway": "a", "transport": "http"}]
    with pytest.raises(GatewayExists):
        room.gateways.add("a", "http", address="https://b.example/")
    room.gateways.remove("a")
    assert room.gateways.all() == []
    with pytest.raises(GatewayUnknown, match="no gateway a"):
        room.gateways.remove("a")


@pytest.mark.parametrize(("name", "transport", "settings", "why"), [
    ("a b", "http", {"path": "/x"}, "a name has"), ("a", "pigeon", {}, "no transport 'pigeon'; there are http, smtp"),
    ("a", "http", {}, "is missing"), ("a", "command", {"command": "'"}, "closing quotation"),
    ("a", "smtp", {"address": "smtp://x"}, "sender, and to or recipients"),
    ("a", "http", {"path": "/taken"}, "that of t"),
])  # fmt: skip
def test_what_cannot_be_used_is_not_added(
    room: Postroom, name: str, transport: str, settings: dict[str, str], why: str
) -> None:
    room.gateways.add("t", "http", path="/taken")
    with pytest.raises(GatewayInvalid, match=why):
        room.gateways.add(name, transport, **settings)
    assert len(room.gateways.all()) == 1


def test_an_endpoint_that_a_program_names_stays(room: Postroom, program: Program) -> None:
    room.gateways.add("a", "command", command="true")
    program(room, "create queue out kind outgoingGateway mode persistent port a")
    with pytest.raises(GatewayInUse, match="used by out"):
        room.gateways.remove("a")
    assert room.gateways.all()[0]["queue_names"] == ["out"]
    program(room, "create queue other kind basic mode persistent")
    room.gateways.remove("a")


@pytest.mark.parametrize(("clauses", "why"), [
    ("kind outgoingGateway port suplier", "no gateway suplier; did you mean supplier?"),
    ("kind outgoingGateway", "no gateway out; an operator adds it with: postroom gateway add"),
    ("kind outgoingGateway interface smtp port supplier", "the gateway supplier is http, not smtp"),
    ("kind outgoingGateway interface supplier.wsdl port P", r"cannot read .*supplier\.wsdl"),
    ("kind outgoingGateway port supplier using WS-Foo policy policy.xml", "no Web Service extension WS-Foo"),
    ("kind outgoingGateway port supplier using WS-Security policy p.xml", r"cannot read .*p\.xml"),
    ("kind outgoingGateway port supplier using WS-Foo", "no Web Service extension WS-Foo; there are WS-Rel"),
    ("kind outgoingGateway port supplier schema nix.xsd", r"cannot read .*nix\.xsd"),
    ("kind incomingGateway interface http port supplier", "the gateway supplier takes nothing in, as it was added"),
    ("kind incomingGateway port printer", "the gateway printer .command. gets nothing"),
    ("kind outgoingGateway port mailbox", "the gateway mailbox .smtp. sends nothing"),
])  # fmt: skip
def test_a_program_that_names_what_the_room_lacks_is_refused_with_its_place(
    room: Postroom, program: Program, tmp_path: Path, clauses: str, why: str
) -> None:
    (tmp_path / "policy.xml").write_text("<policy/>")
    room.gateways.add("supplier", "http", address="http://127.0.0.1:9/")
    room.gateways.add("printer", "command", command="true")
    room.gateways.add("mailbox", "smtp", recipient="a@b.example")
    text = f"create queue a kind basic mode persistent\n  create queue out mode persistent {clauses}"
    with pytest.raises(ProgramInvalid, match=rf"p\.demaq:2:3: .*{why}"):
        program(room, text)
    assert room.definitions.catalog() == []


def test_two_queues_cannot_have_what_comes_from_one_endpoint(room: Postroom, program: Program) -> None:
    room.gateways.add("orders", "http", path="/orders")
    with pytest.raises(ProgramInvalid, match="what comes from orders goes to a; b cannot have it too"):
        program(
            room,
            "create queue a kind incomingGateway mode persistent port orders\n"
            "create queue b kind incomingGateway mode persistent port orders",
        )


def test_a_partner_is_tried_without_a_message(room: Postroom, partner: Partner) -> None:
    room.gateways.add("there", "http", address=partner.address)
    room.gateways.add("gone", "http", address="http://127.0.0.1:9/")
    assert "answered 204" in room.gateways.test("there")
    with pytest.raises(GatewayUnreachable, match="refused"):
        room.gateways.test("gone")
    room.gateways.add("run", "command", command="cat")
    assert "can be run" in room.gateways.test("run")
