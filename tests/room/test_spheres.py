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
    small.create_queue("q")
    with small.sphere("trip") as sphere:
        sphere.send("q", "x")
        assert [each.id for each in small.spheres("ACTIVE")] == ["trip"]
    assert small.show_sphere("trip").sphere.state == "COMMITTED"
    with pytest.raises(SphereExists):
        small.sphere("trip")


def test_a_sphere_is_aborted_from_outside(small: Postroom) -> None:
    small.create_queue("q")
    sphere = small.sphere("trip")
    sphere.send("q", "x")
    assert small.abort_sphere("trip", "no seats") == "ABORTED"
    with pytest.raises(SphereOver):
        sphere.commit()
    assert small.count("q").queues[0].unprocessed == 0


def test_what_does_not_exist_is_told(small: Postroom) -> None:
    for verb in (small.show_sphere, small.abort_sphere):
        with pytest.raises(SphereUnknown):
            verb("nothing")
    with pytest.raises(ArgumentInvalid):
        small.spheres("SLEEPING")
    small.create_queue("q")
    assert small.acknowledge(small.send("q", "x").key) is False


def test_a_state_of_a_machine_is_followed_and_is_no_plain_queue(small: Postroom) -> None:
    orders = small.machine(["new", "paid"], [("new", "paid")])
    orders.start("o1")
    small.create_queue("plain")
    assert (small.is_state(["new"]), small.is_state(["plain"]), small.is_state(["new", "x"])) == (True, False, False)
    assert [each["entity"] for each in small.follow_state("new", wait=0.0)] == ["o1"]


def test_a_check_of_a_room_without_spheres_finds_nothing(small: Postroom) -> None:
    checked = small.compensate()
    assert small.spheres() == []
    assert checked == small.compensate()
