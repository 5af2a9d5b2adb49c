"""Endpoints and ports in the store."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.endpoints import Endpoint, Port


def test_endpoints_are_kept_and_ports_replaced(tx: Transaction) -> None:
    endpoint = Endpoint("a", "http", frozenset({"in", "out"}), {"path": "/é"}, "m")
    tx.endpoints.add(endpoint)
    assert tx.endpoints.all() == {"a": endpoint}
    assert tx.endpoints.find("b") is None
    tx.endpoints.set_ports([Port("q", "in", "a"), Port("r", "out", "a")])
    assert tx.endpoints.queue_at("a", "in") == "q"
    assert tx.endpoints.port("r") == Port("r", "out", "a")
    tx.endpoints.set_ports([])
    assert (tx.endpoints.ports(), tx.endpoints.queue_at("a", "in")) == ([], None)
    tx.endpoints.remove("a")
    assert [event.verb for event in tx.journal.tail(2)] == ["add-gateway", "remove-gateway"]
