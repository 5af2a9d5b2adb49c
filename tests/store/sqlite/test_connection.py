"""A connection is ours, durable and of the newest version, or it is refused; a copy is one moment."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

import postroom
from postroom.errors import RoomMissing, StoreNewer, UrlInvalid
from postroom.store import schema_of
from postroom.store.migrations import MIGRATIONS
from postroom.store.sqlite import connection
from postroom.store.sqlite.connection import connect, copy_file, migrate, version


def test_a_file_of_another_program_is_not_touched(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "theirs.db"))) as theirs:
        theirs.execute("CREATE TABLE a (b)")
    before = (tmp_path / "theirs.db").read_bytes()
    with pytest.raises(UrlInvalid, match="another program"):
        connect(tmp_path / "theirs.db")
    assert (tmp_path / "theirs.db").read_bytes() == before


def test_a_new_file_is_migrated_once_and_a_newer_one_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "room.db"
    with closing(connect(file)) as opened:
        with pytest.raises(RoomMissing):
            migrate(opened, str(file), create=False)
        assert migrate(opened, str(file), create=True), "it made the room"
        assert not migrate(opened, str(file), create=False)
        assert version(opened) == len(MIGRATIONS)
        assert opened.execute("PRAGMA synchronous").get == 2
        opened.execute("PRAGMA user_version = 999")
        with pytest.raises(StoreNewer):
            migrate(opened, str(file), create=True)
    assert connection.schema_of(file) == 999
    assert schema_of(str(file)) == (999, len(MIGRATIONS))


def test_a_copy_has_what_is_committed(sqlite_url: str, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send("q", "copied")
        copy_file(Path(sqlite_url), tmp_path / "copy.db", lambda some, of: done.append((some, of)))
        room.send("q", "later")
    assert done[-1][0] == done[-1][1] > 0
    with postroom.open(tmp_path / "copy.db") as copy:
        assert [message.body for message in copy.queues.info("q")] == ["copied"]
    with pytest.raises(RoomMissing):
        copy_file(tmp_path / "none.db", tmp_path / "other.db", lambda some, of: None)
