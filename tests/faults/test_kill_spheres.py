"""Owners of spheres and compensation engines, killed or failed at every fault point: each sphere has one end, once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import forked
from tests.faults.sphere_workload import CHECK, HEARTBEAT, ORDERS, Bank, engine, leave, own
from tests.spheres.invariants import check as check_invariants

import postroom
from postroom import faults
from postroom.errors import EntityUnknown
from postroom.room import Postroom

from .test_kill import check_counts

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
    "compensate": (1, 2),
    "acknowledge": (1, 2),
    "settle": (1,),
    "heartbeat": (1, 2, 4),
    "check": (1,),
    "watch": (1, 2),
}
ENGINE = {"check": (1,), "sphere-aborting": (1, 2, 4), "compensate": (1, 2, 3, 5)}
Point = tuple[str, int]


def points(times: dict[str, tuple[int, ...]]) -> list[Point]:
    return [(f"{label}.{moment}", nth) for label, many in times.items() for moment in faults.MOMENTS for nth in many]


def run(work: Callable[[str, Path], None], url: str, folder: Path, fault: str = "") -> forked.Ended:
    folder.mkdir(exist_ok=True)
    return forked.run(work, url, folder, folder=folder, fault=fault)


def stopped(work: Callable[[str, Path], None], url: str, folder: Path, point: str, action: str, nth: int) -> str:
    """Run a program into a fault; answers with what it said."""
    child = run(work, url, folder, f"{point}:{action}:{nth}")
    if action == "kill":
        assert child.code == -signal.SIGKILL, f"not reached: {child.said[-300:]}{child.complaints[-2000:]}"
    elif point.startswith("heartbeat"):
        assert child.code in (0, 3), f"a beat may fail, the next one does not: {child.complaints[-2000:]}"
    elif point in ("sphere-aborting.begun", "sphere-aborting.committing") or point.startswith("compensate"):
        assert child.code in (0, 3), f"it is aborted a little later: {child.complaints[-2000:]}"
    else:
        assert child.code == 3, f"{child.said[-300:]}{child.complaints[-2000:]}"
    return child.said


def check(url: str, folder: Path, said: str) -> None:
    """A fresh engine brings everything to its end; what was told to the owner is so."""
    with postroom.open(url) as room:
        room.spheres.compensate(CHECK)
        room.spheres.settle(Bank(folder))
        told = check_invariants(room, over=True)
        assert [sphere for sphere in room.spheres.all() if sphere.state not in ("COMMITTED", "ABORTED")] == []
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
        again = room.spheres.compensate(CHECK)
        assert (again.aborted, again.compensated, again.parked) == (0, 0, 0)
        assert check_invariants(room) == told, "nothing is compensated twice"
        check_counts(room)
        room.sphere(heartbeat=HEARTBEAT).abort("only to see that another works")
        check_invariants(room, over=True)


def check_machine(room: Postroom, moved: bool) -> None:
    orders = room.spheres.machine(*ORDERS)
    try:
        state = orders.state("order")
    except EntityUnknown:
        assert not moved
        return
    assert state == "PAID" if moved else state in ("NEW", "PAID")
    assert [len(orders.entities(each)) for each in ORDERS[0]] == [each == state for each in ORDERS[0]]


RUNS = list(product(["sqlite", "postgres"], ["kill", "raise"]))


def runs(times: dict[str, tuple[int, ...]], every: int) -> list[object]:
    """All points take minutes; a slice of them goes through each kind of run in between."""
    all = points(times)
    some = [pytest.param(*run, all[at * every // 4 :: every], id="-".join(run)) for at, run in enumerate(RUNS)]
    return [*some, *(pytest.param(*run, all, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS)]


@pytest.mark.parametrize(("kind", "action", "some"), runs(OWNER, 8))
def test_at_every_fault_point_of_an_owner_its_spheres_have_one_end(
    kind: str, action: str, some: list[Point], tmp_path: Path, rooms: Rooms
) -> None:
    urls = rooms(kind, len(some))

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        check(urls[number], folder, stopped(own, urls[number], folder, point, action, nth))

    forked.at_each(some, action, one)


@pytest.mark.parametrize(("kind", "action", "some"), runs(ENGINE, 4))
def test_an_engine_that_dies_at_any_point_is_replaced_and_nothing_is_compensated_twice(
    kind: str, action: str, some: list[Point], tmp_path: Path, rooms: Rooms
) -> None:
    urls = rooms(kind, len(some))

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        left = run(leave, urls[number], folder)
        assert left.said == "left\n", left.complaints
        stopped(engine, urls[number], folder, point, action, nth)
        check(urls[number], folder, "")
        with postroom.open(urls[number]) as room:
            assert sorted(message.body for message in room.queues.info("flight")) == [
                f"cancel {id}" for id in ("committing", "one", "parked", "three", "two")
            ]
            assert room.queues.info("car").messages == []
            assert len(room.queues.info("hotel").messages) == 5

    forked.at_each(some, action, one)


def test_every_commit_of_spheres_is_among_the_points() -> None:
    assert set(faults.SPHERE_LABELS) == set(OWNER)


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """A gate that cannot close is no gate."""
    url = str(tmp_path / "room.db")
    done = run(own, url, tmp_path / "bank")
    assert done.said.endswith("finished\n"), done.complaints
    check(url, tmp_path / "bank", done.said)
    with pytest.raises(AssertionError, match="ok COMMITTED bad"):
        check(url, tmp_path / "bank", "ok COMMITTED bad")
    (tmp_path / "bank" / "forged.paid").write_text("bad")
    with pytest.raises(AssertionError, match="the bank follows"):
        check(url, tmp_path / "bank", done.said)
    (tmp_path / "bank" / "forged.paid").unlink()
