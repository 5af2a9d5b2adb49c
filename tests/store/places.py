"""Queues and messages for tests of tables."""

from __future__ import annotations

from typing import Any

from postroom.model.message import Draft, Stored
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.transaction import Transaction


def queue(tx: Transaction, name: str, kind: str = "rules", keep: Keep = Keep.ALL) -> Queue:
    return tx.queues.made(name, kind, keep)


def put(tx: Transaction, place: Queue, body: str = "x", **about: Any) -> Stored:
    return found(tx, tx.messages.put(place, Draft.of(body, **about)))


def found(tx: Transaction, key: int) -> Stored:
    stored = tx.messages.find(key)
    assert stored is not None
    return stored


def again(tx: Transaction, place: Queue) -> Queue:
    """A queue as it stands after all that was done: what has left it is written at the end of a transaction."""
    tx.settle()
    tx.counts.clear()
    return tx.queues.locked(place.id)
