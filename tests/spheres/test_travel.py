"""A travel is booked: flight, hotel, car, and the payment in another database. All of it stands, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain, combinations
from typing import NamedTuple

import psycopg
import pytest

import postroom
from postroom.errors import PostroomError, SphereAborted, SphereOver
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

from .bank import paid, pay, prepared
from .invariants import check

QUEUES = ("flight", "hotel", "car")
REFUSES, SILENT, RAISES, UNPREPARED, UNPAID = "flight refuses", "hotel silent", "car raises", "not prepared", "not paid"
FAILURES = (REFUSES, SILENT, RAISES, UNPREPARED, UNPAID)


class Booking(NamedTuple):
    fails: frozenset[str]
    taken: frozenset[str]

    @property
    def id(self) -> str:
        return f"{'+'.join(sorted(self.fails)) or 'fine'} / {'+'.join(sorted(self.taken)) or 'none'}"


def subsets(of: tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(some) for some in chain.from_iterable(combinations(of, n) for n in range(len(of) + 1))]


def bookings() -> Iterator[Booking]:
    """Every subset of failures with every set of recipients that have their message; who refuses must have it."""
    for fails in subsets(FAILURES):
        for taken in subsets(QUEUES):
            if (REFUSES in fails and "flight" not in taken) or (RAISES in fails and "car" not in taken):
                continue
            yield Booking(fails, taken)


ALL = list(bookings())


class CarBroken(Exception):
    pass


def flight(desk: Postroom, booking: Booking) -> None:
    message = desk.receive("flight").message
    assert message is not None
    assert message.sphere is not None
    if REFUSES in booking.fails:
        message.sphere.abort("no seats")


def hotel(desk: Postroom, booking: Booking) -> None:
    message = desk.receive("hotel").message
    assert (message is None) == (REFUSES in booking.fails), "what nobody had is gone when the sphere has failed"
    if message is not None and SILENT not in booking.fails:
        message.acknowledge()


def car(desk: Postroom, booking: Booking) -> None:
    message = desk.receive("car").message
    if message is None:
        return
    assert message.sphere is not None
    with suppress(CarBroken), message.sphere.join():
        if RAISES in booking.fails:
            raise CarBroken("no wheels")


def book(sphere: Sphere, desk: Postroom, bank: str, booking: Booking) -> None:
    with closing(psycopg.connect(bank)) as connection, sphere:
        sphere.enlist(connection)
        for queue in QUEUES:
            sphere.send(queue, f"book {booking.id}", compensation=f"cancel {booking.id}")
        if SILENT in booking.fails or "hotel" in booking.taken:
            sphere.require("hotel", receipt_within=0.02 if SILENT in booking.fails else 30)
        for queue, act in zip(QUEUES, (flight, hotel, car), strict=True):
            if queue in booking.taken:
                act(desk, booking)
        amount, customer = (-1 if UNPAID in booking.fails else 100), (99 if UNPREPARED in booking.fails else 1)
        pay(connection, booking.id, amount, customer)


def expected_error(booking: Booking) -> type[Exception]:
    if UNPAID in booking.fails:
        return psycopg.errors.CheckViolation
    return SphereOver if {REFUSES, RAISES} & booking.fails else SphereAborted


def expect(room: Postroom, booking: Booking, actually_taken: set[str]) -> None:
    """The exact contents of every queue; whoever came too late for a message got none and is told nothing."""
    for queue in QUEUES:
        waiting = [message.body for message in room.queues.info(queue)]
        had = [message.body for message in room.queues.history(queue) if message.body.endswith(f" {booking.id}")]
        taken = queue in actually_taken
        assert had == [f"book {booking.id}"] * taken, queue
        if booking.fails:
            assert waiting == [f"cancel {booking.id}"] * taken, queue
        else:
            assert waiting == [f"book {booking.id}"] * (not taken), queue


def drain(room: Postroom) -> None:
    for queue in QUEUES:
        while room.receive(queue):
            pass


def travel(url: str, bank: str, some: list[Booking]) -> None:
    with postroom.open(url) as room, postroom.open(url) as desk:
        for queue in QUEUES:
            room.queues.create(queue)
        stand = set()
        for booking in some:
            sphere = room.sphere(booking.id)
            if booking.fails:
                with pytest.raises((psycopg.Error, PostroomError)) as raised:
                    book(sphere, desk, bank, booking)
                assert type(raised.value) is expected_error(booking), f"{booking.id}: {raised.value!r}"
            else:
                book(sphere, desk, bank, booking)
                stand.add(booking.id)
            assert sphere.state == ("ABORTED" if booking.fails else "COMMITTED")
            # After the flight has refused, the others find nothing.
            expect(room, booking, {"flight"} if REFUSES in booking.fails else set(booking.taken))
            drain(room)
        assert paid(bank) == stand
        assert prepared(bank) == []
        told = check(room, over=True)
        assert len(told.spheres) == len(some)


def test_every_subset_of_failures_with_every_set_of_taken_messages(sqlite_url: str, payments: str) -> None:
    assert len(ALL) == 144
    travel(sqlite_url, payments, ALL)


@pytest.mark.parametrize(
    "some", [pytest.param(ALL[::4], id="some"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
def test_the_same_where_the_room_is_in_postgres(postgres_url: str, payments: str, some: list[Booking]) -> None:
    travel(postgres_url, payments, some)
