"""Measure spheres: against workflows of `dbos` that are undone if they fail, from the death of an owner to the
compensations at its recipients, and what a look at very many active spheres costs.

Everyone works in one run, on one disk, in turns, in one process and thread. A missed bound is said in the table and is
no failure of the program.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep

import postroom
from contenders import Durability
from dbos_spheres import STEPS, DbosSpheres, Refused
from lines import Line, table
from machine import machine, versions
from postroom.limits import CHECK_SECONDS
from postroom.room import Postroom
from postroom.spheres import outcome
from postroom.spheres.heartbeat import Heart, beat
from postroom.store.sqlite import SqliteStore
from postroom.store.transaction import Transaction
from rounds import Round, cost, cost_ratio, run_round

OURS, DBOS, DBOS_WAL = "postroom", "dbos", "dbos on WAL"
SPEED_MIN, WAL_ABOVE, DEATH_MAX, GROWTH_MAX, INTERVAL_MAX = 5.0, 1.0, 2.0, 2.0, 1.0
BODY_BYTES = 100
HEARTBEAT = 2_000_000  # microseconds
CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    warm_up: int
    spheres: int  # of each contender in each round; half of them fail
    trials: int  # of each way to die
    check: float
    active: tuple[int, int]
    owners: int  # of the larger number
    looks: int


FULL = Sizes(5, 40, 100, 8, 1.0, (1_000, 100_000), 1_000, 7)
QUICK = Sizes(2, 6, 20, 1, 0.5, (100, 1_000), 100, 3)


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else FULL
    start = perf_counter()
    build = Path("build")
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as name:
        folder = Path(name).absolute()
        durability: dict[str, Durability] = {}
        lines = [*speed(folder, sizes, durability), *deaths(folder, sizes), *growth(folder, sizes)]
    for fact, value in {**machine(), **versions(), DBOS: version("dbos")}.items():
        print(f"{fact}: {value}")
    for who, kept in durability.items():
        print(f"{who}: synchronous {kept.synchronous} (FULL), journal_mode {kept.journal_mode}")
    missed = sum(not line.met for line in lines)
    print(f"\n{table(lines)}\n")
    print(f"{len(lines) - missed} of {len(lines)} bounds met, {missed} missed; {perf_counter() - start:.0f} s")
    if options.json is not None:
        figures = {"machine": machine(), "lines": [line.as_dict() for line in lines]}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


# --- three sends, committed and aborted ---


def speed(folder: Path, sizes: Sizes, durability: dict[str, Durability]) -> Iterator[Line]:
    """Against `dbos` as it comes, with a rollback journal, and on files with a write-ahead log like ours."""
    for peer, mode, bound in ((DBOS, None, (">=", SPEED_MIN)), (DBOS_WAL, "WAL", (">", WAL_ABOVE))):
        _tell(f"three sends, against {peer}")
        rounds = [
            _speed_round(folder / "speed", peer, mode, sizes, number, durability) for number in range(sizes.rounds)
        ]
        ratio = cost_ratio(rounds, peer, OURS)
        ours, others = 1 / cost(rounds, OURS), 1 / cost(rounds, peer)
        yield Line("spheres of three sends, half aborted", ours, "/s", *ratio, *bound, peer, others)


def _speed_round(
    place: Path, peer: str, mode: str | None, sizes: Sizes, number: int, durability: dict[str, Durability]
) -> Round:
    """In new files, so that no round inherits from another."""
    place.mkdir()
    room = _room(place)
    store, other = room.store, DbosSpheres(place, mode)
    assert isinstance(store, SqliteStore)
    pragma = store.session.connection.pragma
    durability[OURS] = Durability(pragma("synchronous"), pragma("journal_mode"), pragma("wal_autocheckpoint"))
    durability[peer] = other.durability
    assert {each.synchronous for each in durability.values()} == {2}, durability
    bodies, undos = [_body("do", each) for each in STEPS], [_body("undo", each) for each in STEPS]

    def book(fails: bool) -> None:
        with suppress(Refused), room.sphere() as sphere:
            for queue, body, undo in zip(STEPS, bodies, undos, strict=True):
                sphere.send(queue, body, compensation=undo)
            if fails:
                raise Refused

    def book_there(fails: bool) -> None:
        other.book(bodies, undos, fails)

    for turn in range(sizes.warm_up):
        book(turn % 2 == 1)
        book_there(turn % 2 == 1)
    fates = [(turn % 2 == 1,) for turn in range(sizes.spheres)]
    done = run_round({OURS: (book, fates), peer: (book_there, fates)}, first=number, slices=10)
    half = (sizes.warm_up + sizes.spheres) // 2
    assert (len(room.spheres("COMMITTED")), len(room.spheres("ABORTED"))) == (half, half)
    assert all(room.accept(queue).queues[0].unprocessed == half for queue in STEPS)
    assert other.steps() == 9 * half
    other.close()
    room.close()
    shutil.rmtree(place)
    return done


# --- an owner dies ---


def deaths(folder: Path, sizes: Sizes) -> Iterator[Line]:
    place = folder / "deaths"
    place.mkdir()
    room, chance = _room(place), random.Random(7)
    file, check = str(place / "room.db"), sizes.check
    with _program("check", file, str(check)) as engine:
        _hear(engine)
        for measure, role in (("the owner's process is killed", "kill"), ("only the owner's thread ends", "thread")):
            _tell(f"{measure}, {sizes.trials} times")
            taken = [_death(room, file, role, check, chance) for _ in range(sizes.trials)]
            parts = sorted(each / check for each in taken)
            about = (max(taken), "s", parts[-1], parts[0], parts[-1], "<", DEATH_MAX, "a check every", check)
            yield Line(f"{measure}, to compensations", *about)
        engine.kill()
    room.close()


def _death(room: Postroom, file: str, role: str, check: float, chance: random.Random) -> float:
    """Seconds from the end of an owner until every recipient has the compensation; it had its message before."""
    with _program("own", file, str(check * 0.4)) as owner:
        _hear(owner)
        for queue in STEPS:
            assert room.receive(queue, wait=10).message is not None
        sleep(check * (1 + chance.random()))  # at any point between two looks
        if role == "kill":
            died = monotonic()
            owner.kill()
        else:
            _say(owner)
            died = float(_hear(owner))
        for queue in STEPS:
            message = room.receive(queue, wait=10 * check).message
            assert message is not None, f"{queue} has no compensation"
            assert message.body == _body("undo", queue)
        seconds = monotonic() - died
        assert (owner.poll() is None) == (role == "thread")
        owner.kill()
    return seconds


def own(file: str, heartbeat: str) -> None:
    """An owner, in a process of its own: its thread has a sphere, and ends when told so. The process lives on."""
    import threading

    room, told = postroom.open(file), threading.Event()

    def work() -> None:
        sphere = room.sphere(heartbeat=float(heartbeat))
        kept.append(sphere)  # else it would be aborted because it was let go
        for queue in STEPS:
            sphere.send(queue, _body("do", queue), compensation=_body("undo", queue))
        print("sent", flush=True)
        told.wait()

    kept: list[object] = []
    thread = threading.Thread(target=work)
    thread.start()
    sys.stdin.readline()
    told.set()
    thread.join()
    print(monotonic(), flush=True)
    sys.stdin.readline()


def check(file: str, seconds: str) -> None:
    """An engine, in a process of its own."""
    engine = postroom.open(file).compensator(float(seconds))
    print("ready", flush=True)
    engine.run()


# --- very many active spheres ---


def growth(folder: Path, sizes: Sizes) -> Iterator[Line]:
    few, many = sizes.active
    for owners in (1, sizes.owners):
        fewer = max(1, owners * few // many)
        small, large = (_filled(folder, count, of) for count, of in ((few, fewer), (many, owners)))
        rounds: list[Round] = []
        for number in range(sizes.looks):
            turns = {str(few): (small, few), str(many): (large, many)}
            names = list(turns)[:: 1 if number % 2 else -1]
            rounds.append({name: _look(*turns[name]) for name in names})
        for room, _ in (small, large):
            room.close()
        warm = rounds[1:]
        ratio = cost_ratio(warm, str(many), str(few))
        of = "one owner" if owners == 1 else f"{owners:,} owners"
        about = (f"{few:,} active", cost(warm, str(few)) * 1e6)
        name = f"a check of {many:,} active spheres of {of}"
        yield Line(name, cost(warm, str(many)) * 1e6, "µs", *ratio, "<=", GROWTH_MAX, *about)
        parts = [each[str(many)] * many / CHECK_SECONDS for each in rounds]
        seconds = median(parts) * CHECK_SECONDS
        yield Line(name, seconds, "s", max(parts), min(parts), max(parts), "<", INTERVAL_MAX, "interval", CHECK_SECONDS)


def _filled(folder: Path, count: int, owners: int) -> tuple[Postroom, list[Heart]]:
    _tell(f"{count:,} active spheres of {owners:,} owners")
    place = Path(tempfile.mkdtemp(dir=folder))
    room, hearts = _room(place), [Heart() for _ in range(owners)]

    def work(tx: Transaction, first: int) -> None:
        for number in range(first, min(first + CHUNK, count)):
            id = f"{number * 7919 % 1_000_003:016x}"
            tx.spheres.add(outcome.SPHERES.start(tx, id), id, hearts[number % owners].owner, HEARTBEAT)

    for first in range(0, count, CHUNK):
        room.store.transact("bench", partial(work, first=first))
    room.close()
    # Closed and opened again: the log of so many inserts is no part of what comes next.
    return postroom.open(place / "room.db", create=False), hearts


def _look(filled: tuple[Postroom, list[Heart]], count: int) -> float:
    """Seconds a sphere of one check; all owners live, and have just said so."""
    room, hearts = filled
    room.store.transact("bench", lambda tx: beat(tx, hearts))
    engine = room.compensator(CHECK_SECONDS)
    engine.announce()
    gc.collect()
    start = perf_counter()
    checked = engine.check()
    seconds = perf_counter() - start
    assert (checked.spheres, checked.aborted) == (count, 0), checked
    return seconds / count


# --- all of them ---


def _room(place: Path) -> Postroom:
    room = postroom.open(place / "room.db")
    for queue in STEPS:
        room.create_queue(queue)
    return room


def _body(what: str, queue: str) -> str:
    return f"{what} {queue} ".ljust(BODY_BYTES, ".")


@contextmanager
def _program(*words: str) -> Iterator[subprocess.Popen[str]]:
    """This file again, in another role."""
    command = [sys.executable, __file__, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "it has ended"
    return line


def _say(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast it is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    return parser.parse_args()


def _tell(what: str) -> None:
    sys.stderr.write(f"… {what}\n")


ROLES: dict[str, Callable[[str, str], None]] = {"own": own, "check": check}

if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in ROLES:
        ROLES[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main())
