"""The doctor raises no false alarm: after everything that a room can do, a deep look finds it sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults import procedure_workload, sphere_workload, station_workload, workload

import postroom
from postroom.diagnosis.finding import Severity

#: What only damage can lead to.
STORED = {"store", "schema", "files", "messages", "journal", "counts", "nodes", "hand-overs", "engine"}


WORK: dict[str, Callable[[Path, list[str]], None]] = {
    "queues and rules": lambda folder, urls: workload.work(urls[0], folder),
    "stations": station_workload.work,
    "procedures": procedure_workload.work,
    "spheres": lambda folder, urls: sphere_workload.own(urls[0], folder),
}


@pytest.mark.parametrize("name", WORK)
def test_a_room_that_did_everything_is_sound(name: str, url: str, tmp_path: Path) -> None:
    urls = [url, str(tmp_path / "north.db"), str(tmp_path / "south.db")]
    WORK[name](tmp_path, urls)
    looked = 0
    for each in urls:
        if each == url or Path(each).exists():
            with postroom.open(each, create=False) as room:
                found = [finding for finding in room.operations.diagnose(deep=True) if finding.check in STORED]
            assert [finding for finding in found if finding.level is not Severity.OK] == []
            looked += sum(int(finding.what.split()[0]) for finding in found if finding.check == "messages")
    assert looked > 0
