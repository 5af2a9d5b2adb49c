"""What was kept long enough is removed, kind by kind; visits only where every node of the network can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.stations.world import desk, three_nodes

from postroom.room import Postroom
from postroom.stations.retention import Cleaning
from postroom.store.upkeep.kinds import Kind, Swept


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with three_nodes(url, tmp_path) as opened:
        yield opened


def visits(room: Postroom) -> int:
    stores = [room._parts.network.store(node) for node in room._parts.network.nodes()]
    return sum(store.read(lambda tx: tx.session.rows("SELECT count(*) FROM visits"))[0][0] for store in stores)


def test_only_kinds_with_a_retention_are_removed(room: Postroom) -> None:
    cleaning = Cleaning(room._parts.network)
    assert (cleaning.sweepable(), cleaning.sweep()) == ([], [])
    room.engine.set_retention(Kind.RECEIPTS, timedelta(0))
    assert cleaning.sweep() == [Swept(Kind.RECEIPTS, 0)]


def test_visits_of_messages_that_have_gone_on_are_removed_from_every_store(room: Postroom) -> None:
    ann, bob = desk(room, "ann"), desk(room, "bob")
    keys = ann.create_many("NOTE", [{"To": "x"}] * 3)
    ann.ship(keys, "bob")
    bob.get()
    bob.ship(keys[:2], "ann")
    ann.get()
    room.engine.set_retention(Kind.VISITS, timedelta(0))
    cleaning, before = Cleaning(room._parts.network), visits(room)
    (counted,) = cleaning.sweepable()
    assert visits(room) == before, "counting removes nothing"
    assert cleaning.sweep() == [counted]
    assert (counted.kind, visits(room)) == (Kind.VISITS, before - counted.number)
    assert counted.number > 0


def test_a_node_that_does_not_answer_keeps_all_visits(room: Postroom, tmp_path: Path) -> None:
    ann, bob = desk(room, "ann"), desk(room, "bob")
    keys = [ann.create("NOTE", To="x")]
    ann.ship(keys, "bob")
    bob.get()
    room.engine.set_retention(Kind.VISITS, timedelta(0))
    room._parts.network.close()
    (tmp_path / "south.db").rename(tmp_path / "away.db")
    assert Cleaning(room._parts.network).sweep() == [Swept(Kind.VISITS, 0)]
