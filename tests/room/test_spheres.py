"""Spheres and machines as a room offers them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, SphereExists, SphereOver, SphereUnknown
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_sphere_ends_with_its_block_and_an_id_is_used_once(small: Postroom) -> None:
    small.queues.create("q")
    with small.sphere("trip") as sphere:
        sphere.send("q", "x")
        assert [each.id for each in small.spheres.all("ACTIVE")] == ["trip"]
    assert small.spheres.show("trip").sphere.state == "COMMITTED"
    with pytest.raises(SphereExists):
        small.sphere("trip")


def test_a_sphere_is_aborted_from_outside(small: Postroom) -> None:
    small.queues.create("q")
    sphere = small.sphere("trip")
    sphere.send("q", "x")
    assert small.spheres.abort("trip", "no seats") == "ABORTED"
    with pytest.raises(SphereOver):
        sphere.commit()
    assert small.count("q").queues[0].unprocessed == 0


def test_what_does_not_exist_is_told(small: Postroom) -> None:
    for verb in (small.spheres.show, small.spheres.abort):
        with pytest.raises(SphereUnknown):
            verb("nothing")
    with pytest.raises(ArgumentInvalid):
        small.spheres.all("SLEEPING")
    small.queues.create("q")
    assert small.acknowledge(small.send("q", "x").key) is False


def test_a_state_of_a_machine_is_followed_and_is_no_plain_queue(small: Postroom) -> None:
    orders = small.spheres.machine(["new", "paid"], [("new", "paid")])
    orders.start("o1")
    small.queues.create("plain")
    assert (
        small.spheres.is_state(["new"]),
        small.spheres.is_state(["plain"]),
        small.spheres.is_state(["new", "x"]),
    ) == (True, False, False)
    assert [each["entity"] for each in small.spheres.follow_state("new", wait=0.0)] == ["o1"]


def test_a_check_of_a_room_without_spheres_finds_nothing(small: Postroom) -> None:
    checked = small.spheres.compensate()
    assert small.spheres.all() == []
    assert checked == small.spheres.compensate()
