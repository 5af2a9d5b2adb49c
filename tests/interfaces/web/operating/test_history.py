"""What the server counts while nobody looks: rates, and intervals for bars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.gateways.served import until

import postroom
from postroom.interfaces.web.operating.history import Counting, Counts, History, counts, history_of, moved
from postroom.limits import OVERVIEW_RATE_SECONDS, SPARK_BARS, SPARK_SECONDS
from postroom.room import Postroom

BEGIN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as opened:
        yield opened


def at(seconds: float, **queues: tuple[int, int]) -> Counts:
    return Counts(BEGIN + timedelta(seconds=seconds), queues)


def test_counts_are_those_of_the_queues(room: Postroom) -> None:
    room.queues.create("orders")
    before = counts(room.store)
    room.send_many("orders", ["a", "b", "c"])
    room.receive("orders")
    assert moved(before, counts(room.store), "orders") == (3, 1)


def test_a_queue_that_is_new_had_nothing_and_one_made_anew_begins_again() -> None:
    assert moved(at(0), at(1, orders=(5, 2)), "orders") == (5, 2)
    assert moved(at(0, orders=(5, 2)), at(1, orders=(1, 0)), "orders") == (0, 0)
    assert moved(at(0, orders=(5, 2)), at(1), "orders") == (0, 0)


def test_rates_are_of_about_a_minute_and_not_of_a_moment() -> None:
    history = History()
    history.take(at(0, orders=(0, 0)))
    assert history.rates(at(OVERVIEW_RATE_SECONDS - 1, orders=(9, 9))) == {}  # too short to say
    assert history.rates(at(30, orders=(30, 15))) == {"orders": (1.0, 0.5)}
    history.take(at(60, orders=(60, 60)))
    assert history.rates(at(80, orders=(80, 60)))["orders"] == (1.0, 0.75)  # since the first
    history.take(at(120, orders=(60, 60)))
    assert history.rates(at(160, orders=(60, 140)))["orders"] == (0.0, 2.0)


def test_intervals_are_there_though_nobody_has_looked() -> None:
    history = History()
    for minute in range(6):
        history.take(at(60 * minute, orders=(10 * minute, minute), quiet=(7, 7)))
    seconds, told = history.intervals(at(330, orders=(51, 5), quiet=(7, 7)), "orders")
    assert (seconds, told) == (330, [(20, 2), (20, 2), (11, 1)])
    assert history.intervals(at(330, quiet=(7, 7)), "quiet")[1] == [(0, 0)] * 3
    assert History().intervals(at(0), "orders") == (0.0, [])


def test_only_so_many_intervals_are_kept() -> None:
    history = History()
    for number in range(SPARK_BARS + 10):
        history.take(at(SPARK_SECONDS * number, orders=(number, 0)))
    seconds, told = history.intervals(at(SPARK_SECONDS * (SPARK_BARS + 10), orders=(SPARK_BARS + 10, 0)), "orders")
    assert (seconds, told) == (SPARK_SECONDS * SPARK_BARS, [(1, 0)] * SPARK_BARS)


def test_a_thread_counts_until_it_is_closed(room: Postroom) -> None:
    room.queues.create("orders")
    counting = Counting(room.store, 0.01)
    history = history_of(room.store)
    until(lambda: history.intervals(counts(room.store), "orders")[1] == [(0, 0)])
    room.send("orders", "a")
    assert history.intervals(counts(room.store), "orders")[1] == [(1, 0)]
    counting.close()
    assert not counting._thread.is_alive()
