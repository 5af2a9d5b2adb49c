"""Ports: which endpoint a gateway queue belongs to, and as what."""

from __future__ import annotations

import pytest

from postroom.rules.compilation.ports import port_of, ports_of
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse
from postroom.store.tables.endpoints import Endpoint, Port

ENDPOINTS = {
    name: Endpoint(name, transport, frozenset(does.split()), {}, "m")
    for name, transport, does in (
        ("partner", "http", "out reply"),
        ("server", "http", "in answer"),
        ("both", "http", "in out reply"),
        ("shelf", "fetched", "fetched"),
    )
}


@pytest.mark.parametrize(("clauses", "direction"), [
    ("outgoingGateway mode persistent port partner", "out"), ("incomingGateway mode persistent port partner", "reply"),
    ("outgoingGateway mode persistent interface http port server", "answer"),
    ("incomingGateway mode persistent port server", "in"), ("outgoingGateway mode persistent port both", "out"),
    ("incomingGateway mode persistent port both", "in"), ("outgoingGateway mode persistent port shelf", "fetched"),
    ("incomingGateway mode persistent", None), ("basic mode persistent", None),
])  # fmt: skip
def test_a_queue_is_what_its_endpoint_does_first(clauses: str, direction: str | None) -> None:
    queue = Program(parse(f"create queue q kind {clauses}", "f.demaq")).queues["q"]
    found = port_of(queue, ENDPOINTS)
    assert (found.direction if isinstance(found, Port) else found) == direction
    assert len(ports_of([queue], ENDPOINTS)) == (direction is not None)


def test_an_outgoing_gateway_without_a_port_has_the_endpoint_of_its_name() -> None:
    queue = Program(parse("create queue partner kind outgoingGateway mode persistent", "f.demaq")).queues["partner"]
    assert port_of(queue, ENDPOINTS) == Port("partner", "out", "partner")
