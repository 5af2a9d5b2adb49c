"""Measures what handing over costs: executors that read and write in the store, against an engine that hands all over.

The same messages, small ones and large ones, in rooms of one PostgreSQL server: on the cores of this process, and on a
standalone cluster of two workers. Every figure is a ratio of two turns that follow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))

from machines import Cluster, database  # noqa: E402

import postroom  # noqa: E402
from machine import machine  # noqa: E402
from postroom import spark  # noqa: E402
from program import tell  # noqa: E402

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

    def lines(self, quick: bool) -> Iterator[tuple[str, dict[str, float]]]:
        self._turn("driver", 200, 10)  # Java, executors and workers are warm
        self._turn("store", 200, 10)
        for name, messages, size in SIZES:
            tell(f"messages of {name}, both ways on {self.name}")
            yield f"{name} on {self.name}", self._ways(messages // 10 if quick else messages, size, 2 if quick else 3)

    def _ways(self, messages: int, size: int, rounds: int) -> dict[str, float]:
        """Both ways in turns; the ratio of each pair of turns, and the middle one."""
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(rounds):
            for way in WAYS if turn % 2 else reversed(WAYS):
                taken[way].append(self._turn(way, messages, size))
        ratios = [store / driver for store, driver in zip(taken["store"], taken["driver"], strict=True)]
        return {
            "driver, µs a message": median(taken["driver"]) * 1e6,
            "store": median(taken["store"]) * 1e6,
            "ratio": median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }

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


def figures(folder: Path, quick: bool, cluster: bool) -> Iterator[tuple[str, dict[str, float]]]:
    with database(folder) as server:
        yield from Place("local[2]", server, folder, "local[2]").lines(quick)
    spark.stop()
    if cluster:
        tell("a cluster of two workers starts")
        with Cluster(workers=2) as machines:
            place = Place("two workers", machines.url, machines.folder, machines.master, machines.conf)
            yield from place.lines(quick)
            spark.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--no-cluster", action="store_true", help="only the two ways on this machine's cores")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as name:
        found = dict(figures(Path(name), options.quick, not options.no_cluster))
    print("\n".join(f"{fact}: {value}" for fact, value in machine().items()))
    for what, line in found.items():
        shown = [f"{name} {each:.2f}" if each < 10 else f"{name} {each:.0f}" for name, each in line.items()]
        print(f"{what}: {', '.join(shown)}")
    print(f"{perf_counter() - began:.0f} s")
    if options.json is not None:
        said = json.dumps({"machine": machine(), "figures": found}, indent=2)
        options.json.write_text(said + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
