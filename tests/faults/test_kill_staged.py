"""An engine whose executors leave answers in the store, killed or failed at every commit: all happens once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import forked, staged_workload

import postroom
from postroom import faults

from .here import executors_here
from .test_kill_engine import History, check, kill_one, started

TIMES = {"claim": (1, 4), "stage": (1, 2, 5), "step": (1, 4), "lease": (1, 2), "release-lease": (1,)}
POINTS = [(f"{label}.{moment}", nth) for label, times in TIMES.items() for moment in faults.MOMENTS for nth in times]
#: Here executors have left answers, and the step that asked for them is not committed.
LEFT = ("stage.committed", "step.begun", "step.committing")


def staged(url: str) -> int:
    with postroom.open(url) as room:
        return room.store.read(lambda tx: tx.staging.parts)


def run(url: str, folder: Path, point: str, action: str, nth: int) -> History:
    folder.mkdir()
    child = forked.run(staged_workload.work, url, folder, folder=folder, fault=f"{point}:{action}:{nth}")
    if action == "kill":
        assert child.code == -signal.SIGKILL, f"{point} was not reached: {child.complaints[-2000:]}"
        assert point not in LEFT or staged(url) > 0, "the check that it was swept must be able to fail"
    elif point == "stage.committed":
        assert child.code == 0, "an executor that is not told looks again, and finds its answer there"
    else:
        assert child.code == 3, f"{point}: {child.said[-300:]}{child.complaints[-2000:]}"
    history = History()
    history.add(child.said)
    return history


RUNS = [(kind, action) for kind in ("sqlite", "postgres") for action in ("kill", "raise")]
#: All points take a minute or two in each kind of run; between them the kinds have every one.
SOME = [pytest.param(*run, POINTS[at::8], id="-".join(run)) for at, run in enumerate(RUNS)]
ALL = [pytest.param(*run, POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kind", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_each_request_has_one_outcome(
    kind: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = rooms(kind, len(points))

    def one(number: int, point: str, nth: int) -> None:
        history = run(urls[number], tmp_path / str(number), point, action, nth)
        if history.acknowledged:
            check(urls[number], history, executors_here)
            assert staged(urls[number]) == 0, "what no step committed was swept"

    forked.at_each(points, action, one)


@pytest.mark.slow
def test_executors_and_workers_that_read_and_write_may_die_in_the_middle_of_a_step(
    postgres_url: str, tmp_path: Path
) -> None:
    history = History()
    with started(postgres_url, tmp_path, "c", 200, master="local-cluster[2,1,1024]", exchange="store") as workload:
        workload.wait_for("step 3\n")
        kill_one(workload, "CoarseGrainedExecutorBackend")
        workload.wait_for("step 8\n")
        kill_one(workload, "pyspark.daemon", leaf=True)
        workload.wait_for("step 12\n")
        kill_one(workload, "CoarseGrainedExecutorBackend")
        assert workload.end() == 0, workload.complaints[-2000:]
        history.add(workload.said)
    assert len(history.acknowledged) == 200
    check(postgres_url, history, executors_here)
    assert staged(postgres_url) == 0


def test_the_commit_of_executors_is_among_the_points() -> None:
    assert set(faults.STAGING_LABELS) <= set(TIMES)
