"""What a step of procedures at another node has to do with spheres, whose tokens are at the control node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.world import desk

from postroom.engine.spheres import Made
from postroom.room import Postroom
from postroom.stations.places import desk as station_desk
from postroom.stations.procedures.ties import FatesAfar, Ties, announce, forget
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar

from .office import office

NODE = "branch"


@pytest.fixture
def room(sqlite_url: str, tmp_path: Path) -> Iterator[Postroom]:
    with office(sqlite_url, tmp_path, "", {"ann": NODE}, {NODE: str(tmp_path / "branch.db")}) as opened:
        yield opened


def bind(room: Postroom, ties: Ties) -> int:
    """A message that a step has made at the node of a message of sphere s; answers with its key."""
    key = int(desk(room, "ann").create("ORDER", No=1).replace(".", ""))

    def work(tx: Transaction) -> None:
        fates = FatesAfar(tx, ties)
        fates.bind([Made("s", key, station_desk.database_of(tx, "ann"), "procedure p")], station_desk.remove)

    room._parts.network.store(NODE).transact("procedure", work)
    return key


def made(room: Postroom) -> list[MadeAfar]:
    return room._parts.network.store(NODE).read(lambda tx: tx.afar.made("s"))


def test_what_is_made_in_a_sphere_is_noted_at_its_node(room: Postroom) -> None:
    key = bind(room, Ties({1: "s"}, ()))
    assert [(each.message, each.queue, each.maker) for each in made(room)] == [(key, "station:ann", "procedure p")]


def test_what_is_made_in_a_sphere_that_has_failed_disappears(room: Postroom) -> None:
    bind(room, Ties({1: "s"}, {"s"}))
    assert made(room) == []
    assert list(desk(room, "ann").messages()) == []


def test_a_node_forgets_spheres_that_the_control_node_does_not_know(room: Postroom) -> None:
    bind(room, Ties({1: "s"}, ()))
    store = room._parts.network.store(NODE)
    assert store.read(lambda tx: tx.afar.spheres("", 10)) == ["s"]
    forget(room.store, store)
    assert store.read(lambda tx: tx.afar.spheres("", 10)) == []


def test_a_step_without_messages_of_spheres_asks_nobody(room: Postroom) -> None:
    before = room.store.read(lambda tx: tx.journal.newest())
    assert announce(room.store, NODE, []) == Ties({}, ())
    assert room.store.read(lambda tx: tx.journal.newest()) == before
