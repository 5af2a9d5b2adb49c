"""Measure consumers that may fail: leases and workers on SQLite and PostgreSQL, alone and many at once, beside others.

Beside the rates on PostgreSQL, the processor time of a call is told, of its client and of its part of the server. Then
what queues in PostgreSQL die of: an old transaction that stays open, analysts who read, producers ahead of consumers,
bursts; and what they must survive: killed clients, ended backends, a server that is restarted, no connection left.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import clients
import leases
import postroom
import workers
from chaos import CHAOS
from clients import OURS, PGQUEUER, PLAIN, PROCRASTINATE, Rate, Setting
from contenders import PEERS
from contenders import PLAIN as PLAIN_SQLITE
from growth import measure_growth
from lines import Line
from pressure import PRESSURE
from program import Bench, run, tell
from rounds import Round, cost, cost_ratio
from server import Scenario, database, durability, server


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    single: Setting
    many: Setting
    spread: Setting
    jobs: int
    leases: int
    rooms: tuple[int, int]
    operations: int  # of a lease and its end in each room, in each round
    tasks: int
    sends: int  # of all tasks together, in each round
    processes: int
    sends_each: int  # of a process
    pressure: float  # seconds
    chaos: float


FULL = Sizes(
    rounds=3,
    single=Setting(clients=1, queues=1, calls=1_000, warm_up=70),
    many=Setting(clients=16, queues=1, calls=100, warm_up=30),
    spread=Setting(clients=64, queues=16, calls=50, warm_up=20),
    jobs=10_000,
    leases=500,
    rooms=(1_000, 1_000_000),
    operations=200,
    tasks=32,
    sends=6_400,
    processes=16,
    sends_each=200,
    pressure=3,
    chaos=2,
)
QUICK = Sizes(
    rounds=1,
    single=Setting(clients=1, queues=1, calls=50, warm_up=10),
    many=Setting(clients=4, queues=1, calls=10, warm_up=10),
    spread=Setting(clients=4, queues=2, calls=10, warm_up=10),
    jobs=100,
    leases=60,
    rooms=(1_000, 5_000),
    operations=40,
    tasks=32,
    sends=640,
    processes=4,
    sends_each=10,
    pressure=1,
    chaos=1,
)


class ConsumerBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        yield from self._on_sqlite()
        with server() as found:
            self.notes.append(durability(found))
            with ExitStack() as stack:
                urls = {
                    name: stack.enter_context(database(found, name.split()[0])).url
                    for name in (OURS, PLAIN, PROCRASTINATE, PGQUEUER)
                }
                yield from self._at_once(urls)
            yield from self._workers_on_postgres(found)
            self._survive(found, {**PRESSURE, **CHAOS})

    # --- SQLite ---

    def _on_sqlite(self) -> Iterator[Line]:
        sizes = self._sizes
        tell("leases beside libraries, on SQLite")
        numbers = self._rounds(sizes.rounds + 2, share=0.06, what="leases on SQLite")
        rounds = leases.beside_peers(self._folder, numbers, sizes.leases, self.notes)
        for ours in (leases.CALLS, leases.LOOP):
            for peer in PEERS:
                yield _line(f"lease and done on SQLite, {ours.split(', ')[1]}", rounds, ours, peer, "lease-peers")
        tell(f"leases with {sizes.rooms[1]:,} messages")
        grown = measure_growth(
            self._folder / "growth", sizes.rooms, sizes.rounds + 1, sizes.operations, leases.BODY, ["lease and done"]
        )
        for each in grown:
            self.curves.append(each.curve)
            yield each.line
        tell(f"{sizes.tasks} tasks that send, on SQLite")
        numbers = self._rounds(sizes.rounds + 2, share=0.06, what="tasks that send")
        rounds = leases.together(self._folder, numbers, sizes.tasks, sizes.sends)
        measure = f"sends of {sizes.tasks} tasks that share commits, on SQLite"
        yield _line(measure, rounds, leases.TASKS, PLAIN_SQLITE, "group")
        yield self._longest()
        tell("workers on SQLite")
        numbers = self._rounds(sizes.rounds, share=0.08, what="workers on SQLite")
        rounds = [workers.on_sqlite(self._folder, sizes.jobs, number) for number in numbers]
        yield _line(self._jobs("SQLite"), rounds, OURS, "huey", "workers-sqlite")

    def _longest(self) -> Line:
        sizes = self._sizes
        tell(f"{sizes.processes} processes that send, on SQLite")
        rounds = [
            leases.side_by_side(self._folder / f"shared-{number}.db", sizes.processes, sizes.sends_each)
            for number in self._rounds(sizes.rounds, share=0.05, what="processes that send")
        ]
        waits = [each.longest for each in rounds]
        rate = median(each.rate for each in rounds)
        return Line(
            f"longest wait of a send among {sizes.processes} processes, on SQLite",
            *(max(waits), "s", max(waits), min(waits), max(waits), "wait"),
            remark=f"of {sizes.processes * sizes.sends_each:,} sends in each round, {rate:,.0f} /s together",
        )

    # --- PostgreSQL ---

    def _at_once(self, urls: dict[str, str]) -> Iterator[Line]:
        sizes = self._sizes
        queues = max(each.queues for each in (sizes.single, sizes.many, sizes.spread))
        for name, url in urls.items():
            clients.PREPARE[name](url, queues)
        both = {name: urls[name] for name in (OURS, PLAIN)}
        yield from self._sends_and_receives(both, sizes.single, "single")
        yield from self._sends_and_receives(urls, sizes.many, "many")
        yield from self._sends_and_receives(both, sizes.spread, "spread")
        with postroom.open(urls[OURS]) as room:
            assert room.journal.verify().differences == ()

    def _sends_and_receives(self, urls: dict[str, str], setting: Setting, bound: str) -> Iterator[Line]:
        tell(f"{setting}, on PostgreSQL")
        rounds: dict[str, list[dict[str, Rate]]] = {"send": [], "receive": [], "lease and done": []}
        for number in self._rounds(self._sizes.rounds, share=0.06, what=str(setting)):
            rounds["send"].append(clients.turns(clients.SEND, urls, setting, number))
            rounds["receive"].append(clients.turns(clients.RECEIVE, urls, setting, number))
            if PGQUEUER in urls:
                _refill(urls[OURS], setting)
                rounds["lease and done"].append(clients.turns(clients.WORK, urls, setting, number))
        for verb in ("send", "receive"):
            yield _rates(f"{verb}, {setting}, PostgreSQL", rounds[verb], PLAIN, bound)
        for verb in ("send", "lease and done"):
            for peer in (PROCRASTINATE, PGQUEUER):
                if peer in urls:
                    yield _rates(f"{verb}, {setting}, PostgreSQL", rounds[verb], peer, f"{bound}-peers")

    def _workers_on_postgres(self, found: Any) -> Iterator[Line]:
        tell("workers on PostgreSQL")
        numbers = self._rounds(self._sizes.rounds, share=0.15, what="workers on PostgreSQL")
        rounds = [workers.on_postgres(found, self._sizes.jobs, number) for number in numbers]
        for peer in workers.POSTGRES:
            if peer != OURS:
                bound = "workers-awa" if peer == "awa-pg" else "workers-peers"
                yield _line(self._jobs("PostgreSQL"), rounds, OURS, peer, bound)

    def _survive(self, found: Any, scenarios: Mapping[str, Scenario]) -> None:
        """Whatever becomes of one, the others happen, too. One that lost a message or took it twice fails the part."""
        failed = []
        for name, scenario in scenarios.items():
            tell(name)
            seconds = self._sizes.pressure if name in PRESSURE else self._sizes.chaos
            try:
                with database(found, name) as made:
                    told = scenario(made, seconds)
            except AssertionError as error:
                failed.append(name)
                told = f"FAILED: {error}"
            self.notes.append(f"`{name}`: {told}")
        assert not failed, f"{', '.join(failed)}: see the notes"

    def _jobs(self, store: str) -> str:
        return f"{self._sizes.jobs:,} jobs by {workers.CONCURRENCY} workers on {store}"


def _refill(url: str, setting: Setting) -> None:
    """What a receive has taken is there again, for leases."""
    with postroom.open(url) as room:
        room.send_many("q0", [clients.BODY] * setting.messages)


def _line(measure: str, rounds: Sequence[Round], ours: str, peer: str, bound: str) -> Line:
    rates = 1 / cost(rounds, ours), 1 / cost(rounds, peer)
    return Line(measure, rates[0], "/s", *cost_ratio(rounds, peer, ours), bound, peer, rates[1])


def _rates(measure: str, rounds: Sequence[dict[str, Rate]], peer: str, bound: str) -> Line:
    ratios = [each[OURS].rate / each[peer].rate for each in rounds]
    rates = {name: median(each[name].rate for each in rounds) for name in (OURS, peer)}
    by_processor = median(each[peer].processor / each[OURS].processor for each in rounds)
    spent = {name: clients.spent(each[name] for each in rounds) for name in (OURS, peer)}
    return Line(
        *(measure, rates[OURS], "/s", median(ratios), min(ratios), max(ratios), bound, peer, rates[peer]),
        remark=f"by processor time {by_processor:.2f} ({spent[OURS]}; {peer} {spent[peer]})",
    )


def make(folder: Path, quick: bool, master: str) -> ConsumerBench:
    return ConsumerBench(folder, QUICK if quick else FULL, master)


if __name__ == "__main__":
    sys.exit(run(__doc__, make))
