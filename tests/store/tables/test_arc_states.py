"""The rows of arcs' states: by group, by when they are due, written and removed together."""

from __future__ import annotations

from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.arc_states import ArcState


def test_rows_are_put_replaced_found_and_removed(room: Postroom) -> None:
    one, two = ArcState("d:a#1", "g", 0, 50, "[1]"), ArcState("d:a#1", "g", 1, 90, "[2]")
    other = ArcState("d:b#1", "g", 0, 10, "[3]")

    def write(tx: Transaction) -> None:
        tx.arc_states.write([one._replace(value="[0]"), two, other], [])
        tx.arc_states.write([one], [])

    store = room._parts.store
    store.transact("step", write)
    assert sorted(store.read(lambda tx: tx.arc_states.group("d:a#1", "g"))) == [one, two]
    assert store.read(lambda tx: tx.arc_states.due("d:a#1", 0, 60)) == [one]
    assert store.read(lambda tx: tx.arc_states.due("d:a#1", 50, 90)) == [two]
    assert store.read(lambda tx: tx.arc_states.next_due("d:a#1", 50)) == 90
    assert store.read(lambda tx: tx.arc_states.next_due("d:a#1", 90)) is None
    assert store.read(lambda tx: tx.arc_states.arcs()) == ["d:a#1", "d:b#1"]
    store.transact("step", lambda tx: tx.arc_states.write([], [("d:a#1", "g", 0)]))
    assert store.read(lambda tx: tx.arc_states.count("d:a#1")) == 1
    store.transact("step", lambda tx: tx.arc_states.forget("d:a#1"))
    assert store.read(lambda tx: tx.arc_states.arcs()) == ["d:b#1"]
