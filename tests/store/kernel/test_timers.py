"""Timers fire in the order of their time, and whoever removes one is the one who acts on it."""

from __future__ import annotations

from postroom.room import Postroom
from postroom.store.kernel.timers import Timer
from postroom.store.kernel.transaction import Transaction


def test_due_timers_come_in_the_order_of_their_time(room: Postroom) -> None:
    def add(tx: Transaction) -> int:
        for offset, name in ((-3, "b"), (-5, "a"), (10_000_000, "later"), (-3, "c")):
            tx.timers.add(tx.now + offset, "echo", {"name": name})
        return tx.now

    now = room.store.transact("send", add)
    due = room.store.read(lambda tx: tx.timers.due("echo", 10))
    assert [timer.payload["name"] for timer in due] == ["a", "b", "c"]
    assert [timer.payload["name"] for timer in room.store.read(lambda tx: tx.timers.due("echo", 2))] == ["a", "b"]
    assert room.store.read(lambda tx: tx.timers.next_due()) == now - 5


def test_a_timer_is_removed_once(room: Postroom) -> None:
    def add(tx: Transaction) -> Timer:
        tx.timers.add(tx.now, "echo", {})
        return tx.timers.due("echo", 1)[0]

    timer = room.store.transact("send", add)
    assert room.store.transact("send", lambda tx: tx.timers.remove(timer)) is True
    assert room.store.transact("send", lambda tx: tx.timers.remove(timer)) is False
    assert room.store.read(lambda tx: tx.timers.next_due()) is None
