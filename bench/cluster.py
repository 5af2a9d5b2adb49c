"""Measures what handing over costs: executors that read and write in the store, against an engine that hands all over.

The same messages, small ones and large ones, in rooms of one PostgreSQL server: on the cores of this process, and on a
standalone cluster of two workers. Every figure is a ratio of two turns that follow each other.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter

import psycopg

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))

from machines import Cluster, database  # noqa: E402

import postroom  # noqa: E402
from lines import Line  # noqa: E402
from postroom import spark  # noqa: E402
from program import Bench, run, tell  # noqa: E402
from rounds import Round, cost, cost_ratio  # noqa: E402

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

    def turn(self, way: str, messages: int, size: int) -> float:
        """Seconds a message, in a room that is worked off in one way."""
        with room_of(self.server, self.folder) as room:
            room.send_many("in", [f'<m n="{n}">{"x" * size}</m>' for n in range(messages)], format="xml")
            began = perf_counter()
            conf = {**self.conf, "spark.postroom.exchange": way}
            totals = room.engine.run_totals(until_idle=True, master=self.master, conf=conf)
            seconds = (perf_counter() - began) / messages
            assert (totals.messages, totals.failures) == (messages, 0), totals
            assert room.queues.accept("out").queues[0].unprocessed == messages
        return seconds


class ClusterBench(Bench):
    def __init__(self, folder: Path, quick: bool, master: str) -> None:
        super().__init__(folder, master)
        self._quick = quick

    def lines(self) -> Iterator[Line]:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Not in our folder: the path of a server's socket must be short.
        with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as name:
            folder = Path(name)
            with database(folder) as server:
                yield from self._both_ways(Place("local[2]", server, folder, "local[2]"))
            spark.stop()
        tell("a cluster of two workers starts")
        with Cluster(workers=2) as machines:
            yield from self._both_ways(
                Place("two workers", machines.url, machines.folder, machines.master, machines.conf)
            )
            spark.stop()

    def _both_ways(self, place: Place) -> Iterator[Line]:
        for way in WAYS:
            place.turn(way, 200, 10)  # Java, executors and workers are warm
        for name, messages, size in SIZES:
            tell(f"messages of {name}, both ways on {place.name}")
            yield self._line(place, name, messages // 10 if self._quick else messages, size)

    def _line(self, place: Place, name: str, messages: int, size: int) -> Line:
        """Both ways in turns; the ratio is taken of each pair of turns."""
        rounds: list[Round] = []
        for number in range(2 if self._quick else 3):
            ways = WAYS if number % 2 else WAYS[::-1]
            rounds.append({way: place.turn(way, messages, size) for way in ways})
        ratio = cost_ratio(rounds, "driver", "store")
        by_store, by_driver = (cost(rounds, way) * 1e6 for way in ("store", "driver"))
        measure = f"{messages:,} messages of {name} by way of the store, on {place.name}"
        return Line(measure, by_store, "µs", *ratio, None, "handed over by the engine", by_driver)


if __name__ == "__main__":
    sys.exit(run(__doc__, ClusterBench))
