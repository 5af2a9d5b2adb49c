"""Where streams come from and go to, as an operator sets it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from postroom.errors import GatewayInvalid, GatewayUnreachable, ProgramInvalid
from postroom.room import Postroom


@pytest.mark.parametrize(
    ("transport", "settings", "why"),
    [
        ("files", {}, "folder=/PATH is missing"),
        ("files", {"folder": "here"}, "an absolute path"),
        ("files", {"folder": "/a/../b"}, "an absolute path"),
        ("files", {"folder": "/a", "max_files": "0"}, "from 1 to"),
        ("kafka", {}, "brokers=HOST:PORT is missing"),
        ("kafka", {"brokers": "localhost"}, "HOST:PORT"),
        ("kafka", {"brokers": "a:1", "options": "sasl=x"}, "a secret is not written here"),
        ("kafka", {"brokers": "a:1", "starting": "now"}, "earliest, latest"),
        ("socket", {}, "address=HOST:PORT is missing"),
        ("socket", {"address": "a:1,b:2"}, "one of them"),
        ("rate", {"events": "x"}, "invalid literal"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    room: Postroom, transport: str, settings: dict[str, str], why: str
) -> None:
    with pytest.raises(GatewayInvalid, match=why):
        room.gateways.add("g", transport, **settings)


def test_a_gateway_of_streams_can_be_tried(room: Postroom, tmp_path: Path) -> None:
    room.gateways.add("here", "files", folder=str(tmp_path))
    room.gateways.add("gone", "files", folder=str(tmp_path / "gone"))
    room.gateways.add("clock", "rate", events="5")
    assert room.gateways.test("here") == f"{tmp_path} can be read and written"
    assert room.gateways.test("clock") == "5 event(s) in a second"
    with pytest.raises(GatewayUnreachable, match="there is no folder"):
        room.gateways.test("gone")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        room.gateways.add("line", "socket", address=address)
        room.gateways.add("bus", "kafka", brokers=address)
        assert room.gateways.test("line") == f"{address} can be reached"
        assert room.gateways.test("bus") == "1 broker(s) can be reached"
    with pytest.raises(GatewayUnreachable):
        room.gateways.test("bus")


def test_queues_cannot_use_it(room: Postroom, tmp_path: Path) -> None:
    room.gateways.add("here", "files", folder=str(tmp_path))
    program = tmp_path / "p.demaq"
    program.write_text("create queue out kind outgoingGateway mode persistent interface files port here;")
    with pytest.raises(ProgramInvalid):
        room.load(program)
