"""Removes records after their retention time.

A *visit* lets a store recognise a message that has arrived before. It is needed until the sending store has removed the
message, so visits are removed only if all nodes respond.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from postroom.errors import NodeDown
from postroom.limits import UPKEEP_ROWS
from postroom.stations.places.network import Network
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.upkeep.kinds import Kind, Swept


class Cleaning:
    def __init__(self, network: Network) -> None:
        self._network = network

    def sweep(self) -> list[Swept]:
        """Remove expired records; returns how many of each kind."""
        return list(self._each(remove=True))

    def sweepable(self) -> list[Swept]:
        """How many records of each kind would be removed."""
        return list(self._each(remove=False))

    def _each(self, *, remove: bool) -> Iterator[Swept]:
        control = self._network.control
        now, kept = control.read(lambda tx: (tx.now, tx.upkeep.retentions()))
        for kind in Kind:
            if kind not in kept:
                continue
            before, act = now - kept[kind], _swept if remove else _counted
            if kind is Kind.VISITS:
                yield Swept(kind, sum(act(store, kind, before, pending) for store, pending in self._stores()))
            else:
                yield Swept(kind, act(control, kind, before, ()))

    def _stores(self) -> list[tuple[Store, Collection[int]]]:
        """All stores of the network, and what is in transit between them; empty if one does not respond."""
        if self._network.control.read(lambda tx: tx.nodes.membership()) is not None:
            return []  # the control node sees to it
        nodes, pending = self._network.nodes(), set[int]()
        with suppress(NodeDown):
            for node in nodes:
                pending |= self._network.look(node, _on_the_way)
            return [(self._network.store(node), pending) for node in nodes]
        return []


def _on_the_way(tx: Transaction) -> set[int]:
    return {parcel.stored.key for parcel in tx.transfers.pending()}


def _swept(store: Store, kind: Kind, before: int, pending: Collection[int]) -> int:
    removed = 0
    while gone := store.transact("upkeep", lambda tx: tx.upkeep.sweep(kind, before, UPKEEP_ROWS, pending)):
        removed += gone
        if gone < UPKEEP_ROWS and kind is not Kind.HEARTBEATS:
            break
    return removed


def _counted(store: Store, kind: Kind, before: int, pending: Collection[int]) -> int:
    return store.read(lambda tx: tx.upkeep.count(kind, before, pending))
