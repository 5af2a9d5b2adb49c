"""Measure stations: queries over nodes against hand-written PySpark and against DuckDB on the same files, a query at
one station, and mail as stations become many.

All on one run, in turns, Spark warm. ``--messages 20000`` makes a smaller network. A missed bound is said in the table
and is no failure of the program.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import pyarrow
from pyspark.sql import SparkSession

import postroom
from curves import curve
from lines import Line
from postroom import spark as rooms
from postroom.room import Postroom
from postroom.stations.station import Station
from program import Bench, run, tell
from rounds import Action, Arguments, Round, cost, cost_ratio, run_round

# Payer says what Customer says and has no index.
FORM = """type ORDER
| Order No: ____________   Date: _________ |
| Customer: ____________   Region: _______ |
| Payer: _______________   Amount: _______ |
| Note: __________________________________ |
field Order No string required
field Date     date   required
field Customer string required
field Region   string required
field Payer    string required
field Amount   int    required
field Note     string free
index Order No
index Customer
"""
REGIONS = tuple(f"region {number}" for number in range(10))
NOTE = "to be delivered at the back door, please ring twice"
NODES = 4
ALIKE = 20  # orders of one customer
CHUNK = 10_000  # orders made in one commit
WARM = 3  # times that do not count
ALONE = "alone"
OURS, HAND, DUCK = "postroom", "PySpark by hand", "DuckDB"


@dataclass(frozen=True, slots=True)
class Sizes:
    messages: int
    stations: int  # on each node
    rounds: int
    locals: int  # queries at one station
    networks: tuple[int, ...]  # stations that mail goes between
    pairs: int  # of a ship and a get, in each network and round


FULL = Sizes(1_000_000, 10, 5, 200, (10, 100, 1_000), 200)
QUICK = Sizes(8_000, 2, 2, 20, (10, 40), 20)


class Found(NamedTuple):
    """What a contender has brought back, told shortly: all must have brought the same."""

    rows: int
    keys: int
    characters: int
    stations: int


#: Asks for a field with a value; answers with rows in memory, and tells of them when that is called.
Asked = Callable[[str, str], Callable[[], Found]]


class Question(NamedTuple):
    name: str
    field: str
    values: Sequence[str]  # one for each round, as far as they go


class StationBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        # The station with all messages is filled by another process meanwhile: there is a core for each.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            alone = pool.submit(_filled_alone, self._folder, self._sizes)
            room = self._filled_network()
            url, notes = alone.result()
        self.notes += notes
        tell("starting Spark")
        yield from self._network(rooms.session(self._master), room)
        yield from self._one_station(url)
        yield self._mail()

    # --- queries over nodes ---

    def _filled_network(self) -> Postroom:
        sizes = self._sizes
        tell(f"{sizes.messages:,} messages on {NODES} nodes, and as many at one station")
        room, stations = self._room("network", FORM, ".form"), list[Station]()
        for node, file in enumerate(_files(room)[1:]):
            room.stations.add_node(f"node{node}", str(file))
            stations += [self._station(room, f"s{node}.{at}", f"node{node}") for at in range(sizes.stations)]
        self._fill("a network", stations, sizes.messages)
        return room

    def _network(self, spark: SparkSession, room: Postroom) -> Iterator[Line]:
        sizes, files = self._sizes, _files(room)
        asker = self._station(room, "asker", "control")
        contenders: dict[str, Asked] = {
            OURS: lambda field, value: ask(asker, field, value),
            HAND: lambda field, value: by_hand(spark, files, field, value),
        }
        some = [customer(each) for each in random.Random(1).sample(range(customers(sizes.messages)), 10)]
        questions = (
            Question("global, few rows, by an index", "Customer", some),
            Question("global, few rows, no index", "Payer", some),
            Question("global, a tenth of all", "Region", REGIONS),
        )
        with Duck(files) as duck:
            if duck.missing:
                self.notes.append(f"{DUCK} was not measured: {duck.missing}")
            else:
                contenders[DUCK] = duck.ask
            taken = {each.name: self._ask(each, contenders) for each in questions}
        self._close(room)
        for name, done in taken.items():
            yield _faster(name, done, HAND, "by-hand")
            if DUCK in contenders:
                yield _faster(name, done, DUCK, None)
        few, scan, _ = (done for done in taken.values())
        together = [{OURS: one[OURS], "no index": other[OURS]} for one, other in zip(few, scan, strict=True)]
        yield _faster("global, few rows, by an index", together, "no index", "index")

    def _ask(self, question: Question, contenders: dict[str, Asked]) -> list[Round]:
        tell(question.name)
        rounds, values = [], question.values
        for number in range(self._sizes.rounds + WARM):
            value = values[number % len(values)]
            answers: dict[str, Callable[[], Found]] = {}

            def note(who: str, value: str, answers: dict[str, Callable[[], Found]] = answers) -> None:
                answers[who] = contenders[who](question.field, value)

            rounds.append(run_round({who: (note, [(who, value)]) for who in contenders}, first=number, slices=1))
            found = {who: answer() for who, answer in answers.items()}
            assert len(set(found.values())) == 1, f"{question.name}: {found}"
            assert found[OURS].rows, f"nothing has {question.field} {value}"
        self.notes.append(f"{question.name}: {found[OURS].rows:,} rows")
        return rounds[WARM:]

    # --- one station ---

    def _one_station(self, url: str) -> Iterator[Line]:
        count, times = self._sizes.messages, self._sizes.locals
        tell(f"a query at one station with {count:,} messages")
        room = postroom.open(url, create=False)
        station = Station(room._parts.network, ALONE, lambda: rooms.session(self._master), room._parts.owner)
        some = random.Random(1).choices(range(customers(count)), k=times + WARM)
        seconds = [self._local(station, "Customer", each) for each in some][WARM:]
        among = (median(seconds) * 1e3, min(seconds) * 1e3, max(seconds) * 1e3)
        name = f"at one station with {count:,} messages, by an index"
        yield Line(name, among[0], "ms", *among, "local", remark=f"{times} queries")
        rounds = [
            {OURS: self._local(station, "Customer", each), "no index": self._local(station, "Payer", each)}
            for each in some[: self._sizes.rounds]
        ]
        self._close(room)
        yield _faster("at one station, few rows, by an index", rounds, "no index", "index")

    @staticmethod
    def _local(station: Station, field: str, number: int) -> float:
        start = perf_counter()
        found = station.query("ORDER", {field: customer(number)})
        seconds = perf_counter() - start
        assert len(found), f"nothing has {field} {number}"
        return seconds

    # --- mail ---

    def _mail(self) -> Line:
        sizes = self._sizes.networks
        few, many = sizes[0], sizes[-1]
        tell(f"mail between {', '.join(f'{each:,}' for each in sizes)} stations")
        posts = {each: Post(self, each) for each in sizes}
        for post in posts.values():
            for move in post.moves(many):  # every station has had mail
                post.carry(*move)
        rounds = []
        for number in range(self._sizes.rounds + 1):
            actions: dict[str, tuple[Action, Arguments]] = {
                str(size): (post.carry, post.moves(self._sizes.pairs)) for size, post in posts.items()
            }
            rounds.append(run_round(actions, first=number))
        rounds = rounds[1:]  # the first was the warm-up
        for post in posts.values():
            self._close(post.room)
        ratio = cost_ratio(rounds, str(many), str(few))
        rates = [f"{1 / cost(rounds, str(size)):,.0f} a second at {size:,} stations" for size in sizes]
        self.notes.append(f"ship and get: {', '.join(rates)}")
        costs = {size: [one[str(size)] * 1e3 for one in rounds] for size in sizes}
        self.curves.append(curve("a ship and a get", "stations", "ms", costs))
        others = (f"{few:,} stations", cost(rounds, str(few)) * 1e3)
        return Line(f"ship and get, {many:,} stations", cost(rounds, str(many)) * 1e3, "ms", *ratio, "mail", *others)

    # --- rooms ---

    def _station(self, room: Postroom, name: str, node: str) -> Station:
        """Without a password: hashing a thousand is no part of what is measured."""
        room._parts.network.add_station(name, node, None)
        return Station(room._parts.network, name, lambda: rooms.session(self._master), room._parts.owner)

    def _fill(self, what: str, stations: Sequence[Station], messages: int) -> None:
        """Orders for all stations in turn: so a customer's are everywhere."""
        each, start = messages // len(stations), perf_counter()
        made = 0
        for station in stations:
            for first in range(0, each, CHUNK):
                count = min(CHUNK, each - first)
                station.create_many("ORDER", list(orders(made, count, messages)))
                made += count
        rate = made / (perf_counter() - start)
        self.notes.append(f"{what} of {made:,}: {rate:,.0f} created a second, while another process did the same")


