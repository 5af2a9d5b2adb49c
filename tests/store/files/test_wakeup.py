"""Pipes by which waiters are woken."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
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


def test_of_a_line_the_first_is_woken_and_of_the_others_all(tmp_path: Path) -> None:
    folder = tmp_path / "wake"
    with (
        wakeup.waiting(folder, 7) as first,
        wakeup.waiting(folder, 7) as second,
        wakeup.waiting(folder, 70) as elsewhere,
        wakeup.waiting(folder) as anyone,
    ):
        everyone = (first, second, elsewhere, anyone)
        wakeup.wake(folder, {7: 1})
        assert [each.wait(0) for each in everyone] == [True, False, False, True]
        wakeup.wake(folder, {7: 2})
        assert [each.wait(0) for each in everyone] == [True, True, False, True]
        wakeup.wake(folder)
        assert [each.wait(0) for each in everyone] == [True] * 4


def test_one_of_a_line_that_has_died_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "wake"
    with wakeup.waiting(folder, 7) as lives:
        os.mkfifo(folder / "line-7-00000000000000000001-1-dead")
        (folder / "line-x-odd").write_text("kept")
        wakeup.wake(folder, {7: 1})
        assert lives.wait(0)
        assert len(list(folder.iterdir())) == 2, "its own pipe, and the file"
    assert (folder / "line-x-odd").read_text() == "kept"


def test_a_folder_that_is_gone_as_soon_as_it_was_there_stops_nobody(tmp_path: Path) -> None:
    """The last waiter takes the folder with it, between another's look at it and its use."""
    folder = tmp_path / "room.db-wake"

    def wait_often() -> None:
        for _ in range(400):
            with wakeup.waiting(folder):
                pass

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(wait_often) for _ in range(4)]:
            done.result()
    assert not folder.exists()
