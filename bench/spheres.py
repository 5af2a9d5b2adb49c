"""Measure spheres: against workflows of `dbos` that are undone if they fail, from the death of an owner to the
compensations at its recipients, and what a look at very many active spheres costs.

Everyone works in one run, on one disk, in turns, in one process and thread. A missed bound is said in the table and is
no failure of the program.
"""

from __future__ import annotations

import gc
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter, sleep

import postroom
from contenders import Durability
from curves import Curve, curve
from dbos_spheres import STEPS, DbosSpheres, Refused
from lines import Line
from postroom.engine.machine import SPHERES
from postroom.limits import CHECK_SECONDS
from postroom.room import Postroom
from postroom.spheres.heartbeat import Heart, beat
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite.store import SqliteStore
from program import Bench, run, tell
from rounds import Round, cost, cost_ratio, run_round

OURS, DBOS, DBOS_WAL = "postroom", "dbos", "dbos on WAL"
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
    active: tuple[int, ...]
    owners: int  # of the largest number
    looks: int


FULL = Sizes(5, 40, 100, 8, 1.0, (1_000, 10_000, 100_000), 1_000, 7)
QUICK = Sizes(2, 6, 20, 1, 0.5, (100, 1_000), 100, 3)


class SphereBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        folder, sizes = self._folder, self._sizes
        durability: dict[str, Durability] = {}
        yield from speed(folder, sizes, durability)
        self.notes += [f"{who}: {kept.told()}" for who, kept in durability.items()]
        self.notes.append(f"{sizes.rounds} rounds of {sizes.spheres} spheres; {sizes.trials} deaths of each kind")
        yield from deaths(folder, sizes)
        yield from growth(folder, sizes, self.curves)


# --- three sends, committed and aborted ---


def speed(folder: Path, sizes: Sizes, durability: dict[str, Durability]) -> Iterator[Line]:
    """Against `dbos` as it comes, with a rollback journal, and on files with a write-ahead log like ours."""
    for peer, mode, bound in ((DBOS, None, "dbos"), (DBOS_WAL, "WAL", "dbos-wal")):
        tell(f"three sends, against {peer}")
        rounds = [
            _speed_round(folder / "speed", peer, mode, sizes, number, durability) for number in range(sizes.rounds)
        ]
        ratio = cost_ratio(rounds, peer, OURS)
        ours, others = 1 / cost(rounds, OURS), 1 / cost(rounds, peer)
        yield Line("three sends, half aborted", ours, "/s", *ratio, bound, peer, others)


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
    assert (len(room.spheres.all("COMMITTED")), len(room.spheres.all("ABORTED"))) == (half, half)
    assert all(room.queues.accept(queue).queues[0].unprocessed == half for queue in STEPS)
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
            tell(f"{measure}, {sizes.trials} times")
            taken = [_death(room, file, role, check, chance) for _ in range(sizes.trials)]
            parts = sorted(each / check for each in taken)
            about = (max(taken), "s", parts[-1], parts[0], parts[-1], "death", "the interval of checks", check)
            yield Line(f"{measure}, to its recipients' compensations", *about, remark="the longest")
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
    engine = postroom.open(file).spheres.compensator(float(seconds))
    print("ready", flush=True)
    engine.run()


# --- very many active spheres ---


def growth(folder: Path, sizes: Sizes, curves: list[Curve]) -> Iterator[Line]:
    few, many = sizes.active[0], sizes.active[-1]
    for owners in (1, sizes.owners):
        filled = {count: _filled(folder, count, max(1, owners * count // many)) for count in sizes.active}
        rounds: list[Round] = []
        for number in range(sizes.looks):
            turns = list(filled.items())[:: 1 if number % 2 else -1]
            rounds.append({str(count): _look(one, count) for count, one in turns})
        for room, _ in filled.values():
            room.close()
        warm = rounds[1:]
        ratio = cost_ratio(warm, str(many), str(few))
        of = "one owner" if owners == 1 else f"{owners:,} owners"
        costs = {count: [one[str(count)] * 1e6 for one in warm] for count in sizes.active}
        curves.append(curve(f"a sphere in a check, {of}", "active spheres", "µs", costs))
        about = (f"{few:,} active", cost(warm, str(few)) * 1e6)
        name = f"a check of {many:,} active spheres of {of}"
        yield Line(f"{name}, each", cost(warm, str(many)) * 1e6, "µs", *ratio, "check-growth", *about)
        parts = [each[str(many)] * many / CHECK_SECONDS for each in rounds]
        among = (max(parts) * CHECK_SECONDS, "s", max(parts), min(parts), max(parts))
        yield Line(name, *among, "check", "the interval of checks", CHECK_SECONDS, remark="the longest")


def _filled(folder: Path, count: int, owners: int) -> tuple[Postroom, list[Heart]]:
    tell(f"{count:,} active spheres of {owners:,} owners")
    place = Path(tempfile.mkdtemp(dir=folder))
    room, hearts = _room(place), [Heart() for _ in range(owners)]

    def work(tx: Transaction, first: int) -> None:
        for number in range(first, min(first + CHUNK, count)):
            id = f"{number * 7919 % 1_000_003:016x}"
            tx.spheres.add(SPHERES.start(tx, id), id, hearts[number % owners].owner, HEARTBEAT)

    for first in range(0, count, CHUNK):
        room.store.transact("bench", partial(work, first=first))
    room.close()
    # Closed and opened again: the log of so many inserts is no part of what comes next.
    return postroom.open(place / "room.db", create=False), hearts


def _look(filled: tuple[Postroom, list[Heart]], count: int) -> float:
    """Seconds a sphere of one check; all owners live, and have just said so."""
    room, hearts = filled
    room.store.transact("bench", lambda tx: beat(tx, hearts))
    engine = room.spheres.compensator(CHECK_SECONDS)
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
        room.queues.create(queue)
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


ROLES: dict[str, Callable[[str, str], None]] = {"own": own, "check": check}

if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in ROLES:
        ROLES[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(run(__doc__, lambda folder, quick, master: SphereBench(folder, QUICK if quick else FULL, master)))
