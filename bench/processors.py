"""Measure where the processor time of a message goes: the engine's process, Spark's Java, Spark's Python workers.

Processor time is what two cores are short of, and moves less than seconds do when others are at work. Each case is run
on a warm session; what the engine's process spends is told by its stages, too, and the settings of Java can be given.

python bench/processors.py                  minutes
python bench/processors.py --quick fork     for a look, at one case
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import NamedTuple

import psutil

import flows
import rules
from postroom import spark as rooms
from postroom.engine.steps import pipeline
from postroom.room import Postroom
from program import Bench

ENGINE, JAVA, WORKERS = "engine", "Java", "workers"


class Case(NamedTuple):
    definitions: str
    suffix: str
    send: Callable[[Postroom, int], int]  # messages for about so many; answers with how many will be processed


def _fork(room: Postroom, count: int) -> int:
    return len(room.send_many("crm", rules.requests(count), format="xml").keys)


def _join(room: Postroom, count: int) -> int:
    room.send_many("crm", rules.results(count // 4), format="xml")
    return 5 * (count // 4)


def _arcs(room: Postroom, count: int) -> int:
    room.flows.publish_many("Trades", flows.trades(count))
    return count


CASES = {
    "fork": Case(rules.FORK, ".demaq", _fork),
    "join": Case(rules.JOIN, ".demaq", _join),
    "arcs": Case(flows.FIVE, ".flow", _arcs),
}


class Spent(NamedTuple):
    """Seconds of processor time, by whose they are."""

    by: Mapping[str, float]

    @staticmethod
    def now() -> Spent:
        found = {ENGINE: process_time(), JAVA: 0.0, WORKERS: 0.0}
        for child in psutil.Process().children(recursive=True):
            try:
                times, who = child.cpu_times(), JAVA if "java" in child.name() else WORKERS
            except psutil.Error:
                continue
            found[who] += times.user + times.system
        return Spent(found)

    def since(self, before: Spent) -> dict[str, float]:
        return {who: each - before.by[who] for who, each in self.by.items()}


class Stages:
    """The processor time of the engine's own thread in each part of a step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self) -> None:
        for name in ("_fill", "_finished"):
            setattr(pipeline.Pipeline, name, self._timed(name, getattr(pipeline.Pipeline, name)))

    def _timed(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*given: object) -> object:
            began = thread_time()
            try:
                return function(*given)
            finally:
                stage = "claim" if name == "_fill" else "commit"
                self.seconds[stage] = self.seconds.get(stage, 0.0) + thread_time() - began

        return timed


def measure(name: str, count: int, rounds: int, folder: Path, master: str, stages: Stages) -> None:
    case, bench = CASES[name], Bench(folder, master)
    for number in range(rounds):
        room = bench._room(f"{name}-{number}", case.definitions, case.suffix)
        expected = case.send(room, count)
        before, began = Spent.now(), perf_counter()
        stages.seconds.clear()
        totals = room.engine.run_totals(until_idle=True, master=master)
        seconds, spent = perf_counter() - began, Spent.now().since(before)
        assert (totals.messages, totals.failures) == (expected, 0), totals
        parts = {**spent, **{f"engine's {stage}": each for stage, each in stages.seconds.items()}}
        said = ", ".join(f"{who} {each / expected * 1e6:.1f}" for who, each in parts.items())
        busy = sum(spent.values()) / seconds
        warm = "warming up" if number == 0 else f"{expected / seconds:,.0f}/s"
        print(f"{name} {expected:,}: {said} µs a message; {busy:.2f} cores; {warm}", flush=True)
        bench._close(room)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--rounds", type=int, default=3, help="the first of which warms up")
    parser.add_argument("--messages", type=int, help="of a case")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    parser.add_argument("--java", help="options of Java, instead of ours")
    options = parser.parse_args()
    conf = {} if options.java is None else {"spark.driver.extraJavaOptions": options.java}
    rooms.session(options.master, conf)
    stages = Stages()
    stages.watch()
    count = options.messages or (2_000 if options.quick else 50_000)
    folder = Path(tempfile.mkdtemp(prefix="processors-"))
    try:
        for name in options.cases or CASES:
            measure(name, count, options.rounds, folder, options.master, stages)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
