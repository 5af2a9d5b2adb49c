"""Measure streams from files to files: five arcs and NEXMark's eight queries, each against the same job by hand.

Both run on one warm Spark session with Structured Streaming, in turns, over the same files, each with a new checkpoint.
What is told is the ratio of their times: 1 is as fast as by hand, more is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import nexmark
import postroom
from flows import trades
from postroom import spark as rooms
from processors import Spent

TRADE = "[issue: string, price: int, volume: int]"
FIVE = f"""
domain bench
space Trades : {TRADE} from files "bench/trades" format json
space Big : {TRADE} to files "bench/out-big" format json
space Seven : {TRADE} to files "bench/out-seven" format json
space Capital : [issue: string, capital: int] to files "bench/out-capital" format json
space Cents : [issue: string, cents: int] to files "bench/out-cents" format json
space All : {TRADE} to files "bench/out-all" format json
arc big : Trades -> Big select [price: p > 75]
arc seven : Trades -> Seven select [issue: "I7"]
arc capital : Trades -> Capital transform [issue: i, price: p, volume: v] => [issue: i, capital: p * v]
arc cents : Trades -> Cents transform [issue: i, price: p] => [issue: i, cents: p * 100]
arc all : Trades -> All merge
"""


class Turn(NamedTuple):
    """One run of a job."""

    seconds: float
    processor: float
    lines: int  # that it has written


class StreamBench:
    def __init__(self, folder: Path, master: str, events: int, files: int) -> None:
        self._folder, self._events, self._files = folder, events, files
        self._spark = rooms.session(master)
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._count = 0

    def measured(self, name: str, text: str, by_hand: Callable[[Path], None], rounds: int) -> dict[str, Any]:
        """Seconds of both, in turns; the first round only warms up."""
        taken: list[dict[str, Turn]] = []
        for number in range(rounds + 1):
            turns: dict[str, Turn] = {}
            for who in ("ours", "hand") if number % 2 else ("hand", "ours"):
                place = self._place()
                began, used = perf_counter(), processor_seconds()
                if who == "ours":
                    self._ours(text, place)
                else:
                    by_hand(place)
                seconds, used = perf_counter() - began, processor_seconds() - used
                turns[who] = Turn(seconds, used, written_lines(place))
                shutil.rmtree(place)
            taken.append(turns)
        return self._figures(name, taken[1:])

    def _figures(self, name: str, taken: list[dict[str, Turn]]) -> dict[str, Any]:
        ratios = [turns["hand"].seconds / turns["ours"].seconds for turns in taken]
        used = [turns["hand"].processor / turns["ours"].processor for turns in taken]
        seconds = median(turns["ours"].seconds for turns in taken)
        lines = [taken[-1][who].lines for who in ("ours", "hand")]
        assert min(lines) > 0, lines
        return {
            "measure": name,
            "events": self._events,
            "events_per_second": round(self._events / seconds),
            "ratio": round(median(ratios), 2),
            "lowest": round(min(ratios), 2),
            "highest": round(max(ratios), 2),
            "processor_ratio": round(median(used), 2),
            "lines": lines,
        }

    def _place(self) -> Path:
        """A folder with links to what is read; what is written goes there, too."""
        self._count += 1
        place = self._folder / f"run-{self._count}"
        place.mkdir()
        for name in ("trades", *map(str.lower, nexmark.SPACES)):
            (place / name).symlink_to(self._folder / name)
        return place

    def _ours(self, text: str, place: Path) -> None:
        (place / "graph.flow").write_text(text)
        with postroom.open(place / "room.db") as room:
            room.gateways.add("bench", "files", folder=str(place), max_files=str(self._files))
            room.load(place / "graph.flow")
            (totals,) = room.stream(until_idle=True)
            assert totals.refused == 0
            assert totals.delivered > 0

    def _read(self, place: Path, name: str, schema: str) -> Any:
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", self._files)
        return reader.json(str(place / name))

    def five_by_hand(self, place: Path) -> None:
        def batch(events: Any, number: int) -> None:
            events = events.persist()
            parts = {
                "big": events.where("price > 75"),
                "seven": events.where("issue = 'I7'"),
                "capital": events.selectExpr("issue", "price * volume AS capital"),
                "cents": events.selectExpr("issue", "price * 100 AS cents"),
                "all": events,
            }
            for name, frame in parts.items():
                frame.write.mode("append").json(str(place / f"out-{name}"))
            events.unpersist()

        writer = self._read(place, "trades", "issue string, price long, volume long").writeStream.foreachBatch(batch)
        self._awaited(writer, place)

    def query_by_hand(self, query: str) -> Callable[[Path], None]:
        def run(place: Path) -> None:
            spaces = nexmark.used(query)
            frames = {name: self._read(place, name.lower(), nexmark.SPACES[name]) for name in spaces}
            writer = nexmark.by_hand(query, frames).writeStream
            if query in nexmark.NEEDS_PROGRAM:
                writer = writer.foreachBatch(nexmark.Averages(query, place / query))
            else:
                writer = writer.format("json").option("path", str(place / query))
            self._awaited(writer, place)

        return run

    def _awaited(self, writer: Any, place: Path) -> None:
        query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()


def written(folder: Path, lines: list[tuple[int, str]], files: int, count: int) -> None:
    """Lines as files, by the number of each, of so many."""
    folder.mkdir()
    for number in range(files):
        some = [line for place, line in lines if place * files // count == number]
        file = folder / f"{number:05}.json"
        file.write_text("".join(f"{line}\n" for line in some))
        os.utime(file, (1_700_000_000 + number,) * 2)  # what came at one time, in every space


def processor_seconds() -> float:
    return sum(Spent.now().by.values())


def written_lines(place: Path) -> int:
    files = [file for file in place.rglob("*.json") if file.parent.name.startswith(("out-", "q"))]
    return sum(file.read_bytes().count(b"\n") for file in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=8, help="of each source; a batch takes half of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--only", nargs="*", help="five, q1 to q8")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="postroom-bench-") as name:
        folder = Path(name)
        written(folder / "trades", list(enumerate(trades(given.events))), given.files, given.events)
        for space, lines in nexmark.generated(given.events).items():
            written(folder / space.lower(), lines, given.files, given.events)
        bench = StreamBench(folder, given.master, given.events, max(1, given.files // 2))
        jobs: dict[str, tuple[str, Callable[[Path], None]]] = {"five": (FIVE, bench.five_by_hand)}
        jobs |= {query: (nexmark.flow(query, "bench"), bench.query_by_hand(query)) for query in nexmark.QUERIES}
        for measure, (text, by_hand) in jobs.items():
            if not given.only or measure in given.only:
                print(json.dumps(bench.measured(measure, text, by_hand, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
