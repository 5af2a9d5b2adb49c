"""Measure what handing over costs: executors that read and write in the store, against an engine that hands all over.

The same messages, small ones and large ones, in rooms of one PostgreSQL server: on the cores of this process, and on a
standalone cluster of two workers. Every figure is a ratio of two turns that follow each other.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from os import environ
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "cluster"))

from machines import Cluster, database

import postroom
from lines import Line
from postroom import spark
from program import Bench, run, tell

PROGRAM = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create rule work for in if (/m) then do enqueue <r>{string(/m/@n)}{/m/text()}</r> into out
"""
WAYS = ("driver", "store")
SIZES = (("100 bytes", 4_000, 60), ("20 kB", 400, 20_000))  # name, messages, characters
_schemas = count(1)


@contextmanager
def room_of(server: str, folder: Path) -> Iterator[postroom.Postroom]:
    """A room of its own on a server."""
    schema = f"bench_{next(_schemas)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(schema)))
    file = folder / "program.demaq"
    file.write_text(PROGRAM)
    with postroom.open(f"{server}&options=-csearch_path%3D{schema}") as room:
        room.load(file)
        yield room


@dataclass(frozen=True)
class Place:
    """Where the work is done."""

    name: str
    server: str
    folder: Path
    master: str
    conf: dict[str, str] = field(default_factory=dict)

    def lines(self, quick: bool) -> Iterator[Line]:
        for way in WAYS:
            self._turn(way, 200, 10)  # Java, executors and workers are warm
        for name, messages, size in SIZES:
            tell(f"messages of {name}, both ways on {self.name}")
            yield self._line(name, messages // 10 if quick else messages, size, 2 if quick else 3)

    def _line(self, name: str, messages: int, size: int, rounds: int) -> Line:
        """Both ways in turns; the ratio of each pair of turns, and the middle one."""
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(rounds):
            for way in WAYS if turn % 2 else reversed(WAYS):
                taken[way].append(self._turn(way, messages, size))
        ratios = [store / driver for store, driver in zip(taken["store"], taken["driver"], strict=True)]
        ours, other = (median(taken[way]) * 1e6 for way in ("store", "driver"))
        what = f"messages of {name} through the store, on {self.name}"
        middle, against = median(ratios), "through the engine"
        return Line(what, ours, "µs", middle, min(ratios), max(ratios), against=against, other=other)

    def _turn(self, way: str, messages: int, size: int) -> float:
        """Seconds a message, in a room that is worked off in one way."""
        with room_of(self.server, self.folder) as room:
            room.send_many("in", [f'<m n="{n}">{"x" * size}</m>' for n in range(messages)], format="xml")
            began = perf_counter()
            conf = {**self.conf, "spark.postroom.exchange": way}
            totals = room.engine_run(until_idle=True, master=self.master, conf=conf)
            seconds = (perf_counter() - began) / messages
            assert (totals.messages, totals.failures) == (messages, 0), totals
            assert room.accept("out").queues[0].unprocessed == messages
        return seconds


class ClusterBench(Bench):
    def __init__(self, folder: Path, quick: bool, master: str) -> None:
        super().__init__(folder, master)
        self._quick = quick

    def lines(self) -> Iterator[Line]:
        environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as name:  # a socket's path may not be long
            with database(Path(name)) as server:
                yield from Place("two cores", server, Path(name), "local[2]").lines(self._quick)
            spark.stop()
        tell("a cluster of two workers starts")
        with Cluster(workers=2) as machines:
            place = Place("two workers", machines.url, machines.folder, machines.master, machines.conf)
            yield from place.lines(self._quick)
            spark.stop()


if __name__ == "__main__":
    sys.exit(run(__doc__, ClusterBench))
