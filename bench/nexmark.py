"""NEXMark's queries 1 to 8 for the measurement of streams: events, flows, and the same in Spark SQL by hand.

By hand stateful parts are Spark's own: watermarks, windows, joins of two streams. What Structured Streaming has no
plan for, an average behind a join and the last ten of a seller, is kept in the program that writes the batches.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FLOW = Path(__file__).parents[1] / "examples" / "nexmark" / "streams.flow"
SPACES = {
    "Persons": "id long, name string, city string, state string, time timestamp",
    "Auctions": "id long, item string, seller long, category long, time timestamp, expires timestamp",
    "Bids": "auction long, bidder long, price long, time timestamp",
}
QUERIES = [f"q{number}" for number in range(1, 9)]
_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_STATES = ["OR", "ID", "CA", "WA", "NY"]
_STEP = timedelta(milliseconds=4)
Frames = dict[str, Any]


def generated(count: int) -> dict[str, list[tuple[int, str]]]:
    """Lines of each space with the number of their event: one person and three auctions for each 46 bids.

    An event is up to four seconds late; what is asked of auctions is over soon after they have ended.
    """
    dice = random.Random(count)
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in SPACES}
    persons, auctions = 0, 0
    for number in range(count):
        time = _BEGIN + number * _STEP + timedelta(microseconds=dice.randrange(4_000_000))
        kind = number % 50
        if kind == 0:
            space, said = "Persons", {"id": persons, "name": f"n{persons}", "city": f"c{persons % 97}"}
            said |= {"state": dice.choice(_STATES), "time": _text(time)}
            persons += 1
        elif kind in (10, 20, 30):
            seller = dice.randrange(max(0, persons - 50), persons)
            expires = time + timedelta(seconds=dice.randrange(8, 60))
            space, said = "Auctions", {"id": auctions, "item": f"i{auctions}", "seller": seller}
            said |= {"category": 8 + dice.randrange(4), "time": _text(time), "expires": _text(expires)}
            auctions += 1
        else:
            auction = dice.randrange(max(0, auctions - 100), max(auctions, 1))
            space, said = "Bids", {"auction": auction, "bidder": dice.randrange(max(persons, 1))}
            said |= {"price": dice.randrange(1, 10_000_000), "time": _text(time)}
        found[space].append((number, json.dumps(said, separators=(",", ":"))))
    return found


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def flow(query: str, gateway: str) -> str:
    """One query of the example, with the spaces that it needs."""
    text = FLOW.read_text().replace('"nexmark/', f'"{gateway}/')
    parts = {f"q{block[0]}": block for block in text.split("\n# ")[2:]}
    head = text[text.index("domain") :].split("\n# ")[0]
    wanted = (parts["q4"] if query == "q6" else "") + "\n# " + parts[query]
    if query == "q6":
        wanted = "\n".join(line for line in ("# " + wanted).splitlines() if not line.startswith(("space Q4", "arc q4")))
    spaces = [f"space {block}" for block in head.split("\nspace ")[1:] if block.split()[0] in used(query)]
    return "\n".join(["domain nexmark", *spaces, f"# {wanted}" if query != "q6" else wanted])


def used(query: str) -> list[str]:
    return {
        "q3": ["Persons", "Auctions"],
        "q4": ["Auctions", "Bids"],
        "q6": ["Auctions", "Bids"],
        "q8": ["Persons", "Auctions"],
    }.get(query, ["Bids"])


# --- by hand ------------------------------------------------------------------------------------------------------


def by_hand(query: str, frames: Frames) -> Any:
    """The frame of a query over streams of the spaces."""
    return _BY_HAND[query](frames)


def q1(frames: Frames) -> Any:
    price = "CAST(CAST(price AS DECIMAL(20,0)) * 0.908 AS STRING) AS price"
    return frames["Bids"].selectExpr("auction", "bidder", price, "time")


def q2(frames: Frames) -> Any:
    return frames["Bids"].where("auction % 5 = 0").select("auction", "price")


def q3(frames: Frames) -> Any:
    west = frames["Persons"].where("state IN ('OR', 'ID', 'CA')").selectExpr("id AS person", "name", "city", "state")
    tens = frames["Auctions"].where("category = 10").selectExpr("id AS auction", "seller")
    return tens.join(west, tens.seller == west.person).select("name", "city", "state", "auction")


def _won(frames: Frames) -> Any:
    from pyspark.sql.functions import expr, max

    bids = frames["Bids"].withWatermark("time", "10 seconds").withColumnRenamed("time", "at")
    auctions = frames["Auctions"].withWatermark("expires", "10 seconds").withColumnRenamed("time", "opened")
    # Spark tells an auction only when no bid of that last minute can come any more; auctions are shorter.
    near = "auction = id AND at >= opened AND at < expires AND expires <= at + INTERVAL 1 MINUTE"
    placed = bids.join(auctions, expr(near))
    return placed.groupBy("id", "category", "seller", "expires").agg(max("price").alias("price"))


def q5(frames: Frames) -> Any:
    from pyspark.sql.functions import collect_list, struct, window, window_time

    bids = frames["Bids"].withWatermark("time", "10 seconds")
    counts = bids.groupBy("auction", window("time", "10 seconds", "2 seconds")).count()
    counts = counts.select("auction", "count", window_time("window").alias("over"))
    most = counts.groupBy(window("over", "2 seconds")).agg(collect_list(struct("count", "auction")).alias("all"))
    hot = most.selectExpr("window.end AS time", "filter(all, x -> x.count = array_max(all).count) AS hot")
    return hot.selectExpr("time", "explode(hot) AS one").selectExpr("one.auction", "one.count AS n", "time")


def q7(frames: Frames) -> Any:
    from pyspark.sql.functions import max, struct, window

    bids = frames["Bids"].withWatermark("time", "10 seconds")
    bid = max(struct("price", "auction", "bidder", "time")).alias("x")
    highest = bids.groupBy(window("time", "10 seconds")).agg(bid)
    return highest.selectExpr("x.auction", "x.bidder", "x.price", "x.time")


def q8(frames: Frames) -> Any:
    from pyspark.sql.functions import window

    came = frames["Persons"].withWatermark("time", "10 seconds").select("id", "name", window("time", "10 seconds"))
    sold = frames["Auctions"].withWatermark("time", "10 seconds").select("seller", window("time", "10 seconds"))
    both = came.join(sold, (came.id == sold.seller) & (came.window == sold.window)).select("id", "name", came.window)
    return both.dropDuplicates(["id", "window"]).selectExpr("id", "name", "window.start AS `from`")


_BY_HAND: dict[str, Callable[[Frames], Any]] = {
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q4": _won,
    "q5": q5,
    "q6": _won,
    "q7": q7,
    "q8": q8,
}


class Averages:
    """What comes behind the joins of queries 4 and 6, by hand: auctions in the order in which they end."""

    def __init__(self, query: str, folder: Path) -> None:
        self._key, self._last = ("category", 0) if query == "q4" else ("seller", 10)
        self._folder = folder
        self._prices: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=self._last or None))
        self._sums: dict[int, int] = defaultdict(int)

    def __call__(self, won: Any, number: int) -> None:
        self._folder.mkdir(exist_ok=True)
        rows = sorted(won.collect(), key=lambda row: (row.expires, row.id))
        lines = [json.dumps(each) for each in self._averages(rows)]
        (self._folder / f"{number:08}.json").write_text("".join(f"{line}\n" for line in lines))

    def _averages(self, rows: Any) -> Iterator[dict[str, Any]]:
        for row in rows:
            key, prices = row[self._key], self._prices[row[self._key]]
            prices.append(row.price)
            self._sums[key] += row.price
            whole = sum(prices) if self._last else self._sums[key]
            yield {self._key: key, "average": whole / len(prices)}


NEEDS_PROGRAM = ("q4", "q6")
