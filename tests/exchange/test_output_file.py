"""A file is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import postroom
from postroom.errors import FileUnwritable
from postroom.exchange.output_file import refuse_existing, written_whole


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before")
    with pytest.raises(RuntimeError), written_whole(file) as stream:
        raise RuntimeError(stream.write("half"))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out.txt", "before")]


def test_a_file_has_the_rights_of_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with written_whole(tmp_path / "out.txt") as stream:
            stream.write("whole")
    finally:
        os.umask(before)
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "out.txt").read_text() == "whole"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileUnwritable, match="No space"), written_whole(tmp_path / "out.txt"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileUnwritable), written_whole(Path("/proc/out.txt")):
        pass


def test_no_room_is_replaced_by_an_export(tmp_path: Path) -> None:
    file = tmp_path / "room.db"
    with postroom.open(file) as room:
        room.queues.create("q")
        with pytest.raises(FileUnwritable, match="is beside it; choose another name"):
            refuse_existing(file, replace=True)
    with pytest.raises(FileUnwritable, match="it is a database; choose another name"):
        refuse_existing(file, replace=True)
    (tmp_path / "out.csv").write_text("key")
    refuse_existing(tmp_path / "out.csv", replace=True)
