"""Queues read in parts: by key what is there, by the number of the journal what came in."""

from __future__ import annotations

from tests.store.places import again, put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.scans import END, Wanted


def test_parts_by_key_hold_every_message_once(tx: Transaction) -> None:
    place = queue(tx, "q")
    some = [put(tx, place, str(number), type="A" if number % 2 else None) for number in range(10)]
    tx.messages.take(place, some[0])
    tx.messages.set_aside(place, some[1])
    place = again(tx, place)
    assert tx.scans.count(place) == 9, "one that was set aside is delivered to nobody"
    bounds = tx.scans.key_bounds(place, 3)
    assert (len(bounds), bounds[-1]) == (3, some[-1].key)
    found = [
        stored.body
        for low, high in zip([0, *(bound + 1 for bound in bounds[:-1])], bounds, strict=True)
        for state in (0, 1)
        for _, _, stored in tx.scans.page(place, state, Wanted((low, high)), 0, 100)
    ]
    assert sorted(found) == ["0", *"23456789"]
    (first,) = tx.scans.page(place, 1, Wanted(type="A"), 0, 1)
    assert (first.stored.body, first.state, first.after) == ("3", 1, first.stored.position)
    keys = [stored.key for stored in some]
    assert [each.stored.body for each in tx.scans.find(place, keys, Wanted(created=(tx.now, END)))][:2] == ["0", "2"]


def test_arrivals_are_events_that_bring_a_message_from_elsewhere(tx: Transaction) -> None:
    before = tx.journal.newest()
    here, there = queue(tx, "here"), queue(tx, "there")
    some = [put(tx, here, str(number)) for number in range(4)]
    moved = tx.messages.move(put(tx, there, "moved"), there, here)
    tx.messages.take(here, some[0])
    tx.messages.remove(here, some[1], "withdraw")
    newest = tx.journal.newest()
    assert tx.scans.count_arrivals(here, before, newest) == 5
    assert tx.scans.last_arrival(here, before, newest, 2) == some[1].position
    assert tx.scans.last_arrival(here, newest, newest, 2) is None
    assert tx.scans.arrival_bounds(here, before, newest, 2) == [some[2].position, moved.position]
    found = tx.scans.arrivals(here, before, newest, 10)
    assert [(each.stored.body, each.state) for each in found] == [("0", 0), ("2", 1), ("3", 1), ("moved", 1)]
    assert [each.after for each in found] == [some[0].position, some[2].position, some[3].position, moved.position]
    assert tx.scans.check_unarchived(here, 0) == 0
