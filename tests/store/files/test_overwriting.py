"""What may be written over: nothing of a room that is open, by whatever name."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.store.files.overwriting import is_database, obstacle


def test_a_file_that_is_open_as_a_room_is_in_the_way_by_every_name(tmp_path: Path) -> None:
    file, link = tmp_path / "room.db", tmp_path / "link.db"
    link.symlink_to(file)
    with postroom.open(file) as room:
        room.queues.create("q")
        for name in (file, link, tmp_path / ".." / tmp_path.name / "room.db"):
            assert "room.db-wal is beside it" in obstacle(name)
        for suffix in ("-wal", "-shm", "-reserve"):
            assert obstacle(tmp_path / f"room.db{suffix}") == "it belongs to the room room.db"
    assert obstacle(file) == obstacle(link) == ""


def test_a_log_that_was_left_is_in_the_way_of_a_new_database(tmp_path: Path) -> None:
    """SQLite would take what is in it into the database that gets the name."""
    (tmp_path / "gone.db-wal").write_bytes(b"frames")
    assert "gone.db-wal is beside it" in obstacle(tmp_path / "gone.db")
    assert obstacle(tmp_path / "other.db") == obstacle(tmp_path / "notes-wal") == ""


@pytest.mark.parametrize(("content", "known"), [(b"", False), (b"SQLite format 3", False), (b"key,queue\n", False)])
def test_what_is_no_database_is_known(tmp_path: Path, content: bytes, known: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    assert is_database(tmp_path / "file") is known
    postroom.open(tmp_path / "room.db").close()
    assert is_database(tmp_path / "room.db")
