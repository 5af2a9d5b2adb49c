"""What was synced was handed to the disk: the file or folder itself, and it is closed again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from postroom.store.files.disk import sync, sync_way


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "file"])
def test_the_very_place_is_synced_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool) -> None:
    place = tmp_path / "place"
    if folder:
        place.mkdir()
    else:
        place.write_text("x")
    synced: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((handle, os.fstat(handle).st_ino)))
    sync(place)
    ((handle, inode),) = synced
    assert inode == place.stat().st_ino
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync(tmp_path / "nothing")


def test_all_folders_that_lead_to_a_place_are_synced_but_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "of" / "this" / "year"
    place.mkdir(parents=True)
    (tmp_path / "link").symlink_to(place)
    synced: list[int] = []
    refused = (tmp_path / "of").stat().st_ino

    def fsync(handle: int) -> None:
        if os.fstat(handle).st_ino == refused:
            raise PermissionError
        synced.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    sync_way(tmp_path / "link")
    assert [place.stat().st_ino, place.parent.stat().st_ino, tmp_path.stat().st_ino] == synced[:3]
    assert synced[-1] == Path("/").stat().st_ino
