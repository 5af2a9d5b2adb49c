"""Measure the processor time of Postroom beside that of who does the same: by process, and the seconds of both.

Five arcs beside the same job by hand in PySpark, spheres beside `dbos`, the three-way join beside CLIPS. It is for
``docs/profile.md``, which says what bounds a ratio: seconds without processor time are those of the disk.

python bench/peers.py                minutes
python bench/peers.py spheres        one case
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter

import flows
import postroom
import procedures
from dbos_spheres import STEPS, DbosSpheres, Refused
from postroom import spark as rooms
from processors import Spent


@contextmanager
def told(who: str, count: int, unit: str) -> Iterator[None]:
    """Say what is spent within, in microseconds of each of so many."""
    before, began = Spent.now(), perf_counter()
    yield
    seconds, spent = perf_counter() - began, Spent.now().since(before)
    said = ", ".join(f"{part} {each / count * 1e6:.1f}" for part, each in spent.items() if each > 0)
    print(f"{who}: {said} µs {unit}; {count / seconds:,.0f}/s", flush=True)


def arcs(folder: Path, count: int, master: str) -> None:
    rooms.session(master)
    bench = flows.FlowBench(folder, flows.QUICK, master)
    events = flows.trades(count)
    published = bench._published(events)
    for number in range(2):
        file = Path(shutil.copy(published, folder / f"ours-{number}.db"))
        room = postroom.open(file, create=False)
        with told("five arcs, ours" if number else "warming up", count, "an event"):
            room.engine.run_totals(until_idle=True, master=master)
        room.close()
        file = Path(shutil.copy(published, folder / f"hand-{number}.db"))
        room = postroom.open(file, create=False)
        for sink in flows.SINKS:
            room.queues.create(f"Hand{sink}")
        with told("five arcs, by hand" if number else "warming up", count, "an event"):
            flows.by_hand(room.url, master)
        rows = flows.expected(events)
        if number:
            _sent(room, [f"{sink}-again" for sink in flows.SINKS], rows, count)
        room.close()


def _sent(room: postroom.Postroom, sinks: list[str], rows: list[int], count: int) -> None:
    """What both must do at the least: as many messages, each sink in one commit."""
    bodies = [['{"issue":"I1","price":100,"volume":500}'] * each for each in rows]
    for sink in sinks:
        room.queues.create(sink)
    with told(f"its {sum(rows) / count:.1f} messages an event, sent from memory", count, "an event"):
        for sink, some in zip(sinks, bodies, strict=True):
            room.send_many(sink, some, format="json")


def spheres(folder: Path, count: int, master: str) -> None:
    room = postroom.open(folder / "room.db")
    for queue in STEPS:
        room.queues.create(queue)
    bodies, undos = ["b" * 100] * 3, ["u" * 100] * 3

    def book(fails: bool) -> None:
        with suppress(Refused), room.sphere() as sphere:
            for queue, body, undo in zip(STEPS, bodies, undos, strict=True):
                sphere.send(queue, body, compensation=undo)
            if fails:
                raise Refused

    for fails, end in ((False, "committed"), (True, "aborted")):
        _booked(f"sphere, {end}, ours", book, fails, count)
    room.close()
    for mode in (None, "WAL"):
        place = folder / str(mode)
        place.mkdir()
        other = DbosSpheres(place, mode)
        for fails, end in ((False, "committed"), (True, "aborted")):
            who = f"sphere, {end}, dbos on {other.durability.journal_mode}"
            _booked(who, partial(other.book, bodies, undos), fails, count // 4)
        other.close()


def _booked(who: str, book: Callable[[bool], None], fails: bool, count: int) -> None:
    for _ in range(count // 10):
        book(fails)
    with told(who, count, "each"):
        for _ in range(count):
            book(fails)


def join(folder: Path, count: int, master: str) -> None:
    sizes = procedures.FULL
    bench = procedures.ProcedureBench(folder, sizes, master)
    rooms.session(master)
    messages = procedures._messages(count // 3, sizes.stations, 0)
    for warm in (False, True):
        for who, act in (("ours", bench._ours), ("CLIPS", bench._clips)):
            with told(f"three-way join, {who}, with filling{'' if warm else ', not warm'}", len(messages), "a message"):
                act(messages)


CASES: dict[str, tuple[Callable[[Path, int, str], None], int]] = {
    "arcs": (arcs, 100_000),
    "spheres": (spheres, 400),
    "join": (join, 30_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--count", type=int, help="of messages or spheres")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    options = parser.parse_args()
    for name in options.cases or CASES:
        case, count = CASES[name]
        folder = Path(tempfile.mkdtemp(prefix="peers-"))
        try:
            case(folder, options.count or count, options.master)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
