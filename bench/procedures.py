"""Measure procedures: a three-way join over many stations against the same in CLIPS, and how the cost of a message
grows with the working sets that wait.

All in one run, in turns, Spark warm. Both begin with messages that lie in their stores and have not been looked at, and
commit as often. A missed bound is said in the table and is no failure of the program.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from clips_join import ClipsJoin, Message
from curves import curve
from lines import Line
from postroom import spark as rooms
from postroom.room import Postroom
from program import Bench, run, tell
from rounds import Round, cost, cost_ratio

TYPES = """\
type ORDER
| Order No: _______ Customer: __________ KEY: _______ |
| Amount: _________ Approved: __________ |
field Order No int required
field Customer string required
field KEY key automatic
field Amount decimal required
field Approved string free
type DELIVERY NOTE
| Order No: _______ Goods: _____________ KEY: _______ |
| Quantity: _______ |
field Order No int required
field Goods string required
field KEY key automatic
field Quantity int free
type INVOICE
| Order No: _______ Amount: ____________ KEY: _______ |
| Terms: __________ |
field Order No int required
field Amount decimal required
field KEY key automatic
field Terms string free
"""
PROCEDURE = """\
procedure approve_{station} at {station}
  precondition order : ORDER
  precondition note : DELIVERY NOTE
    Order No: ?order.Order No
  precondition invoice : INVOICE
    Order No: ?order.Order No
    Amount: ?order.Amount
  action approve on order
    Approved: "yes"
  destination on on order copy 0 ship accounts
