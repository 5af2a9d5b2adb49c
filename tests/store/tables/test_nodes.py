"""Nodes and stations at the control node, and a node's knowledge of whose it is."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.nodes import Node


def test_nodes_and_stations_are_listed_and_told(tx: Transaction) -> None:
    tx.nodes.lock()
    north = Node("north", "/tmp/north.db", "mark")
    tx.nodes.add(north)
    tx.nodes.set_url("north", "/tmp/other.db")
    assert tx.nodes.all() == {"north": north._replace(url="/tmp/other.db")}
    tx.nodes.add_station("ann", "north")
    assert tx.nodes.stations() == {"ann": "north"}
    assert (tx.nodes.home("ann"), tx.nodes.home("bob")) == ("north", None)
    tx.nodes.remove_station("ann")
    tx.nodes.remove("north")
    assert (tx.nodes.all(), tx.nodes.stations()) == ({}, {})
    told = [event.verb for event in tx.journal.tail(5)]
    assert told == ["add-node", "change-node", "add-station", "remove-station", "remove-node"]


def test_a_store_is_a_node_of_one_network(tx: Transaction) -> None:
    assert tx.nodes.membership() is None
    tx.nodes.join("mark", "north")
    assert tx.nodes.membership() == ("mark", "north")
    tx.nodes.leave()
    assert tx.nodes.membership() is None
