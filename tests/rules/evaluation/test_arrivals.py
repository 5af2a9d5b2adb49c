"""Claimed messages with the sets that their rules will look at."""

from __future__ import annotations

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Arrival, Granule
from postroom.limits import INDEXED_CHARS_MAX
from postroom.room import Postroom
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.programs import Programs
from postroom.store.kernel.transaction import Transaction

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent "


def arrivals(room: Postroom, queue: str = "a") -> list[Arrival]:
    def work(tx: Transaction) -> list[Arrival]:
        return arrivals_of(Programs().plan(tx), tx, list(tx.slices.queue(queue)))

    return room.store.read(work)


def test_a_message_whose_rules_ask_for_nothing_looks_at_nothing(load: Load) -> None:
    room = load(f"{QUEUES}create rule r for a if (/x) then do enqueue . into b")
    room.send("a", "<x/>", format="xml")
    room.send("a", "<x>2</x>", format="xml")
    found = arrivals(room)
    assert [(each.order, each.body, each.reads) for each in found] == [(0, "<x/>", ()), (1, "<x>2</x>", ())]


def test_a_whole_queue_is_one_set_for_every_message(load: Load) -> None:
    room = load(f"{QUEUES}create rule r for a if (count(qs:queue('b')) > 1) then do enqueue . into b")
    room.send_many("a", ["<x/>", "<y/>"], format="xml")
    assert [each.granules for each in arrivals(room)] == [(Granule("queue", "b"),)] * 2


def test_a_slice_is_found_by_the_property_of_the_message_and_without_one_there_is_none(load: Load) -> None:
    room = load(
        f"""{QUEUES}create property p as xs:string queue a value //p create slicing s on p
        create rule r for s if (count(qs:slice()) > 1) then do reset"""
    )
    room.send("a", "<x><p>k</p></x>", format="xml")
    room.send("a", "<x/>", format="xml")
    assert [each.reads for each in arrivals(room)] == [((Granule("slice", "s", "k"),),), ((),)]


@pytest.mark.parametrize("length", [3, INDEXED_CHARS_MAX + 10])
def test_an_entry_of_an_index_is_found_by_the_beginning_of_a_value(load: Load, length: int) -> None:
    room = load(f"{QUEUES}create rule r for a if (qs:queue('b')[//k = qs:message()//k]) then do enqueue . into b")
    room.send("a", f"<x><k>{'v' * length}</k></x>", format="xml")
    (found,) = arrivals(room)
    (granule,) = found.granules
    assert (granule.kind, granule.value) == ("index", "v" * min(length, INDEXED_CHARS_MAX))