def _filled_alone(folder: Path, sizes: Sizes) -> tuple[str, list[str]]:
    """One station with all messages; answers with where it is, and with what there is to say."""
    bench = StationBench(folder, sizes, "")
    room = bench._room("station", FORM, ".form")
    bench._fill("one station", [bench._station(room, ALONE, "control")], sizes.messages)
    room.close()
    return room.url, bench.notes


def _files(room: Postroom) -> list[Path]:
    """Of the control node, then of the others."""
    control = Path(room.url)
    return [control, *(control.with_name(f"node{node}.db") for node in range(NODES))]


@dataclass
class Post:
    """Stations on two nodes, with a message at each of the first ten, and mail between them."""

    bench: StationBench
    size: int
    room: Postroom = field(init=False)
    stations: list[Station] = field(init=False)

    def __post_init__(self) -> None:
        room = self.room = self.bench._room(f"mail-{self.size}", FORM, ".form")
        for node in ("even", "odd"):
            room.stations.add_node(node, str(Path(room.url).with_name(f"{node}.db")))
        nodes = ("even", "odd")
        self.stations = [self.bench._station(room, f"s{at}", nodes[at % 2]) for at in range(self.size)]
        self._places = {
            self.stations[at].create("ORDER", order): at for at, order in enumerate(orders(0, 10, self.size))
        }
        self._next = 0

    def moves(self, count: int) -> list[tuple[str, int, int]]:
        """Which message goes from where to where; every station in its turn gets one from the other node."""
        found = []
        keys = list(self._places)
        for _ in range(count):
            target = self._next = (self._next + 1) % self.size
            key = next(key for key in keys if self._places[key] % 2 != target % 2)
            keys.append(keys.pop(keys.index(key)))
            found.append((key, self._places[key], target))
            self._places[key] = target
        return found

    def carry(self, key: str, source: int, target: int) -> None:
        to = self.stations[target]
        self.stations[source].ship(key, to.name)
        got = to.get()
        assert got == [key], got


