"""Procedures over three stores, killed or failed at every fault point: each working set is handled once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import forked, procedure_workload

from postroom import faults
from postroom.room import Postroom

from .procedure_workload import opened
from .test_kill_stations import LAYOUTS, layout, places

#: Those of procedures themselves, and those of mail that is handed over between nodes on their behalf.
TIMES = {
    "switch": (1,),
    "desks": (1, 2, 3, 5),
    "procedure": (1, 2, 3, 5, 8, 13, 21),
    "claim": (1, 3),
    "get": (1, 3),
    "arrive": (1, 2, 3, 5, 8),
    "conclude": (1, 2, 3, 5, 8),
}
POINTS = [(f"{label}.{moment}", nth) for label, times in TIMES.items() for moment in faults.MOMENTS for nth in times]


def run(urls: list[str], folder: Path, point: str, action: str, nth: int) -> str:
    folder.mkdir()
    child = forked.run(
        procedure_workload.work, folder, urls, folder=folder, fault=f"{point}:{action}:{nth}", seconds=180
    )
    if action == "kill":
        assert child.code == -signal.SIGKILL, f"{point} was not reached: {child.complaints[-2000:]}"
    elif point.startswith("arrive"):
        assert child.code in (0, 3), "a node that does not answer is asked again later"
    else:
        assert child.code == 3, f"{point}: {child.said[-300:]}{child.complaints[-2000:]}"
    return child.said


def check(urls: list[str], said: str) -> None:
    """After a restart everything that was begun comes to its end, once."""
    pairs = [line.split()[2:] for line in said.splitlines() if line.startswith("ok pair")]
    if "ok ready" not in said:
        return
    with opened(urls[0]) as room:
        for procedure in room.stations.procedures():
            room.stations.enable_procedure(procedure.procedure.name)
        room.run_until_idle()
        where = places(room)
        assert set(Counter(key for key, _ in where).values()) <= {1}, f"in two places: {where}"
        found = dict(where)
        for order, bill in pairs:
            assert (found[order], found[bill]) == ("bob", "ann"), f"{order} {bill}: {found[order]} {found[bill]}"
            check_pair(room, order, bill)
        done = {image.key for image in room.stations._station("bob").dossier("done")} if pairs else set()
        slips: Counter[object] = Counter(
            image.fields["Note"] for image in room.stations._station("cid").messages("BILL")
        )
        slips.update(_mail(room, "cid", "BILL", "Note"))
        copies = Counter(image.fields["No"] for image in room.stations._station("dan").messages("ORDER"))
        if pairs:
            assert set(slips) == done, f"slips of {set(slips)}, done are {done}"
            assert set(slips.values()) == {1}, f"a slip was made twice: {slips}"
            assert set(copies.values()) == {1}, f"a copy was made twice: {copies}"
            assert len(copies) == len(done)
            told = room.stations._station("cid").dossier("errors")
            assert len(told) == len(done), f"{len(told)} errors for {len(done)} slips that nobody takes"
        assert [each for each in room.stations.waiting() if each.procedure == "last"] == []


def _mail(room: Postroom, station: str, type: str, field: str) -> list[object]:
    """What is said in a field of mail that has not been got: what a procedure could not handle stays there."""
    keys = [each.key for each in room.stations._station(station).mail() if each.type == type]
    return [json.loads(room.show(key).body)[field] for key in keys]


def check_pair(room: Postroom, order: str, bill: str) -> None:
    image = room.stations._station("bob").show(order)
    assert (image.fields["Status"], image.fields["Seen"]) == ("paid", "bob")
    verbs = Counter((event.verb, event.by) for event in room.trace(order) if event.by.startswith("procedure"))
    assert verbs["modify", "procedure join"] <= 1
    assert verbs["modify", "procedure receipt"] == 1, f"handled more than once: {verbs}"
    assert bill in [each.key for each in room.stations._station("ann").dossier("joined")]


RUNS = [(kinds, action) for kinds in LAYOUTS for action in ("kill", "raise")]
#: All points take minutes in each kind of run; between them the kinds have every third one.
SOME = [pytest.param(*run, POINTS[3 * at :: 24], id="-".join(run)) for at, run in enumerate(RUNS)]
ALL = [pytest.param(*run, POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kinds", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_each_working_set_is_handled_once(
    kinds: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = layout(LAYOUTS[kinds], len(points), rooms)

    def one(number: int, point: str, nth: int) -> None:
        check(urls[number], run(urls[number], tmp_path / str(number), point, action, nth))

    forked.at_each(points, action, one)


def test_every_commit_of_procedures_is_among_the_points() -> None:
    assert set(faults.PROCEDURE_LABELS) <= set(TIMES)


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """A gate that cannot close is no gate."""
    urls = [str(tmp_path / name) for name in ("c.db", "n.db", "s.db")]
    done = forked.run(procedure_workload.work, tmp_path, urls, folder=tmp_path, seconds=60)
    assert done.said.endswith("finished\n"), done.complaints
    check(urls, done.said)
    with opened(urls[0]) as room:
        order = done.said.split("ok pair ")[1].split()[0]
        bob = room.stations._station("bob")
        (copy,) = bob.copy(order)
        bob.ship(copy, "cid")
    with pytest.raises(AssertionError, match=r"procedure=.last"):
        check(urls, done.said)
