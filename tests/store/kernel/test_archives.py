"""The older part of the journal in folders: whole, found again, and never removed before it is safely there."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.faults.upkeep_workload import write_here
from tests.store.life import live
from tests.store.proof.test_verification import ROWS, after

import postroom
from postroom import faults
from postroom.engine import archiving
from postroom.errors import (
    ArchiveDamaged,
    ArchiveMissing,
    ArgumentInvalid,
    JournalDiffers,
    MessageUnknown,
    StoreBusy,
    StoreUnavailable,
)
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.store.kernel.archives import Archive
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof import replay, snapshot

NOW = timedelta(0)


@pytest.fixture
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "spark_writer", lambda spark: write_here)


pytestmark = pytest.mark.usefixtures("_without_spark")


@pytest.fixture
def lived(room: Postroom, tmp_path: Path) -> Postroom:
    live(room, tmp_path)
    return room


@pytest.fixture
def used(room: Postroom) -> Postroom:
    """Some messages wait, some are processed, some are gone, and one follows from another."""
    for name in ("plain", "short"):
        room.queues.create(name)
    room.queues.set_mode("short", keep_processed=False)
    first = room.send("plain", "first")
    room.send_many("plain", [f"{number}" for number in range(20)])
    room.send_many("short", ["a", "b", "c"])
    for name in ("plain", "plain", "short", "short"):
        room.receive(name)
    room.send("short", "second", cause=first.key)
    return room


def keys(room: Postroom) -> list[str]:
    """Of all messages that ever were."""
    found = {event.key for event in room.journal.last(100_000) if event.key is not None}
    return sorted(found)


def traces(room: Postroom, some: list[str]) -> dict[str, Any]:
    return {key: [(event.seq, event.as_dict()) for event in room.trace(key)] for key in some}


def whereabouts(room: Postroom, some: list[str]) -> dict[str, str | None]:
    return {key: room.journal.locate(key) for key in some}


def stories(room: Postroom, some: list[str]) -> dict[str, Any]:
    return {key: room.trace(key, causes=True).as_dict() for key in some}


def test_all_that_was_asked_of_the_journal_is_answered_after_it_is_archived(lived: Postroom, tmp_path: Path) -> None:
    some = keys(lived)
    before = (traces(lived, some), whereabouts(lived, some), stories(lived, some[:20]))
    lines = lived.journal.verify().lines
    (made,) = lived.journal.archive(NOW, tmp_path / "old")
    assert made.lines == lines
    assert made.departed > 0
    assert len(lived.journal.last(100)) == 1, "the line that tells of the archive"
    assert (traces(lived, some), whereabouts(lived, some), stories(lived, some[:20])) == before
    found = lived.journal.verify()
    assert (found.differences, found.lines, found.archived) == ((), lines + 1, lines)
    assert lived.journal.verify(archives=True) == found
    assert [
        each.what for each in lived.operations.diagnose(deep=True) if each.check == "journal" and each.level != "ok"
    ] == []
    with pytest.raises(MessageUnknown):
        lived.trace("00099.00001")


def test_a_replay_that_begins_at_an_archive_finds_what_one_from_the_beginning_does(
    lived: Postroom, tmp_path: Path
) -> None:
    lived.journal.archive(NOW, tmp_path / "old")
    for what, statements in ROWS.items():
        for statement in statements:
            if "departed" in statement and "FROM departed" in statement:
                continue  # they are in the archive now
            kinds = {each.what for each in after(lived, statement).differences}
            assert any(each.startswith(f"{what} ") for each in kinds), f"{statement}: {kinds}"
    found = after(lived, "UPDATE archives SET digest = 'x'").differences
    assert found[0].what.startswith("archive that ends with line")


def test_work_goes_on_and_is_archived_in_turn(used: Postroom, tmp_path: Path) -> None:
    first = keys(used)
    used.journal.archive(NOW, tmp_path / "a")
    sent = [used.send("plain", f"more {number}").key for number in range(5)]
    used.receive("plain")
    used.queues.set_mode("plain", keep_processed=False)  # messages of the first archive go
    used.receive("plain")
    assert used.journal.verify().differences == ()
    some = sorted({*first, *sent})
    before = traces(used, some)
    (second,) = used.journal.archive(NOW, tmp_path / "b")
    assert traces(used, some) == before
    assert used.journal.archive(timedelta(days=1), tmp_path / "c") == []
    numbers = [event.seq for event in used.journal.last(10)]
    assert numbers == [second.last + 1], "numbers are counted on"
    used.send("plain", "again")
    assert used.journal.verify(archives=True).differences == ()
    assert [each.folder for each in used.journal.archives()] == [
        str(next((tmp_path / at).glob("journal-*"))) for at in "ab"
    ]


def test_only_what_is_older_goes(url: str, tmp_path: Path) -> None:
    time = [1_000_000_000_000_000]
    with postroom.open(url, clock=lambda: time[0]) as room:
        room.queues.create("q")
        old = room.send("q", "old").key
        time[0] += 3_600_000_000
        room.receive("q")
        room.send("q", "new")
        cut = datetime.fromtimestamp(time[0] / 1_000_000, UTC)
        (made,) = room.journal.archive(cut, tmp_path / "old")
        assert made.lines == 2
        assert [event.verb for event in room.journal.last()] == ["take", "put", "archive"]
        assert [event.verb for event in room.trace(old)] == ["put", "take"]
        assert room.journal.verify(archives=True).differences == ()
        time[0] += 60_000_000
        assert room.journal.archive(timedelta(minutes=30), tmp_path / "old") == []
        assert len(room.journal.archive(timedelta(seconds=30), tmp_path / "old")) == 1
        time[0] += 60_000_000
        assert len(room.journal.archive(timedelta(days=-1), tmp_path / "old")) == 1, "a moment to come is now"


def test_a_sphere_that_has_not_ended_keeps_its_lines(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    sphere = room.sphere("open")
    key = sphere.send("q", "book", compensation="cancel")
    room.journal.archive(NOW, tmp_path / "old")
    assert [event.verb for event in room.journal.last(1_000) if event.key == str(getattr(key, "key", key))] == ["put"]
    sphere.abort()
    assert room.queues.accept("q").queues[0].unprocessed == 0, (
        "nobody had taken it, so it is withdrawn and not compensated"
    )
    assert room.journal.archive(NOW, tmp_path / "old")
    assert room.journal.verify(archives=True).differences == ()


def test_a_journal_that_differs_is_not_archived(used: Postroom, tmp_path: Path) -> None:
    used.store.transact(
        "send", lambda tx: tx.session.run("DELETE FROM messages WHERE key = (SELECT max(key) FROM messages)")
    )
    with pytest.raises(JournalDiffers):
        used.journal.archive(NOW, tmp_path / "old")
    assert list((tmp_path / "old").iterdir()) == []
    assert used.journal.archives() == []


def test_a_missing_archive_costs_only_what_is_in_it(used: Postroom, tmp_path: Path) -> None:
    some = keys(used)
    there = used.store.read(lambda tx: tx.messages.find_many([key_number(key) for key in some]))
    present = [key for key in some if key_number(key) in there]
    (made,) = used.journal.archive(NOW, tmp_path / "old")
    later = used.send("plain", "later").key
    shutil.move(tmp_path / "old", tmp_path / "new")
    with pytest.raises(ArchiveMissing, match="postroom archive --moved"):
        used.trace(some[0])
    assert [event.verb for event in used.trace(later)] == ["put"]
    assert whereabouts(used, present)
    assert used.receive("plain").message is not None
    assert used.journal.verify().differences == ()
    with pytest.raises(ArchiveMissing):
        used.journal.verify(archives=True)
    with pytest.raises(ArchiveMissing, match="no archive of this room"):
        used.journal.archive_moved(tmp_path)
    (moved,) = used.journal.archive_moved(tmp_path / "new")
    assert moved.folder == str(tmp_path / "new" / Path(made.folder).name)
    assert used.trace(some[0])
    assert used.journal.verify(archives=True).differences == ()


def test_a_damaged_archive_is_noticed(used: Postroom, tmp_path: Path) -> None:
    (made,) = used.journal.archive(NOW, tmp_path / "old")
    file = next(Path(made.folder).glob("lines-*"))
    whole = file.read_bytes()
    table = pyarrow.parquet.read_table(file)
    changed = table.set_column(8, "actor", pyarrow.array(["someone else"] * table.num_rows))
    pyarrow.parquet.write_table(changed, file)
    with pytest.raises(ArchiveDamaged, match="was changed"):
        used.journal.verify(archives=True)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArchiveDamaged):
        used.trace(keys(used)[0] if keys(used) else "00001.00001")
    file.write_bytes(whole)
    assert used.journal.verify(archives=True).differences == ()
    manifest = Path(made.folder) / "manifest.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**said, "digest": "other"}))
    with pytest.raises(ArchiveDamaged, match="not the archive that the room has noted"):
        used.journal.verify(archives=True)
    manifest.write_text("{")
    with pytest.raises(ArchiveDamaged, match="manifest"):
        used.journal.verify(archives=True)


@pytest.mark.parametrize("point", ["archive.part", "archive.renamed", "archive.begun", "archive.committing"])
def test_what_was_begun_is_gone_on_with(used: Postroom, tmp_path: Path, point: str) -> None:
    some = keys(used)
    before = traces(used, some)
    faults.arm(point, "raise")
    with pytest.raises(faults.FaultInjected):
        used.journal.archive(NOW, tmp_path / "old")
    faults.disarm()
    assert used.journal.archives() == []
    assert traces(used, some) == before
    assert used.journal.verify().differences == ()
    used.send("plain", "meanwhile")
    made = used.journal.archive(NOW, tmp_path / "old")
    assert made
    assert traces(used, some) == before
    assert used.journal.verify(archives=True).differences == ()
    assert sorted(each.name for each in (tmp_path / "old").iterdir()) == [Path(each.folder).name for each in made]


def test_a_folder_of_another_room_is_not_taken_for_ours(used: Postroom, tmp_path: Path) -> None:
    with postroom.open(tmp_path / "other.db") as other:
        other.queues.create("q")
        for number in range(used.journal.verify().lines - 1):
            other.send("q", str(number))
        (made,) = other.journal.archive(NOW, tmp_path / "old")
    with pytest.raises(ArchiveDamaged, match="has other entries"):
        used.journal.archive(NOW, tmp_path / "old")
    assert Path(made.folder).exists()
    assert used.journal.archives() == []


def test_a_line_that_comes_late_is_not_lost(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL a number may be drawn before another and be committed behind it."""
    room.queues.create("q")
    sent = room.send("q", "x").key
    real = archiving._noted

    def late(tx: Transaction, **about: Any) -> Archive:
        tx.session.run("INSERT INTO journal (seq, at, verb, actor) VALUES (0, 1, 'lease', 'late')")
        return real(tx, **about)

    monkeypatch.setattr(archiving, "_noted", late)
    with pytest.raises(StoreBusy, match="arrived late"):
        room.journal.archive(NOW, tmp_path / "old")
    monkeypatch.undo()
    assert list((tmp_path / "old").iterdir()) == []
    assert len(room.trace(sent)) == 1