def _faster(name: str, rounds: Sequence[Round], other: str, bound: str | None) -> Line:
    """How many times the other one's seconds are ours."""
    ratio = cost_ratio(rounds, other, OURS)
    return Line(name, cost(rounds, OURS), "s", *ratio, bound, other, cost(rounds, other))


# --- what is asked ---


def orders(first: int, count: int, total: int) -> Iterator[dict[str, object]]:
    chance, many = random.Random(first), customers(total)
    for number in range(first, first + count):
        who = customer(number % many)
        yield {
            "Order No": f"O-{number:07d}",
            "Date": (date(2026, 1, 1) + timedelta(days=chance.randrange(365))).isoformat(),
            "Customer": who,
            "Region": REGIONS[chance.randrange(len(REGIONS))],
            "Payer": who,
            "Amount": chance.randrange(100_000),
            "Note": NOTE,
        }


def customers(total: int) -> int:
    """How many there are when there are so many orders."""
    return max(total // ALIKE, 10)


def customer(number: int) -> str:
    return f"customer {number:06d}"


def ask(station: Station, field: str, value: str) -> Callable[[], Found]:
    answer = station.query("ORDER", {field: value}, scope="global")
    return lambda: told([(each.key, each.place, each.body) for each in answer.kept])


def told(rows: Sequence[tuple[int, str, str]]) -> Found:
    keys, places, bodies = zip(*rows, strict=True)
    return Found(len(keys), sum(keys), sum(map(len, bodies)), len(set(places)))


# --- by hand ---

_SCHEMA = "key long, station string, body string"
_BY_HAND = """
SELECT m.key, substr(q.name, 9), m.body FROM messages m JOIN queues q ON q.id = m.queue
WHERE m.type = 'ORDER' AND m.state = 1 AND q.kind IN ('station', 'mailbox') AND json_extract(m.body, ?) = ?
"""


def by_hand(spark: SparkSession, files: Sequence[Path], field: str, value: str) -> Callable[[], Found]:
    """The same question as one would write it in PySpark: one task for each file, filtered where it is read."""
    names = [str(file) for file in files]

    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                connection = sqlite3.connect(f"file:{names[number]}?mode=ro", uri=True)
                rows = connection.execute(_BY_HAND, (f"$.{field}", value)).fetchall()
                connection.close()
                columns = list(zip(*rows, strict=True)) or [(), (), ()]
                kinds = (pyarrow.int64(), pyarrow.string(), pyarrow.string())
                arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
                yield pyarrow.RecordBatch.from_arrays(arrays, names=["key", "station", "body"])

    table = spark.range(0, len(names), 1, len(names)).mapInArrow(read, _SCHEMA).toArrow()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return lambda: told(rows)


# --- DuckDB ---


class Duck:
    """DuckDB in a process of its own: two SQLites in one process undo each other's locks."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self.missing: str = self._pool.submit(_attach, [str(file) for file in files]).result()

    def __enter__(self) -> Duck:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def ask(self, field: str, value: str) -> Callable[[], Found]:
        self._pool.submit(_ask_attached, field, value).result()
        return lambda: self._pool.submit(_told_attached).result()


_attached: list[Any] = []  # in DuckDB's process: the connection, its question, and the last answer


def _attach(files: Sequence[str]) -> str:
    """Attach the files; answers with why that cannot be, or with nothing."""
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        return "there is no duckdb here (pip install duckdb-extension-sqlite-scanner)"
    connection = duckdb.connect()
    try:
        try:
            carried = importlib.import_module("duckdb_extension_sqlite_scanner")
            (extension,) = Path(carried.__path__[0]).rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{extension}'")
        except ImportError:
            connection.execute("INSTALL sqlite")
            connection.execute("LOAD sqlite")
    except duckdb.Error as error:
        why = str(error).partition("\n")[0]
        return f"{why} (pip install duckdb-extension-sqlite-scanner)"
    # It takes tables of one name in several files for one table, and reads the first file five times (1.5.5).
    connection.execute("SET disabled_optimizers = 'common_subplan'")
    parts = []
    for number, file in enumerate(files):
        connection.execute(f"ATTACH '{file}' AS f{number} (TYPE sqlite, READ_ONLY)")
        parts.append(
            f"SELECT m.key, substr(q.name, 9), m.body FROM f{number}.messages m JOIN f{number}.queues q"
            " ON q.id = m.queue WHERE m.type = 'ORDER' AND m.state = 1 AND q.kind IN ('station', 'mailbox')"
            " AND json_extract_string(m.body, $path) = $value"
        )
    _attached[:] = [connection, " UNION ALL ".join(parts), []]
    return ""


def _ask_attached(field: str, value: str) -> None:
    connection, question, _ = _attached
    _attached[2] = connection.execute(question, {"path": f"$.{field}", "value": value}).fetchall()


def _told_attached() -> Found:
    return told(_attached[2])


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--messages", type=int)
    options, sys.argv[1:] = parser.parse_known_args()  # the other options are those of all programs here

    def make(folder: Path, quick: bool, master: str) -> Bench:
        sizes = QUICK if quick else FULL
        messages = sizes.messages if options.messages is None else options.messages
        return StationBench(folder, replace(sizes, messages=messages), master)

    return run(__doc__, make)


if __name__ == "__main__":
    sys.exit(main())
