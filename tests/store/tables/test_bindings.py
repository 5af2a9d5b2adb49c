"""Definitions that act with someone's rights: put, replaced, found by what they lack, freed."""

from __future__ import annotations

from functools import partial

from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.bindings import Binding


def _put(binding: Binding, tx: Transaction) -> None:
    tx.bindings.put(binding)


def test_rows_are_put_replaced_found_and_freed(room: Postroom) -> None:
    store, rule, arc = room.store, Binding("rule", "copy", "ann"), Binding("arc", "trading:big", "bob", "why")
    for binding in (rule, arc):
        store.transact("principal", partial(_put, binding))
    assert store.read(lambda tx: tx.bindings.all()) == [arc, rule]
    assert store.read(lambda tx: tx.bindings.lacking("rule")) == {}
    assert store.read(lambda tx: tx.bindings.lacking("arc")) == {"trading:big": "why"}
    store.transact("principal", lambda tx: tx.bindings.put(rule._replace(principal="eve", lacking="no")))
    assert store.read(lambda tx: tx.bindings.lacking("rule")) == {"copy": "no"}
    store.transact("principal", lambda tx: tx.bindings.free("rule", "copy"))
    assert store.read(lambda tx: tx.bindings.all()) == [arc]
