"""Owners of spheres and compensation engines, killed or failed at every fault point: each sphere has one end, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from tests.spheres.invariants import check as check_invariants

import postroom
from postroom import faults
from postroom.errors import EntityUnknown
from postroom.room import Postroom

from .sphere_workload import CHECK, HEARTBEAT, ORDERS, Bank
from .test_kill import ROOT, check_counts, urls_of

#: How often the owner's program passes each of them, more or less: the first, some between, and the last.
OWNER = {
    "machine": (1, 2, 3),
    "sphere": (1, 2, 4),
    "sphere-send": (1, 2, 5, 8, 12),
    "sphere-require": (1,),
    "sphere-join": (1, 2),
    "sphere-committing": (1,),
    "sphere-committed": (1,),
    "sphere-aborting": (1, 2, 3, 4),
    "compensate": (1, 2, 3),
    "acknowledge": (1, 2),
    "settle": (1,),
    "heartbeat": (1, 2, 4),
    "check": (1,),
}
ENGINE = {"check": (1,), "sphere-aborting": (1, 2, 4), "compensate": (1, 2, 3, 5)}
Point = tuple[str, int]


def points(times: dict[str, tuple[int, ...]]) -> list[Point]:
    return [(f"{label}.{moment}", nth) for label, many in times.items() for moment in faults.MOMENTS for nth in many]


def run(what: str, url: str, folder: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.sphere_workload", what, url, str(folder)],
        cwd=ROOT,
        env={**os.environ, **({"POSTROOM_FAULT": fault} if fault else {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


def stopped(what: str, url: str, folder: Path, point: str, action: str, nth: int) -> str:
    """Run a program into a fault; answers with what it said."""
    child = run(what, url, folder, f"{point}:{action}:{nth}")
    if action == "kill":
        assert child.returncode == -signal.SIGKILL, f"not reached: {child.stdout[-300:]}{child.stderr[-2000:]}"
    elif point.startswith("heartbeat"):
        assert child.returncode in (0, 3), f"a beat may fail, the next one does not: {child.stderr[-2000:]}"
    elif point in ("sphere-aborting.begun", "sphere-aborting.committing") or point.startswith("compensate"):
        assert child.returncode in (0, 3), f"it is aborted a little later: {child.stderr[-2000:]}"
    else:
        assert child.returncode == 3, f"{child.stdout[-300:]}{child.stderr[-2000:]}"
    return child.stdout


def check(url: str, folder: Path, said: str) -> None:
    """A fresh engine brings everything to its end; what was told to the owner is so."""
    with postroom.open(url) as room:
        room.compensate(CHECK)
        room.settle(Bank(folder))
        told = check_invariants(room, over=True)
        assert [sphere for sphere in room.spheres() if sphere.state not in ("COMMITTED", "ABORTED")] == []
        for line in said.splitlines():
            word, *rest = line.split()
            assert word != "bad:", line
            if word == "ok" and rest[0] in ("COMMITTED", "ABORTED"):
                assert told.spheres[rest[1]] == rest[0], line
        committed = {id for id, state in told.spheres.items() if state == "COMMITTED"}
        assert committed <= {"good"}, committed
        assert Bank(folder).paid() == committed, "the bank follows the token"
        assert Bank(folder).tpc_recover() == []
        check_machine(room, "ok moved order" in said)
        again = room.compensate(CHECK)
        assert (again.aborted, again.compensated, again.parked) == (0, 0, 0)
        assert check_invariants(room) == told, "nothing is compensated twice"
        check_counts(room)
        room.sphere(heartbeat=HEARTBEAT).abort("only to see that another works")
        check_invariants(room, over=True)


def check_machine(room: Postroom, moved: bool) -> None:
    orders = room.machine(*ORDERS)
    try:
        state = orders.state("order")
    except EntityUnknown:
        assert not moved
        return
    assert state == "PAID" if moved else state in ("NEW", "PAID")
    assert [len(orders.entities(each)) for each in ORDERS[0]] == [each == state for each in ORDERS[0]]


def at_every(some: list[Point], one: Callable[[int, str, int], None]) -> None:
    def at(number: int) -> None:
        point, nth = some[number]
        try:
            one(number, point, nth)
        except BaseException as error:
            raise AssertionError(f"at {point}:{nth}: {error}") from error

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(at, range(len(some))))


RUNS = list(product(["sqlite", "postgres"], ["kill", "raise"]))


def runs(times: dict[str, tuple[int, ...]], every: int) -> list[object]:
    """All points take minutes; a slice of them goes through each kind of run in between."""
    all = points(times)
    some = [pytest.param(*run, all[at * every // 4 :: every], id="-".join(run)) for at, run in enumerate(RUNS)]
    return [*some, *(pytest.param(*run, all, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS)]


@pytest.mark.parametrize(("kind", "action", "some"), runs(OWNER, 24))
def test_at_every_fault_point_of_an_owner_its_spheres_have_one_end(
    kind: str, action: str, some: list[Point], tmp_path: Path, postgres_server: str
) -> None:
    urls = urls_of(kind, len(some), tmp_path, postgres_server)

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        check(urls[number], folder, stopped("own", urls[number], folder, point, action, nth))

    at_every(some, one)


@pytest.mark.parametrize(("kind", "action", "some"), runs(ENGINE, 12))
def test_an_engine_that_dies_at_any_point_is_replaced_and_nothing_is_compensated_twice(
    kind: str, action: str, some: list[Point], tmp_path: Path, postgres_server: str
) -> None:
    urls = urls_of(kind, len(some), tmp_path, postgres_server)

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        left = run("leave", urls[number], folder)
        assert left.stdout == "left\n", left.stderr
        stopped("engine", urls[number], folder, point, action, nth)
        check(urls[number], folder, "")
        with postroom.open(urls[number]) as room:
            assert sorted(message.body for message in room.info("flight")) == [
                f"cancel {id}" for id in ("committing", "one", "parked", "three", "two")
            ]
            assert room.info("car").messages == []
            assert len(room.info("hotel").messages) == 5

    at_every(some, one)


def test_every_commit_of_spheres_is_among_the_points() -> None:
    assert set(faults.SPHERE_LABELS) == set(OWNER)


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """A gate that cannot close is no gate."""
    url = str(tmp_path / "room.db")
    done = run("own", url, tmp_path / "bank")
    assert done.stdout.endswith("finished\n"), done.stderr
    check(url, tmp_path / "bank", done.stdout)
    with pytest.raises(AssertionError, match="ok COMMITTED bad"):
        check(url, tmp_path / "bank", "ok COMMITTED bad")
    (tmp_path / "bank" / "forged.paid").write_text("bad")
    with pytest.raises(AssertionError, match="the bank follows"):
        check(url, tmp_path / "bank", done.stdout)
    (tmp_path / "bank" / "forged.paid").unlink()
