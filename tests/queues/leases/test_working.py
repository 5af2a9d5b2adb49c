"""Workers on both stores: many at a time, typed bodies, failures, stops, and a process that is killed half-way."""

from __future__ import annotations

import logging
import signal
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
from postroom.aio import AsyncLeasedMessage, AsyncRoom
from postroom.errors import ArgumentInvalid, StoreStopped
from postroom.limits import WORKER_ATTEMPTS_AT_ONCE, WORKER_BACKOFF_SECONDS_MAX
from postroom.model.body import Format
from postroom.model.moment import to_microseconds
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.working import Workers
from postroom.room import Postroom
from postroom.testing import HandClock, temporary_room


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


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_workers_that_feed_each_other_are_drained_to_the_end(q: Postroom, order: str) -> None:
    following = {"a": "b", "b": "c", "c": "q"}
    for name in following:
        q.queues.create(name)
    for name in order:

        @q.worker(name, concurrency=2)
        def forward(message: LeasedMessage, to: str = following[name]) -> None:
            sleep(0.01)
            q.send(to, message.body)

    q.send_many("a", ["x", "y", "z"])
    assert q.drain().done == 9
    assert [q.count(name).queues[0].unprocessed for name in "abcq"] == [0, 0, 0, 3]
    sound(q)


def test_a_function_of_any_number_of_arguments_is_given_the_message(q: Postroom) -> None:
    seen: list[tuple[object, ...]] = []

    @q.worker("q")
    def handle(*args: object, **kwargs: object) -> None:
        seen.append(args)

    q.send("q", "x")
    assert q.drain().done == 1
    assert [type(given) for (given,) in seen] == [LeasedMessage]


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


INTERRUPTED = """
import signal, sys, time, postroom
signal.signal(signal.SIGINT, signal.default_int_handler)
room = postroom.open(sys.argv[1])
@room.worker("q", concurrency=2)
def handle(message):
    print("begun\\n", end="", flush=True)  # in one piece: two threads print
    time.sleep(1.5)
try:
    room.consumers.run()
except KeyboardInterrupt:
    count = room.count("q").queues[0]
    print(count.leased, count.processed, flush=True)
"""


