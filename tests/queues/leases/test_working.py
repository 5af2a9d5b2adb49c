"""Workers on both stores: many at a time, typed bodies, failures, stops, and a process that is killed half-way."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from time import monotonic, sleep
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid
from postroom.model.body import Format
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.working import Workers
from postroom.room import Postroom


@dataclass
class Order:
    n: int


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    return room


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


def test_workers_work_on_all_that_waits(q: Postroom) -> None:
    seen: list[int] = []

    @q.worker("q", concurrency=4)
    def handle(order: Order) -> None:
        seen.append(order.n)

    q.send_many("q", [Order(number) for number in range(30)])
    progress = q.drain()
    assert (progress.done, progress.ended, progress.running) == (30, 30, 0)
    assert sorted(seen) == list(range(30))
    assert q.count("q").queues[0].processed == 30
    sound(q)


def test_many_are_worked_on_at_a_time(q: Postroom) -> None:
    together = threading.Barrier(4, timeout=10)

    @q.worker("q", concurrency=4)
    def handle(message: LeasedMessage) -> None:
        together.wait()

    q.send_many("q", ["x"] * 8)
    assert q.drain().done == 8


def test_coroutines_are_awaited(q: Postroom) -> None:
    seen = []

    @q.worker("q")
    async def handle(n: int) -> None:
        seen.append(n)

    q.send("q", 5)
    assert q.drain().done == 1
    assert seen == [5]


def test_a_function_that_raises_has_failed(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=2)

    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        raise ValueError("no")

    q.send("q", "x")
    progress = q.drain()
    assert (progress.done, progress.failed, progress.dead) == (0, 1, 1)
    (dead,) = q.peek("q.dead").messages
    assert dead.properties["dead.reason"] == "ValueError: no"
    sound(q)


def test_a_body_that_does_not_fit_is_a_dead_letter_at_once(q: Postroom) -> None:
    @q.worker("q")
    def handle(order: Order) -> None:
        raise AssertionError("it is not called")

    q.send("q", {"n": "many"})
    assert q.drain().dead == 1
    (dead,) = q.peek("q.dead").messages
    assert "/n: int is wanted" in str(dead.properties["dead.reason"])


def test_a_function_may_end_its_message_itself(q: Postroom) -> None:
    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        message.release(delay=60)

    q.send("q", "x")
    q.drain()
    assert q.count("q").queues[0].delayed == 1


def test_a_trace_goes_on_in_what_a_worker_sends(q: Postroom) -> None:
    q.queues.create("next")

    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        q.send("next", "y")

    q.send("q", "x", properties={"traceparent": "00-1-2-01"})
    q.send("q", "x")
    q.drain()
    assert [message.properties for message in q.peek("next")] == [{"traceparent": "00-1-2-01"}, {}]


def test_a_stop_lets_what_was_begun_end(q: Postroom) -> None:
    begun = threading.Event()

    @q.worker("q", concurrency=2)
    def handle(message: LeasedMessage) -> None:
        begun.set()
        sleep(0.3)

    q.send_many("q", ["x"] * 20)
    running = threading.Thread(target=q.consumers.run)
    running.start()
    assert begun.wait(10)
    q.consumers.stop()
    running.join(10)
    assert not running.is_alive()
    count = q.count("q").queues[0]
    assert count.leased == 0
    assert count.processed + count.unprocessed == 20
    assert 0 < count.processed < 20
    sound(q)


def test_a_worker_that_waits_gets_what_is_sent(q: Postroom) -> None:
    seen = threading.Event()
    q.worker("q")(lambda message: seen.set())
    running = threading.Thread(target=q.consumers.run)
    running.start()
    sleep(0.1)
    q.send("q", "x")
    assert seen.wait(5)
    q.consumers.stop()
    running.join(10)


PROGRAM = """
import os, sys, postroom
room = postroom.open(sys.argv[1])
@room.worker("q", concurrency=2)
def handle(message):
    if int(message.body) == 7:
        os._exit(9)
room.drain()
"""


def test_a_worker_killed_half_way_loses_and_doubles_nothing(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send_many("q", [str(number) for number in range(20)])
        assert subprocess.run([sys.executable, "-c", PROGRAM, url], check=False).returncode == 9
        begun = monotonic()
        seen: list[int] = []
        room.worker("q")(lambda message: seen.append(int(message.body)))
        while room.count("q").queues[0].processed < 20 and monotonic() - begun < 10:
            room.drain()
        assert room.count("q").queues[0].processed == 20
        assert 7 in seen
        assert len(set(seen)) == len(seen)
        sound(room)


def test_workers_that_were_made_before_the_room_get_it(q: Postroom) -> None:
    q.queues.create("next")
    workers = Workers()

    @workers.worker("q")
    def thank(order: Order, room: Postroom) -> None:
        room.send("next", f"thanks for {order.n}")

    q.send("q", Order(3))
    assert q.drain(workers).done == 1
    assert [message.body for message in q.peek("next")] == ["thanks for 3"]


def test_a_parameter_of_any_object_gets_the_body(q: Postroom) -> None:
    seen: list[object] = []

    @q.worker("q")
    def look(body: object) -> None:
        seen.append(body)

    q.send("q", {"n": 4})
    assert q.drain().done == 1
    assert seen == [{"n": 4}]


def test_what_makes_no_sense_is_refused(q: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="concurrency"):
        q.worker("q", concurrency=0)
    with pytest.raises(ArgumentInvalid, match="queue"):
        Workers().worker()
    with pytest.raises(ArgumentInvalid, match="there is none"):
        q.consumers.run()


@dataclass
class Priced:
    price: Decimal


def test_a_decimal_keeps_the_digits_that_were_written(q: Postroom) -> None:
    seen: list[Priced] = []

    @q.worker("q")
    def take(order: Priced) -> None:
        seen.append(order)

    q.send("q", '{"price": 1200.50}', format=Format.JSON)
    assert q.drain().done == 1
    assert [str(order.price) for order in seen] == ["1200.50"]


def _bytes(body: bytes) -> None: ...
def _lost(body: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _named(*, body: str) -> None: ...
def _made(body: str) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_bytes, "_bytes, body: bytes is no type that a body can have"),
        (_lost, "the types of _lost cannot be found: name 'Nowhere' is not defined"),
        (_named, "_named, body: a message is given by position"),
        (_made, "_made is a generator"),
    ],
)
def test_a_function_that_can_take_no_message_is_refused_before_one_is_leased(
    q: Postroom, function: Callable[..., Any], why: str
) -> None:
    q.consumers.set_policy("q", attempts=1)
    q.worker("q")(function)
    q.send("q", "x")
    with pytest.raises(ArgumentInvalid, match=why):
        q.drain()
    assert [message.body for message in q.peek("q")] == ["x"]
