"""What queues in PostgreSQL die of, shortened. Each says what the queue did before and under it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import sleep, time
from typing import Any

import psycopg

import postroom
from load import QUEUE, Load, complete, consume, load, produce, rate
from server import Database, Scenario

_DEAD = """
SELECT sum(n_dead_tup) FROM pg_stat_user_tables
WHERE relname IN ('messages', 'journal', 'queues', 'tallies', 'deliveries')
"""
_SNAPSHOT = "SELECT pg_current_xact_id(), count(*) FROM messages"
_ANALYSIS = "SELECT queue, state, count(*), avg(length(body)) FROM messages GROUP BY queue, state"
_LEAST = 0.5  # of the rate before, under pressure
BURSTS, BURST_SECONDS = 3, 60


def _dead(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        return int(connection.execute(_DEAD).fetchall()[0][0] or 0)


def _under(database: Database, seconds: float, pressure: Callable[[str, threading.Event], None]) -> str:
    """Producers and consumers in balance; then the same while something presses; then again without."""
    url = database.url
    with tempfile.TemporaryDirectory() as name, load(url, Path(name) / "load") as made:
        made.start(produce, 3, pause=0.002)
        made.start(consume, 1)
        made.start(complete, 2)
        sleep(2)  # they open the room
        marks = [time()]
        sleep(seconds)
        marks.append(time())
        over = threading.Event()
        pressing = threading.Thread(target=pressure, args=(url, over))
        pressing.start()
        sleep(3 * seconds)
        marks.append(time())
        dead = _dead(url)
        over.set()
        pressing.join()
        sleep(seconds)
        marks.append(time())
        judged = made.judged()
        return f"{_told(made, marks)}; {dead:,} dead rows under it; {judged}"


def _told(made: Load, marks: list[float]) -> str:
    calls = made.calls()
    rates = [rate(calls, "take", *pair) for pair in pairwise(marks)]
    last = rate(calls, "take", marks[2] - (marks[2] - marks[1]) / 3, marks[2])
    before, under, after = (f"{count:,.0f} /s ({slow:.0f} ms)" for count, slow in rates)
    end = f"{last[0]:,.0f} /s at its end{_held(rates[0][0], last[0])}"
    return f"{before} before, {under} under it ({end}), {after} after"


def _held(first: float, last: float) -> str:
    """Whether the queue held out, as part of a sentence. Seconds on a busy machine may say that it has not."""
    return "" if last >= _LEAST * first else ", NOT HELD: less than half of before"


def idle_in_tx_saturation(database: Database, seconds: float) -> str:
    """A transaction with a snapshot is left open."""

    def idle(url: str, over: threading.Event) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(_SNAPSHOT)
            over.wait()

    return _under(database, seconds, idle)


def active_readers(database: Database, seconds: float) -> str:
    """Four analysts read everything, again and again, each in transactions of some seconds."""

    def read(url: str, over: threading.Event) -> None:
        def one() -> None:
            with psycopg.connect(url) as connection:
                while not over.is_set():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    for _ in range(4):
                        connection.execute(_ANALYSIS).fetchall()
                        over.wait(0.5)
                    connection.rollback()

        readers = [threading.Thread(target=one) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    return _under(database, seconds, read)


def sustained_high_load(database: Database, seconds: float) -> str:
    """Producers are ahead of consumers: the queue grows, and a receive does not get slower."""
    url = database.url
    with tempfile.TemporaryDirectory() as name, load(url, Path(name) / "load") as made:
        made.start(produce, 6)
        made.start(consume, 2)
        sleep(2)
        start = time()
        sleep(4 * seconds)
        end = time()
        waiting = _waiting(url)
        calls = made.calls()
        first, last = rate(calls, "take", start, start + seconds), rate(calls, "take", end - seconds, end)
        sends = rate(calls, "send", start, end)
        made.end()
        return (
            f"{sends[0]:,.0f} sends/s ({sends[1]:.0f} ms), receives {first[0]:,.0f} /s ({first[1]:.0f} ms) at first, "
            f"{last[0]:,.0f} /s ({last[1]:.0f} ms) at the end with {waiting:,} waiting{_held(first[0], last[0])}; "
            f"{_dead(url):,} dead rows"
        )


def _waiting(url: str) -> int:
    with postroom.open(url) as room:
        return room.queues.accept(QUEUE).queues[0].unprocessed


def event_delivery_burst(database: Database, seconds: float) -> str:
    """Consumers wait; then many events at once."""
    url, burst = database.url, int(seconds * 200)
    with tempfile.TemporaryDirectory() as name, load(url, Path(name) / "load") as made:
        made.start(consume, 4)
        sleep(2)
        took = []
        with postroom.open(url) as room:
            room.send(QUEUE, "warm-up")
            for number in range(BURSTS):
                before = time()
                room.send_many(QUEUE, [f"b{number}.{each} x" for each in range(burst)])
                while sum(call.value.startswith(f"b{number}.") for call in made.calls()) < burst:
                    assert time() - before < BURST_SECONDS, "a burst was not delivered"
                    sleep(0.1)
                took.append(time() - before)
        calls = made.calls()
        made.end()
        first = min(call.at for call in calls if call.value.startswith("b0."))
        delivered = f"delivered in {min(took):.1f} to {max(took):.1f} s"
        return f"bursts of {burst:,} {delivered}; the first after {_ms(first, calls)}"


def _ms(first: float, calls: list[Any]) -> str:
    began = min(call.at - call.seconds for call in calls if call.value.startswith("b0.") and call.at == first)
    return f"a wait of {1000 * (first - began):.0f} ms"


PRESSURE: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (idle_in_tx_saturation, active_readers, sustained_high_load, event_delivery_burst)
}
