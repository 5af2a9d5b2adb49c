"""Pipes by which waiters are woken."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import StoreUnavailable
from postroom.store.files import wakeup


def test_everyone_who_waits_is_woken_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "wake"
    with wakeup.waiting(folder) as first, wakeup.waiting(folder) as second:
        assert first.wait(0) is False
        wakeup.wake(folder)
        assert (first.wait(1), second.wait(1)) == (True, True)
        second.wake()
        assert (first.wait(0), second.wait(1)) == (False, True)
    assert not folder.exists()
    wakeup.wake(folder)  # nobody is there: no error


def test_what_is_no_pipe_of_ours_is_left_alone_and_pipes_of_the_dead_go(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "wake"
    folder.mkdir()
    (folder / "file").write_text("kept")
    os.mkfifo(folder / "dead")
    wakeup.wake(folder)
    assert [file.name for file in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text() == "kept"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "wake").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot wait"), wakeup.waiting(tmp_path / "wake"):
        pass
