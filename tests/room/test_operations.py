"""What an operator asks of a room: what waits, what is wrong, and a copy of all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import BackupExists, RoomInUse
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_what_waits_is_told_for_each_who_is_to_work_on_it(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text("domain d space A : [n: int] space B : [n: int] arc a : A -> B merge")
    (tmp_path / "p.demaq").write_text(
        "create queue q kind basic mode persistent create rule r for q if (/x) then do enqueue . into q"
    )
    assert small.operations.lags() == {"rules": 0, "flows": 0, "counters": 0, "procedures": 0}
    small.load(tmp_path / "g.flow", tmp_path / "p.demaq")
    small.flows.publish_many("A", ["[1]", "[2]"])
    small.send("q", "<x/>", format="xml")
    small.queues.create("nobody watches")
    small.send("nobody watches", "x")
    assert small.operations.lags() == {"rules": 1, "flows": 2, "counters": 0, "procedures": 0}
    assert small.operations.lag() == 3


def test_a_backup_is_a_room_and_is_not_written_over_another(small: Postroom, tmp_path: Path) -> None:
    small.queues.create("q")
    small.send("q", "x")
    small.backup(tmp_path / "copy.db")
    with pytest.raises(BackupExists):
        small.backup(tmp_path / "copy.db")
    small.backup(tmp_path / "copy.db", replace=True)
    with pytest.raises(RoomInUse):
        small.operations.restore(tmp_path / "copy.db")
    with postroom.open(tmp_path / "new.db") as empty:
        assert empty.operations.restore(tmp_path / "copy.db").differences == ()
    with postroom.open(tmp_path / "new.db") as again:
        assert [message.body for message in again.peek("q")] == ["x"]


def test_a_diagnosis_has_the_machine_and_the_room(small: Postroom) -> None:
    checks = [finding.check for finding in small.operations.diagnose()]
    assert {"python", "store", "journal", "doubts"} <= set(checks)
    assert checks.index("python") < checks.index("store")