def test_what_cannot_be_written_and_what_is_no_moment(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="file"):
        room.journal.archive(NOW, tmp_path / "file")
    with pytest.raises(ArgumentInvalid, match="before"):
        room.journal.archive("yesterday", tmp_path)  # type: ignore[arg-type]
    assert room.journal.archives() == []


def test_files_are_for_their_owner_alone(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    (made,) = room.journal.archive(NOW, tmp_path / "old")
    modes = {file.name: oct(os.stat(file).st_mode)[-3:] for file in Path(made.folder).iterdir()}
    assert set(modes.values()) == {"600"}
    assert os.stat(made.folder).st_mode & 0o777 == 0o700


def test_a_snapshot_keeps_all_that_a_replay_knows(lived: Postroom) -> None:
    told = lived.store.read(lambda tx: replay.told(tx.journal.lines()))
    told.departed = {key: last for key, last in told.departed.items() if key in told.handed}
    told.dossiers = {key: some for key, some in told.dossiers.items() if some}
    again = snapshot.read(snapshot.written(told))
    notes = {"older", "unknown", "broken"}  # about the reading itself
    for field in dataclasses.fields(replay.Told):
        if field.name not in notes:
            assert getattr(again, field.name) == getattr(told, field.name), field.name
    assert snapshot.written(again) == snapshot.written(told)
