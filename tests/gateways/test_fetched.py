"""Partners who fetch their messages: these wait, and nothing is sent."""

from __future__ import annotations

from tests.gateways.conftest import Program

from postroom.room import Postroom


def test_messages_wait_until_they_are_fetched(room: Postroom, program: Program) -> None:
    room.gateways.add("customer", "fetched")
    program(room, "create queue customer kind outgoingGateway mode persistent interface fetched port customer")
    room.send("customer", "x")
    assert room.engine.outbox() == []
    room.run_until_idle()
    received = room.receive("customer").message
    assert received is not None
    assert received.body == "x"
    assert "until someone receives them" in room.gateways.test("customer")
