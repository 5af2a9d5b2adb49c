"""Measure streams from files to files: five arcs and NEXMark's eight queries, each against the same job by hand.

Both run on one warm Spark session with Structured Streaming, in turns, over the same files, each with a new checkpoint.
Where a query needs what Structured Streaming has no plan for, the job by hand keeps it in its own program.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import nexmark
import postroom
from flows import trades
from lines import Line
from postroom import spark as rooms
from processors import Spent
from program import Bench, run, tell

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


@dataclass(frozen=True, slots=True)
class Sizes:
    trades: int
    events: int  # of NEXMark
    files: int  # of each source; a batch takes half of them
    rounds: int


FULL = Sizes(200_000, 50_000, 8, 3)
QUICK = Sizes(1_000, 3_000, 2, 1)


class Turn(NamedTuple):
    """One run of a job."""

    seconds: float
    processor: float
    lines: int  # that it has written


class Job(NamedTuple):
    name: str
    bound: str
    against: str
    events: int
    text: str  # of the graph
    by_hand: Callable[[Path], None]


class StreamBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes, self._count = sizes, 0
        self._half = max(1, sizes.files // 2)

    def lines(self) -> Iterator[Line]:
        tell("starting Spark")
        self._spark = rooms.session(self._master)
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._write()
        jobs = self._jobs()
        for job in jobs:
            tell(f"{job.name}, and the same by hand")
            yield self._line(job, self._taken(job, share=0.9 / len(jobs)))

    def _write(self) -> None:
        sizes = self._sizes
        written(self._folder / "trades", list(enumerate(trades(sizes.trades))), sizes.files, sizes.trades)
        for space, lines in nexmark.generated(sizes.events).items():
            written(self._folder / space.lower(), lines, sizes.files, sizes.events)

    def _jobs(self) -> list[Job]:
        five = Job("five arcs", "five", "PySpark by hand", self._sizes.trades, FIVE, self._five_by_hand)
        queries = [
            Job(
                f"NEXMark {query[1:]}",
                "nexmark",
                "Spark SQL by hand",
                self._sizes.events,
                nexmark.flow(query, "bench"),
                self._query_by_hand(query),
            )
            for query in nexmark.QUERIES
        ]
        return [five, *queries]

    def _taken(self, job: Job, share: float) -> list[dict[str, Turn]]:
        """Rounds of both, in turns; the first only warms up."""
        rounds = [
            {who: self._turn(who, job) for who in (("ours", "hand") if number % 2 else ("hand", "ours"))}
            for number in self._rounds(self._sizes.rounds + 1, share)
        ]
        if len(rounds) == 1:
            self.notes.append(f"{job.name}: there was no time to warm up")
        return rounds[1:] or rounds

    def _turn(self, who: str, job: Job) -> Turn:
        place = self._place()
        began, used = perf_counter(), processor_seconds()
        if who == "ours":
            self._ours(job.text, place)
        else:
            job.by_hand(place)
        seconds, used = perf_counter() - began, processor_seconds() - used
        turn = Turn(seconds, used, written_lines(place))
        shutil.rmtree(place)
        return turn

    def _line(self, job: Job, taken: list[dict[str, Turn]]) -> Line:
        ratios = [turns["hand"].seconds / turns["ours"].seconds for turns in taken]
        used = median(turns["hand"].processor / turns["ours"].processor for turns in taken)
        ours, hand = (job.events / median(turns[who].seconds for turns in taken) for who in ("ours", "hand"))
        lines = [taken[-1][who].lines for who in ("ours", "hand")]
        assert min(lines) > 0, lines
        self.notes.append(
            f"{job.name}: {lines[0]:,} lines written, {lines[1]:,} by hand; "
            f"by processor time {used:.2f}; {len(taken)} rounds"
        )
        among = (median(ratios), min(ratios), max(ratios))
        return Line(f"{job.name}, {job.events:,} events", ours, "/s", *among, job.bound, job.against, hand)

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
            room.gateways.add("bench", "files", folder=str(place), max_files=str(self._half))
            room.load(place / "graph.flow")
            (totals,) = room.stream(until_idle=True)
            assert totals.refused == 0
            assert totals.delivered > 0

    def _read(self, place: Path, name: str, schema: str) -> Any:
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", self._half)
        return reader.json(str(place / name))

    def _five_by_hand(self, place: Path) -> None:
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

    def _query_by_hand(self, query: str) -> Callable[[Path], None]:
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


def make(folder: Path, quick: bool, master: str) -> StreamBench:
    return StreamBench(folder, QUICK if quick else FULL, master)


if __name__ == "__main__":
    sys.exit(run(__doc__, make))
