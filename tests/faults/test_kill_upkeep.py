"""Killed at every point of archiving, sweeping, backing up and restoring: nothing is lost, and a second run goes on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.faults import forked, upkeep_workload

import postroom
from postroom import faults
from postroom.model.key import key_text
from postroom.room import Postroom

#: How often each is passed: an archive has two files, and there are two archives.
TIMES = {"archive": 2, "retention": 1, "upkeep": 2, "restore": 1}
POINTS = [
    *(
        (f"{label}.{moment}", nth)
        for label, times in TIMES.items()
        for moment in faults.MOMENTS
        for nth in range(1, times + 1)
    ),
    *((point, nth) for point in faults.FILE_POINTS for nth in (1, 2)),
    ("archive.part", 3),
]
#: A few in every run; all of them, on both stores, with the slow batteries.
QUICK = {
    ("archive.renamed", 1),
    ("archive.part", 2),
    ("archive.committing", 2),
    ("upkeep.committing", 1),
    ("backup.copied", 2),
}


def test_every_label_is_walked() -> None:
    assert set(TIMES) == set(faults.UPKEEP_LABELS)


def bodies(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.info("q").messages]


def traced(room: Postroom) -> int:
    """How many lines of messages there are, whether archived or not."""
    first = 100_001
    return sum(len(room.trace(key_text(first + number))) for number in range(22))


@pytest.mark.parametrize(
    ("point", "nth"),
    [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in POINTS],
)
def test_killed_while_looking_after_a_room(url: str, tmp_path: Path, point: str, nth: int) -> None:
    upkeep_workload.begin(url)
    with postroom.open(url) as room:
        before, lines = bodies(room), traced(room)
    ended = forked.run(upkeep_workload.work, url, str(tmp_path), folder=tmp_path, fault=f"{point}:kill:{nth}")
    killed = ended.code == -signal.SIGKILL
    assert killed or (nth > 1 and ended.said == "done\n"), ended
    with postroom.open(url) as room:
        assert bodies(room) in (before, [*before, "more"])
        assert traced(room) == lines
        assert room.journal.verify(archives=True).differences == ()
    again = forked.run(upkeep_workload.work, url, str(tmp_path), folder=tmp_path)
    assert again.said == "done\n", again
    with postroom.open(url) as room:
        assert [body for body in bodies(room) if body != "more"] == before
        assert traced(room) == lines
        assert room.journal.verify(archives=True).differences == ()
        assert room.store.read(lambda tx: tx.session.rows("SELECT count(*) FROM receipts")) == [(0,)]
    with postroom.open(tmp_path / "restored.db") as copy:
        assert copy.journal.verify().differences == ()
        assert bodies(copy)[: len(before)] == before
    assert [
        file.name for file in [*tmp_path.iterdir(), *(tmp_path / "old").iterdir()] if file.name.startswith(".")
    ] == []
