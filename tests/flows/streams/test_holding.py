"""Who runs a stream, and which checkpoint belongs to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import postroom
from postroom.errors import LeaseHeld, StreamCheckpoint
from postroom.flows.streams.holding import StreamHold
from postroom.room import Postroom
from postroom.store.files import disk


def hold(room: Postroom, folder: Path, *sources: str, owner: str | None = None) -> StreamHold:
    parts = room._parts
    return StreamHold(room.store, parts.room_graphs, owner or parts.holder, sources or ("B",), folder)


def ignore(error: Exception) -> None:
    raise AssertionError(error)


def test_one_process_runs_a_stream_at_a_time(room: Postroom, tmp_path: Path) -> None:
    one = hold(room, tmp_path)
    other = hold(room, tmp_path, owner=one._owner.replace("/", "x/"))
    with one.held(ignore):
        room.store.transact("stream", one.check)
        with pytest.raises(LeaseHeld), other.held(ignore):
            pass
    with other.held(ignore):
        room.store.transact("stream", other.check)


def test_a_stream_keeps_its_name_and_its_checkpoint(room: Postroom, tmp_path: Path) -> None:
    with hold(room, tmp_path, "B").held(ignore):
        pass
    for names in (("B",), ("A", "B"), ("A",)):
        again = hold(room, tmp_path, *names)
        assert again.name == "B"
        with again.held(ignore):
            again.open(restart=False)
    assert (tmp_path / "B" / "stream.json").exists()


def test_checkpoints_of_other_rooms_and_lost_ones_are_refused(room: Postroom, tmp_path: Path) -> None:
    one = hold(room, tmp_path)
    with one.held(ignore):
        one.open(restart=False)
        stream = room.store.read(lambda tx: tx.streams.find("B"))
        assert stream is not None
        room.store.transact("stream", lambda tx: tx.streams.put(stream._replace(batch=3)))
        shutil.rmtree(one.folder)
        with pytest.raises(StreamCheckpoint, match="is missing"):
            one.open(restart=False)
        one.open(restart=True)
        assert room.store.read(lambda tx: tx.streams.find("B")) == stream._replace(
            checkpoint=room.store.read(lambda tx: tx.streams.all())[0].checkpoint
        )
    with postroom.open(tmp_path / "other.db") as other:
        two = hold(other, tmp_path)
        with two.held(ignore), pytest.raises(StreamCheckpoint, match="of another room"):
            two.open(restart=False)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"check', "\x00\x00", "1"])
def test_a_checkpoint_that_cannot_be_read_is_told(room: Postroom, tmp_path: Path, text: str) -> None:
    one = hold(room, tmp_path)
    with one.held(ignore):
        one.open(restart=False)
        (one.folder / "stream.json").write_text(text)
        with pytest.raises(StreamCheckpoint, match=r"is damaged: stream\.json cannot be read"):
            one.open(restart=False)
        one.open(restart=True)
        one.open(restart=False)


def test_a_checkpoint_is_on_disk_under_its_name_before_the_stream_begins(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list[str]()
    synced, replaced = disk.sync, os.replace

    def sync(place: Path) -> None:
        steps.append(f"sync {place.name}")
        synced(place)

    def replace(part: Path, file: Path) -> None:
        steps.append(f"name {file.name}")
        replaced(part, file)

    monkeypatch.setattr(disk, "sync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    one = hold(room, tmp_path / "streams")
    with one.held(ignore):
        one.open(restart=False)
        assert steps[:4] == ["sync .stream.json.part", "name stream.json", "sync B", "sync streams"]
        steps.clear()
        one.open(restart=False)
        assert steps == []  # it says so already


def test_two_streams_that_become_one_are_told(room: Postroom, tmp_path: Path) -> None:
    for name in ("A", "B"):
        one = hold(room, tmp_path, name)
        with one.held(ignore):
            one.open(restart=False)
    with pytest.raises(StreamCheckpoint, match="A and B were streams of their own"):
        hold(room, tmp_path, "A", "B")
