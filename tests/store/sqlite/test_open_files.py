"""The files of an open room: taken together and let go together."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import RoomMissing, StoreUnavailable
from postroom.store.sqlite.open_files import OpenFiles


def test_files_are_held_and_let_go(sqlite_url: str) -> None:
    postroom.open(sqlite_url).close()
    files = OpenFiles(Path(sqlite_url), create=False)
    files.take_turn()
    files.check()
    files.fit()
    files.end_turn()
    assert Path(sqlite_url + "-reserve").exists()
    files.close()
    files.end_turn()  # does no harm
    files.forked()
    assert not Path(sqlite_url + "-wal").exists()
    postroom.open(sqlite_url).close()


def test_where_there_is_no_room_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(RoomMissing):
        OpenFiles(tmp_path / "none.db", create=False)
    with pytest.raises(StoreUnavailable):
        OpenFiles(tmp_path / "none" / "room.db", create=True)
    assert list(tmp_path.iterdir()) == []
