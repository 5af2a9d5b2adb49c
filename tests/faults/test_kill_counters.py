"""Counters between a queue, a station of another node, and a queue: killed or failed at every fault point."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import counter_workload, forked

from postroom import faults
from postroom.room import Postroom
from postroom.store.kernel.queues import SYSTEM_ERRORS

from .procedure_workload import opened
from .test_kill_stations import layout

#: Those of counters, and those of all that carries what they hand over.
TIMES = {
    "counter": (1, 2, 3, 5, 8, 12),
    "switch": (1,),
    "load": (2, 3),
    "procedure": (1, 4),
    "arrive": (1, 4),
    "conclude": (1, 4),
}
POINTS = [(f"{label}.{moment}", nth) for label, times in TIMES.items() for moment in faults.MOMENTS for nth in times]


def run(urls: list[str], folder: Path, point: str, action: str, nth: int) -> str:
    folder.mkdir()
    child = forked.run(counter_workload.work, folder, urls, folder=folder, fault=f"{point}:{action}:{nth}", seconds=120)
    if action == "kill":
        assert child.code == -signal.SIGKILL, f"{point} was not reached: {child.complaints[-2000:]}"
    elif point.startswith("arrive"):
        assert child.code in (0, 3), "a node that does not answer is asked again later"
    else:
        assert child.code == 3, f"{point}: {child.said[-300:]}{child.complaints[-2000:]}"
    return child.said


def check(urls: list[str], said: str, folder: Path) -> None:
    """After a restart each claim has come out once, and each misfit is one error."""
    if "ok ready" not in said:
        return
    told = [line.split()[1:] for line in said.splitlines() if line.startswith("ok")]
    with opened(urls[0]) as room:
        room.load(folder / "counters.form")  # one may have been removed when it ended
        room.run_until_idle()
        assert room.operations.lag() == 0
        claims = roots(room, "settled")
        misfits = roots(room, SYSTEM_ERRORS)
        assert set(claims.values()) | set(misfits.values()) <= {1}, f"doubled: {claims} {misfits}"
        assert {words[1] for words in told if words[0] == "claim"} <= set(claims), "a claim is lost"
        assert {words[1] for words in told if words[0] == "misfit"} <= set(misfits), "a misfit is lost"
        assert room.queues.info("claims").messages == []
        assert room.stations._station("archive").mail() == [] == room.stations._station("desk").mail()


def roots(room: Postroom, queue: str) -> Counter[str]:
    """The messages of ``claims`` that those of a queue go back to, by their causes."""
    found = []
    for message in room.queues.info(queue).messages:
        while message.queue != "claims":
            assert message.cause is not None
            message = room.show(message.cause)
        found.append(message.key)
    return Counter(found)


RUNS = [(kinds, action) for kinds in ("ss", "pp", "ps", "sp") for action in ("kill", "raise")]
#: Between them the kinds of run have every second point.
SOME = [pytest.param(*run, POINTS[2 * at :: 2 * len(RUNS)], id="-".join(run)) for at, run in enumerate(RUNS)]
ALL = [pytest.param(*run, POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kinds", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_each_message_is_handed_over_once(
    kinds: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = layout(kinds, len(points), rooms)

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        check(urls[number], run(urls[number], folder, point, action, nth), folder)

    forked.at_each(points, action, one)


def test_every_commit_of_counters_is_among_the_points() -> None:
    assert set(faults.COUNTER_LABELS) <= set(TIMES)


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """A gate that cannot close is no gate."""
    urls = [str(tmp_path / name) for name in ("c.db", "n.db")]
    done = forked.run(counter_workload.work, tmp_path, urls, folder=tmp_path, seconds=60)
    assert done.said.endswith("finished\n"), done.complaints
    check(urls, done.said, tmp_path)
    with opened(urls[0]) as room:
        key = json.loads(room.queues.info("settled").messages[0].body)["KEY"]
        room.receive("settled")
        assert room.show(key).queue == "mailbox:archive"
    with pytest.raises(AssertionError, match="a claim is lost"):
        check(urls, done.said, tmp_path)
