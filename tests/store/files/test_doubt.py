"""The mark of a commit that was not confirmed."""

from __future__ import annotations

from pathlib import Path

from postroom.store.files.doubt import Doubt


def test_a_doubt_is_told_until_it_is_cleared(tmp_path: Path) -> None:
    doubt = Doubt(tmp_path / "room.db")
    assert doubt.told() is None
    doubt.note("send")
    assert Doubt(tmp_path / "room.db").told() == "send"
    assert (tmp_path / "room.db-doubt").stat().st_mode & 0o777 == 0o600
    doubt.clear()
    doubt.clear()
    assert doubt.told() is None


def test_a_mark_that_cannot_be_read_or_written_is_still_a_doubt(tmp_path: Path) -> None:
    doubt = Doubt(tmp_path / "room.db")
    (tmp_path / "room.db-doubt").symlink_to(tmp_path / "elsewhere")
    doubt.note("send")  # never raises
    assert not (tmp_path / "elsewhere").exists()
    assert doubt.told() == "something"
