"""Measure flows: five arcs against the same job in hand-written PySpark, and select arcs as they become many.

Both jobs read the same stored events and end in stored consumers, on one warm Spark session and in turns. A missed
bound is said in the table and is no failure of the program.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from pyspark.sql.functions import col, from_json, lit, struct, to_json

import postroom
from curves import curve
from lines import Line
from postroom import spark as rooms
from program import Bench, run, tell

TYPE = "[issue: string, price: int, volume: int]"
FIVE = f"""
domain bench
space Trades : {TYPE}
space Big : {TYPE}
space Seven : {TYPE}
space Capital : [issue: string, capital: int]
space Cents : [issue: string, cents: int]
space All : {TYPE}
arc big : Trades -> Big select [price: p > 75]
arc seven : Trades -> Seven select [issue: "I7"]
arc capital : Trades -> Capital transform [issue: i, price: p, volume: v] => [issue: i, capital: p * v]
arc cents : Trades -> Cents transform [issue: i, price: p] => [issue: i, cents: p * 100]
arc all : Trades -> All merge
"""
SINKS = ("Big", "Seven", "Capital", "Cents", "All")
MATCHING = 50  # select arcs that pass something, however many there are


@dataclass(frozen=True, slots=True)
class Sizes:
    events: int
    rounds: int
    warm: int
    arcs: tuple[int, ...]
    selected: int  # events that meet the select arcs
    turns: int


FULL = Sizes(1_000_000, 2, 50_000, (100, 1_000, 10_000), 40_000, 5)
QUICK = Sizes(3_000, 1, 500, (40, 80), 500, 1)


class FlowBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        tell("starting Spark and warming up")
        rooms.session(self._master)
        warm = trades(self._sizes.warm)
        self._round(warm, self._published(warm), ours_first=True)
        tell(f"five arcs over {self._sizes.events:,} events, and the same by hand")
        yield self._five()
        tell(f"{', '.join(f'{each:,}' for each in self._sizes.arcs)} select arcs")
        yield from self._many()

    # --- five arcs ---

    def _five(self) -> Line:
        count = self._sizes.events
        events = trades(count)
        published = self._published(events)
        rounds = [
            self._round(events, published, ours_first=bool(number % 2))
            for number in self._rounds(self._sizes.rounds, share=0.75)
        ]
        self.notes.append(f"{len(rounds)} rounds of the five arcs, {self._sizes.turns} of the select arcs")
        shutil.rmtree(published.parent)
        ratios = [hand / ours for ours, hand in rounds]
        ours, hand = (count / median(each[place] for each in rounds) for place in (0, 1))
        among = (median(ratios), min(ratios), max(ratios))
        return Line(f"five arcs, {count:,} events", ours, "/s", *among, "five", "PySpark by hand", hand)

    def _published(self, events: list[str]) -> Path:
        """A file with the graph and all its events; both contenders begin with a copy of it."""
        room = self._room(f"published-{len(events)}", FIVE, ".flow")
        room.flows.publish_many("Trades", events)
        room.close()
        return Path(room.url)

    def _round(self, events: list[str], published: Path, *, ours_first: bool) -> tuple[float, float]:
        """Seconds of both for the same events, each in a room of its own."""
        seconds, count = {}, len(events)
        for who in ("ours", "hand") if ours_first else ("hand", "ours"):
            place = self._folder / who
            place.mkdir()
            room = postroom.open(shutil.copy(published, place / "room.db"), create=False)
            if who == "ours":
                seconds[who] = self._run(room, "five arcs", count)
                sinks = list(SINKS)
            else:
                sinks = [f"Hand{sink}" for sink in SINKS]
                for sink in sinks:
                    room.queues.create(sink)
                start = perf_counter()
                by_hand(room.url, self._master)
                seconds[who] = perf_counter() - start
            stored = {each.queue: each.unprocessed for each in room.queues.accept().queues}
            assert [stored[sink] for sink in sinks] == expected(events), f"{who} delivered something else"
            self._close(room)
        return seconds["ours"], seconds["hand"]

    # --- many arcs ---

    def _many(self) -> Iterator[Line]:
        count, taken = self._sizes.selected, dict[int, list[float]]()
        opened = {}
        for arcs in self._sizes.arcs:
            began = perf_counter()
            opened[arcs] = self._room(f"arcs-{arcs}", selects(arcs), ".flow")
            self.notes.append(f"{arcs:,} arcs with as many spaces were loaded in {perf_counter() - began:.1f} s")
            opened[arcs].flows.publish_many("Trades", trades(min(count, 2_000)))
            opened[arcs].run_until_idle(master=self._master)
            taken[arcs] = []
        for _ in range(self._sizes.turns):
            for arcs, room in opened.items():
                room.flows.publish_many("Trades", trades(count))
                taken[arcs].append(self._run(room, f"{arcs:,} select arcs", count))
        for room in opened.values():
            self._close(room)
        costs = {arcs: [seconds / count * 1e6 for seconds in each] for arcs, each in taken.items()}
        self.curves.append(curve(f"an event, of whose arcs {MATCHING} match", "select arcs", "µs", costs))
        few = self._sizes.arcs[0]
        others = (f"{few:,} select arcs", median(costs[few]))
        for arcs in self._sizes.arcs[1:]:
            ratios = [many / one for many, one in zip(costs[arcs], costs[few], strict=True)]
            among = (median(ratios), min(ratios), max(ratios))
            name = f"an event that meets {arcs:,} select arcs, of which {MATCHING} match"
            yield Line(name, median(costs[arcs]), "µs", *among, "arcs", *others)


def by_hand(url: str, master: str) -> None:
    """The five arcs as one would write them: the events are read once and kept, each sink is one write."""
    spark = rooms.session(master)
    events = (
        spark.read.format("postroom")
        .option("queue", "Trades")
        .load(url)
        .select("body", from_json("body", "issue string, price long, volume long").alias("e"))
        .cache()
    )
    capital = struct("e.issue", (col("e.price") * col("e.volume")).alias("capital"))
    cents = struct("e.issue", (col("e.price") * 100).alias("cents"))
    frames = (
        events.where("e.price > 75").select("body"),
        events.where("e.issue = 'I7'").select("body"),
        events.select(to_json(capital).alias("body")),
        events.select(to_json(cents).alias("body")),
        events.select("body"),
    )
    for sink, frame in zip(SINKS, frames, strict=True):
        rows = frame.withColumn("format", lit("json"))
        rows.write.format("postroom").option("queue", f"Hand{sink}").mode("append").save(url)
    events.unpersist()


def trades(count: int) -> list[str]:
    chance = random.Random(count)
    return [
        f'{{"issue":"I{chance.randrange(10)}","price":{chance.randrange(150)},"volume":{chance.randrange(1_000)}}}'
        for _ in range(count)
    ]


def expected(events: list[str]) -> list[int]:
    """How many each sink must have."""
    read = [json.loads(each) for each in events]
    big = sum(each["price"] > 75 for each in read)
    seven = sum(each["issue"] == "I7" for each in read)
    return [big, seven, len(read), len(read), len(read)]


def selects(count: int) -> str:
    """Select arcs on one space, each for a consumer of its own; always the same number pass something."""
    lines = ["domain bench", f"space Trades : {TYPE}"]
    for number in range(count):
        issue = f"I{number % 10}" if number < MATCHING else f"J{number}"
        low = number % 120
        lines.append(f"space C{number} : {TYPE}")
        lines.append(
            f'arc a{number} : Trades -> C{number} select [issue: "{issue}", price: p > {low} and p < {low + 8}]'
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run(__doc__, lambda folder, quick, master: FlowBench(folder, QUICK if quick else FULL, master)))