def test_an_interrupted_program_ends_what_it_had_begun_before_it_is_told(q: Postroom) -> None:
    q.send_many("q", ["x"] * 10)
    command = [sys.executable, "-c", INTERRUPTED, q.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        begun = [program.stdout.readline() for _ in range(2)]
        program.send_signal(signal.SIGINT)
        assert (begun, program.stdout.read()) == (["begun\n"] * 2, "0 2\n")
    sound(q)


def test_a_store_that_is_gone_ends_its_workers_at_once(q: Postroom) -> None:
    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        q.store._stop("the disk is gone")

    q.send("q", "x")
    begun = monotonic()
    with pytest.raises(StoreStopped, match="the disk is gone"):
        q.drain()
    assert monotonic() - begun < 20


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


async def _other(body: str, room: AsyncRoom) -> None: ...
async def _later(message: AsyncLeasedMessage) -> None: ...
def _twice(body: str, message: LeasedMessage, room: Postroom, n: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_bytes, "_bytes, body: bytes is no type that a body can have"),
        (_lost, "the types of _lost cannot be found: name 'Nowhere' is not defined"),
        (_named, "_named, body: a message is given by position"),
        (_made, "_made is a generator"),
        (_other, "_other, room: only a room from postroom.aio.open gives AsyncRoom; .* ask for postroom.Postroom"),
        (_later, "_later, message: only a room .* gives AsyncLeasedMessage; .* ask for postroom.LeasedMessage"),
        (_twice, "_twice asks for the body 2 times, as str and int"),
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


def test_a_failed_attempt_is_logged_with_what_becomes_of_its_message(
    q: Postroom, caplog: pytest.LogCaptureFixture
) -> None:
    q.consumers.set_policy("q", attempts=2)

    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        raise ValueError("no\nsuch customer")

    key = q.send("q", "x").key
    with caplog.at_level(logging.DEBUG, "postroom.work"):
        q.drain()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [
        f"queue q, message {key}: attempt 1 of 2 failed, it is delivered again: ValueError: no\\nsuch customer",
        f"queue q, message {key}: attempt 2 of 2 failed, it is a dead letter in q.dead: ValueError: no\\nsuch customer",
    ]
    traced = [record for record in caplog.records if record.levelno == logging.DEBUG and record.exc_info]
    assert len(traced) == 2
    assert "raise ValueError" in caplog.text


def test_a_retry_is_logged_with_its_time(q: Postroom, caplog: pytest.LogCaptureFixture) -> None:
    q.consumers.set_policy("q", backoff=60)
    q.worker("q")(lambda message: 1 / 0)
    key = q.send("q", "x").key
    q.drain()
    (told,) = caplog.messages
    assert told.startswith(f"queue q, message {key}: attempt 1 failed, it is delivered again at 20")
    assert told.endswith(": ZeroDivisionError: division by zero")


@pytest.mark.parametrize("backoff", [0.0, 60.0])
def test_what_is_not_delivered_again_is_logged_so(
    q: Postroom, caplog: pytest.LogCaptureFixture, backoff: float
) -> None:
    q.consumers.set_policy("q", backoff=backoff)
    sphere = q.sphere("order")
    sent = sphere.send("q", "x", compensation=None).key

    @q.worker("q")
    def handle(message: LeasedMessage) -> None:
        sphere.abort("no")
        raise ValueError("too late")

    q.drain()
    assert caplog.messages == [
        f"queue q, message {sent}: attempt 1 failed, it is not delivered again (its sphere has failed): "
        "ValueError: too late"
    ]


def test_what_expires_before_its_next_attempt_is_logged_so(q: Postroom, caplog: pytest.LogCaptureFixture) -> None:
    q.consumers.set_policy("q", backoff=60)
    q.worker("q")(lambda message: 1 / 0)
    q.send("q", "short", expires=30)
    q.send("q", "long", expires=90)
    q.drain()
    assert ["it is not delivered again (it expires before)" in said for said in caplog.messages] == [True, False]


def test_a_worker_waits_longer_after_each_failure_in_a_queue_without_limits() -> None:
    clock = HandClock()
    with temporary_room(clock) as room:
        room.queues.create("q")
        room.worker("q")(lambda message: 1 / 0 if message.body == "bad" else None)
        room.send_many("q", ["bad", "good"])
        progress = room.drain()
        assert (progress.done, progress.failed) == (1, WORKER_ATTEMPTS_AT_ONCE)
        waits = []
        for _ in range(12):
            (event, *_) = [event for event in reversed(room.trace("00001.00001")) if event.verb == "fail"]
            waits.append(((event.detail or {})["due"] - to_microseconds(event.time)) / 1_000_000)
            clock.turn(waits[-1] + 1)
            assert room.drain().failed == 1
        assert all(0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(waits[:6]))
        assert all(wait <= WORKER_BACKOFF_SECONDS_MAX for wait in waits)
        sound(room)


def test_a_policy_with_attempts_is_kept_by_workers(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=WORKER_ATTEMPTS_AT_ONCE + 3)
    q.worker("q")(lambda message: 1 / 0)
    q.send("q", "x")
    assert (q.drain().failed, q.count("q.dead").queues[0].unprocessed) == (WORKER_ATTEMPTS_AT_ONCE + 2, 1)


def test_what_schedules_have_due_is_sent_before_workers_are_idle() -> None:
    clock = HandClock()
    with temporary_room(clock) as room:
        room.queues.create("q")
        seen: list[str] = []

        @room.worker("q")
        def handle(message: LeasedMessage) -> None:
            seen.append(message.body)
            if len(seen) == 1:
                clock.turn(61)

        room.consumers.schedule("each minute", "* * * * *", "q", body="look")
        assert room.drain().done == 0
        clock.turn(61)
        assert room.drain().done == 2
        assert seen == ["look", "look"]


def test_workers_that_go_on_for_a_schedule_are_waited_for() -> None:
    clock = HandClock()
    with temporary_room(clock) as room:
        room.queues.create("q")
        seen: list[str] = []

        @room.worker("q")
        def handle(message: LeasedMessage) -> None:
            if seen:
                sleep(0.3)  # those who do not wait for it find it running
            else:
                clock.turn(61)
            seen.append(message.body)

        room.consumers.schedule("each minute", "* * * * *", "q", body="look")
        clock.turn(61)
        progress = room.drain()
        assert (progress.done, progress.running, seen) == (2, 0, ["look", "look"])


def test_a_misfit_names_its_type_and_a_text_that_looks_like_json(q: Postroom) -> None:
    @q.worker("q")
    def handle(order: Order) -> None:
        raise AssertionError("it is not called")

    q.send("q", '{"n": 1}', format="text")
    q.send("q", {"n": "many"})
    assert q.drain().dead == 2
    first, second = (str(message.properties["dead.reason"]) for message in q.peek("q.dead"))
    assert "does not fit type Order: /: an object is wanted, not '{" in first
    assert "It was sent as text; send it as JSON: with --format json" in first
    assert "does not fit type Order: /n: int is wanted" in second
    assert "as text" not in second
