"""Whether the conditions of a sphere are met, can still be met, or can not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import postroom
from postroom.room import Postroom
from postroom.spheres.conditions import failed, fulfilled
from postroom.spheres.sphere import Sphere


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def room(url: str, clock: Clock) -> Iterator[Postroom]:
    with postroom.open(url, clock=clock) as opened:
        for queue in ("a", "b"):
            opened.queues.create(queue)
        yield opened


@pytest.fixture
def sphere(room: Postroom) -> Sphere:
    started = room.sphere("s")
    for queue in ("a", "b"):
        started.send(queue, "x", compensation="y")
    return started


def judged(room: Postroom) -> tuple[bool, str | None]:
    return room.store.read(lambda tx: (fulfilled(tx, "s"), failed(tx, "s")))


def test_without_a_condition_a_sphere_may_commit(room: Postroom, sphere: Sphere) -> None:
    assert judged(room) == (True, None)
    sphere.commit()


def test_a_receipt_is_waited_for_until_its_time_is_over(room: Postroom, sphere: Sphere, clock: Clock) -> None:
    sphere.require("a", "b", receipt_within=10)
    assert judged(room) == (False, None)
    message = room.receive("a").message
    assert message is not None
    message.acknowledge()
    assert judged(room) == (False, None)
    clock.now += 11_000_000
    assert judged(room) == (False, "b had not acknowledged within 10 s")
    sphere.abort()


def test_some_of_the_recipients_may_be_enough(room: Postroom, sphere: Sphere, clock: Clock) -> None:
    sphere.require("a", "b", processing_within=10, at_least=1)
    message = room.receive("a").message
    assert message is not None
    message.acknowledge()
    assert judged(room) == (False, None), "received is not processed"
    message.acknowledge(processed=True)
    clock.now += 11_000_000
    assert judged(room) == (True, None)
    sphere.commit()


def test_what_is_acknowledged_too_late_does_not_count(room: Postroom, sphere: Sphere, clock: Clock) -> None:
    sphere.require("a", processing_within=10)
    message = room.receive("a").message
    assert message is not None
    clock.now += 11_000_000
    message.acknowledge(processed=True)
    assert judged(room) == (False, "a had not processed within 10 s")
    sphere.abort()


def test_whoever_has_joined_must_be_done(room: Postroom, sphere: Sphere) -> None:
    message = room.receive("a").message
    assert message is not None
    part = message.membership.join()
    assert judged(room) == (False, None)
    part.done()
    assert judged(room) == (True, None)
    sphere.commit()