"""
ACCOUNTS = "accounts"
OURS, CLIPS = "postroom", "CLIPS"
KEYS = 100_000


@dataclass(frozen=True, slots=True)
class Sizes:
    orders: int
    stations: int
    rounds: int  # of the join
    turns: int  # of the growth
    step: int  # messages of a commit
    waiting: tuple[int, ...]  # working sets
    fresh: int  # orders that come while these wait


FULL = Sizes(33_333, 100, 7, 3, 20_000, (100, 3_000, 100_000), 2_000)
QUICK = Sizes(600, 10, 2, 2, 500, (100, 1_000), 100)


class ProcedureBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        tell("starting Spark")
        rooms.session(self._master)
        self._office("warm", 2, _messages(200, 2, 0))  # and what it does first takes longer
        self._run(self._warm, "warm", 1_000)
        self._close(self._warm)
        yield from self._join()
        yield self._growth()

    # --- the join ---

    def _join(self) -> Iterator[Line]:
        sizes, rounds = self._sizes, list[Round]()
        count = 3 * sizes.orders
        for number in self._rounds(sizes.rounds, share=0.75):
            tell(f"{count:,} messages at {sizes.stations} stations, round {number + 1} of {sizes.rounds}")
            messages = _messages(sizes.orders, sizes.stations, number)
            turns = [(OURS, self._ours), (CLIPS, self._clips)]
            if number % 2:
                turns.reverse()
            rounds.append({name: act(messages) / count for name, act in turns})
        ours, ratio = cost(rounds, OURS), cost_ratio(rounds, CLIPS, OURS)
        speeds = [1 / one[OURS] for one in rounds]
        name = f"three-way join, {count:,} messages, {sizes.stations} stations"
        yield Line(name, 1 / ours, "/s", 1 / ours, min(speeds), max(speeds), "join")
        yield Line(name, 1 / ours, "/s", *ratio, "clips", CLIPS, 1 / cost(rounds, CLIPS))
        self.notes.append(f"{len(rounds)} rounds, {sizes.step:,} messages a commit")

    def _ours(self, messages: list[Message]) -> float:
        room = self._office("join", self._sizes.stations, messages)
        start = perf_counter()
        room.run_until_idle(master=self._master, step_messages=self._sizes.step)
        seconds = perf_counter() - start
        assert len(room.stations._station(ACCOUNTS).mail()) == len(messages) // 3
        assert room.stations.waiting() == []
        self._close(room)
        return seconds

    def _clips(self, messages: list[Message]) -> float:
        place = self._folder / "clips"
        place.mkdir()
        join = ClipsJoin(place / "clips.db")
        join.fill(messages)
        start = perf_counter()
        while join.step(self._sizes.step):
            pass
        seconds = perf_counter() - start
        assert join.count() == (len(messages) // 3, 2 * len(messages) // 3)
        join.close()
        shutil.rmtree(place)
        return seconds

    # --- growth ---

    def _growth(self) -> Line:
        """The same orders become complete while few or many others wait at the station."""
        few, many = self._sizes.waiting[0], self._sizes.waiting[-1]
        fresh, rounds = self._sizes.fresh, list[Round]()
        desks = {}
        for waiting in self._sizes.waiting:
            tell(f"{waiting:,} working sets wait")
            room = self._office(f"waiting{waiting}", 1, _messages(waiting, 1, 7, types=("ORDER", "INVOICE")))
            room.run_until_idle(master=self._master)
            desks[waiting] = room
        for number in range(self._sizes.turns + 1):
            done: Round = {}
            for waiting, room in desks.items():
                start = 1_000_000 + number * fresh
                _create(room, _messages(fresh, 1, number, first=start))
                began = perf_counter()
                room.run_until_idle(master=self._master, step_messages=500)
                done[str(waiting)] = (perf_counter() - began) / (3 * fresh)
            rounds.append(done)
        for room in desks.values():
            self._close(room)
        rounds = rounds[1:]
        ratio = cost_ratio(rounds, str(many), str(few))
        costs = {waiting: [one[str(waiting)] * 1e6 for one in rounds] for waiting in desks}
        self.curves.append(curve("a message of the join", "working sets that wait", "µs", costs))
        about = (f"{few:,} wait", cost(rounds, str(few)) * 1e6)
        name = f"a message while {many:,} sets wait"
        return Line(name, cost(rounds, str(many)) * 1e6, "µs", *ratio, "growth", *about)

    # --- rooms ---

    def _office(self, name: str, stations: int, messages: list[Message]) -> Postroom:
        names = [f"desk_{number}" for number in range(stations)]
        text = TYPES + "".join(PROCEDURE.format(station=each) for each in names)
        room = self._room(name, text, ".form", (*names, ACCOUNTS))
        _create(room, messages)
        self._warm = room
        return room


def _create(room: Postroom, messages: list[Message]) -> None:
    by_station: dict[str, list[Message]] = {}
    for each in messages:
        by_station.setdefault(each[1], []).append(each)
    for name, some in by_station.items():
        station = room.stations._station(name)
        for start in range(0, len(some), 300):  # types come mixed, some hundreds at a time
            for type in ("ORDER", "DELIVERY NOTE", "INVOICE"):
                given = [said for _, _, kind, said in some[start : start + 300] if kind == type]
                if given:
                    station.create_many(type, given)


def _messages(
    orders: int,
    stations: int,
    seed: int,
    first: int = 0,
    types: tuple[str, ...] = ("ORDER", "DELIVERY NOTE", "INVOICE"),
) -> list[Message]:
    """Order, note and invoice of each order at one station, in any order."""
    draw = random.Random(seed)
    found: list[tuple[str, str, dict[str, Any]]] = []
    for number in range(first, first + orders):
        station, amount = f"desk_{number % stations}", f"{draw.randint(1, 999_999) / 100:.2f}"
        said = {
            "ORDER": {"Order No": number, "Customer": f"customer {number % 777}", "Amount": amount},
            "DELIVERY NOTE": {"Order No": number, "Goods": f"goods {number % 99}", "Quantity": number % 50},
            "INVOICE": {"Order No": number, "Amount": amount, "Terms": "30 days net"},
        }
        found += [(station, type, said[type]) for type in types]
    draw.shuffle(found)
    return [(KEYS + place, *each) for place, each in enumerate(found)]


def make(folder: Path, quick: bool, master: str) -> ProcedureBench:
    return ProcedureBench(folder, QUICK if quick else FULL, master)


if __name__ == "__main__":
    sys.exit(run(__doc__, make))
