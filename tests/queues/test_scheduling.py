"""Schedules on both stores: once however many look, and what is sent for times that were missed."""

from __future__ import annotations

import threading

import pytest

import postroom
from postroom.errors import ArgumentInvalid, NameTaken, QueueUnknown
from postroom.testing import HandClock

MINUTE = 60.0
#: 2026-01-01, some seconds after midnight.
BEGIN = 1_767_225_605_000_000


@pytest.fixture
def clock() -> HandClock:
    return HandClock(BEGIN)


def test_a_schedule_sends_at_its_times(url: str, clock: HandClock) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("tick", "* * * * *", "q", body={"n": 1}, properties={"a": 1})
        assert room.consumers.fire() == 0
        clock.turn(MINUTE)
        assert room.consumers.fire() == 1
        assert room.consumers.fire() == 0
        message = room.receive("q").message
        assert message is not None
        assert message.value == {"n": 1}
        assert message.properties == {"a": 1, "schedule": "tick", "scheduled": "2026-01-01T00:01:00.000000Z"}
        assert room.journal.verify().differences == ()
        room.consumers.unschedule("tick")
        clock.turn(10 * MINUTE)
        assert room.consumers.fire() == 0
        assert room.journal.verify().differences == ()


@pytest.mark.parametrize(("catch_up", "sent"), [("none", 0), ("last", 1), ("all", 10)])
def test_missed_times_are_caught_up_as_asked(url: str, clock: HandClock, catch_up: str, sent: int) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("tick", "*/10 * * * *", "q", body="x", catch_up=catch_up)
        clock.turn(105 * MINUTE)
        assert room.consumers.fire() == sent
        clock.turn(5 * MINUTE)
        assert room.consumers.fire() == 1, "and then it goes on"
        assert room.journal.verify().differences == ()


def test_a_year_of_minutes_is_caught_up_at_once(sqlite_url: str, clock: HandClock) -> None:
    with postroom.open(sqlite_url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("last", "* * * * *", "q", body="x")
        room.consumers.schedule("all", "* * * * *", "q", body="x", catch_up="all")
        clock.turn(365 * 24 * 60 * MINUTE)
        assert room.consumers.fire() == 1 + 1_000


def test_however_many_look_it_is_sent_once(url: str, clock: HandClock) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("tick", "* * * * *", "q", body="x")
        clock.turn(MINUTE)

        def look() -> None:
            with postroom.open(url, clock=clock) as other:
                other.consumers.fire()

        threads = [threading.Thread(target=look) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(room.peek("q").messages) == 1


def test_an_engine_and_workers_look(url: str, clock: HandClock) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("tick", "* * * * *", "q", body="x")
        clock.turn(MINUTE)
        room.run_until_idle()
        assert len(room.peek("q").messages) == 1
        seen = threading.Event()
        room.worker("q")(lambda message: seen.set() if room.count("q").queues[0].processed else None)
        running = threading.Thread(target=room.consumers.run)
        running.start()
        clock.turn(MINUTE)
        assert seen.wait(10)
        room.consumers.stop()
        running.join(10)


def test_a_queue_on_hold_gets_it_later(url: str, clock: HandClock) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q", password="pw")
        room.consumers.schedule("tick", "* * * * *", "q", body="x")
        room.queues.disable("q", password="pw")
        clock.turn(MINUTE)
        assert room.consumers.fire() == 0
        room.queues.enable("q", password="pw")
        assert room.consumers.fire() == 1


def test_what_makes_no_sense_is_refused(url: str, clock: HandClock) -> None:
    with postroom.open(url, clock=clock) as room:
        room.queues.create("q")
        room.consumers.schedule("tick", "* * * * *", "q", body="x")
        with pytest.raises(NameTaken):
            room.consumers.schedule("tick", "* * * * *", "q", body="x")
        with pytest.raises(QueueUnknown):
            room.consumers.schedule("tock", "* * * * *", "nowhere", body="x")
        with pytest.raises(ArgumentInvalid, match="catch_up"):
            room.consumers.schedule("tock", "* * * * *", "q", body="x", catch_up="some")
        with pytest.raises(ArgumentInvalid, match="no such schedule"):
            room.consumers.unschedule("tock")
        assert [each.name for each in room.consumers.schedules()] == ["tick"]
