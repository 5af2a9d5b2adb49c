"""Heartbeats: one message for each thread that owns spheres, and a count that grows while it lives."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import postroom
from postroom.errors import ArgumentInvalid, HeartbeatTooSlow
from postroom.room import Postroom
from postroom.spheres.heartbeat import Heart, Hearts, beat, check_heartbeat, check_seconds, still
from postroom.store import open_store
from postroom.store.tables.spheres import ALIVE_QUEUE

from .wait import until


@pytest.fixture
def hearts(room: Postroom, url: str) -> Iterator[Hearts]:
    found = Hearts(room.store, lambda: open_store(url, actor="heart", create=False))
    yield found
    found.stop()


def alive(room: Postroom) -> list[str]:
    return [stored.body for stored in room.store.read(lambda tx: tx.messages.next_of(ALIVE_QUEUE, 0, 10))]


def beaten(room: Postroom, heart: Heart) -> int:
    return room.store.read(lambda tx: tx.spheres.beaten(heart.owner))


def test_a_beat_is_a_message_once_and_a_count_that_grows(room: Postroom) -> None:
    heart = Heart()
    assert heart.late
    for number in (1, 2, 3):
        room.store.transact("heartbeat", lambda tx: beat(tx, [heart]))
        assert (alive(room), beaten(room, heart)) == ([heart.owner], number)
    assert heart.beat is not None
    room.store.transact("heartbeat", lambda tx: still(tx, [heart.beat or 0]))
    assert (alive(room), beaten(room, heart)) == ([], 0)


def test_each_thread_has_its_own_heart(hearts: Hearts) -> None:
    found: list[Heart] = []
    thread = threading.Thread(target=lambda: found.append(hearts.mine()))
    thread.start()
    thread.join()
    assert hearts.mine() is hearts.mine()
    assert found[0] is not hearts.mine()
    assert found[0].owner != hearts.mine().owner


def test_a_heart_beats_while_something_depends_on_it(room: Postroom, hearts: Hearts) -> None:
    heart = hearts.mine()
    hearts.depend(heart, "s", 0.1, beaten=False)
    assert heart.pause == pytest.approx(0.05)
    until(lambda: beaten(room, heart) >= 3)
    hearts.release(heart, "s")
    hearts.stop()
    assert alive(room) == [], "who has no heartbeat owns nothing"


def test_a_sphere_that_was_given_up_is_aborted_with_the_next_beat(url: str) -> None:
    with postroom.open(url) as room:
        sphere = room.sphere("s", heartbeat=0.2)
        sphere._hearts.give_up(sphere._heart, "s")
        until(lambda: sphere.state != "ACTIVE")
        assert room.spheres.show("s").sphere.reason == "its owner let it go without an end"


@pytest.mark.parametrize("seconds", [-1, 0.5, 1e12, float("nan"), "1"])
def test_seconds_that_are_none_are_refused(seconds: float) -> None:
    with pytest.raises(ArgumentInvalid, match="heartbeat"):
        check_seconds("heartbeat", seconds, 1)
    check_seconds("heartbeat", 1, 1)


def test_a_heartbeat_must_be_faster_than_the_check(room: Postroom) -> None:
    room.store.transact("check", lambda tx: tx.spheres.announce(2_000_000))
    room.store.read(lambda tx: check_heartbeat(tx, 1_999_999))
    with pytest.raises(HeartbeatTooSlow):
        room.store.read(lambda tx: check_heartbeat(tx, 2_000_000))
