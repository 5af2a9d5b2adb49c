"""Locks that keep a log from being removed, and pictures that tell whether a reader was overtaken."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import postroom
from postroom.errors import StoreReplaced
from postroom.store.files import guard
from postroom.store.files.guard import Overview
from postroom.store.sqlite.store import SqliteStore


def test_rooms_of_one_process_share_the_guard_of_their_file(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as first, postroom.open(sqlite_url) as second:
        assert isinstance(first.store, SqliteStore)
        assert isinstance(second.store, SqliteStore)
        held = first.store._files.guard
        assert held is second.store._files.guard
        assert (held.users, held.has_log, held.replaced) == (2, True, False)
        assert held.check_files() >= 0
        seen = held.begin_reading()
        assert held.end_reading(seen)
    assert not Path(sqlite_url + "-wal").exists(), "the last one tidies up"


def test_files_that_are_others_by_now_are_noticed(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        assert isinstance(room.store, SqliteStore)
        held = room.store._files.guard
        Path(sqlite_url).rename(sqlite_url + "-away")
        assert held.replaced
        with pytest.raises(StoreReplaced):
            held.check_files()


def test_a_picture_lasts_until_its_pages_may_be_written_over() -> None:
    seen = Overview(10, b"salt", 5, 5)
    assert seen.lasts(Overview(20, b"salt", 10, 10))
    assert not seen.lasts(Overview(20, b"salt", 5, 11))
    assert not seen.lasts(Overview(1, b"new", 0, 0))


def test_whoever_waits_has_the_next_turn(tmp_path: Path) -> None:
    """However often another wants to write: it has the turn once more at the most, not as long as the one sleeps."""
    order: list[str] = []
    with (tmp_path / "turn").open("w+b") as mine, (tmp_path / "turn").open("r+b") as other:
        guard.take_turn(mine.fileno())

        def wait() -> None:
            guard.take_turn(other.fileno())
            order.append("other")
            guard.end_turn(other.fileno())

        thread = threading.Thread(target=wait)
        thread.start()
        while guard._try(mine.fileno(), guard._NEXT_TAKEN):  # until it says that it waits
            fcntl.fcntl(mine.fileno(), guard._SET or 0, guard._NEXT_OVER)
        for _ in range(50):
            guard.end_turn(mine.fileno())
            guard.take_turn(mine.fileno())
            order.append("mine")
        guard.end_turn(mine.fileno())
        thread.join(30)
    assert order.index("other") == 0


def test_a_turn_may_be_ended_twice(tmp_path: Path) -> None:
    with (tmp_path / "turn").open("w+b") as file:
        guard.take_turn(file.fileno())
        guard.end_turn(file.fileno())
        guard.end_turn(file.fileno())
        guard.take_turn(file.fileno())
        assert file.tell() == 0


def test_a_process_that_is_stopped_while_it_waits_keeps_nobody_from_writing(tmp_path: Path) -> None:
    """It has said that it is the next, and does not run: others write, each after a moment, and it goes on later."""
    with (tmp_path / "turn").open("w+b") as stopped, (tmp_path / "turn").open("r+b") as other:
        assert guard._try(stopped.fileno(), guard._NEXT_TAKEN)
        for _ in range(3):
            guard.take_turn(other.fileno())
            assert not guard._try(stopped.fileno(), guard._TURN_TAKEN)
            guard.end_turn(other.fileno())
        assert not guard._try(other.fileno(), guard._NEXT_TAKEN), "it is still the next"
        assert guard._try(stopped.fileno(), guard._TURN_TAKEN)


_SENDS = """
import os, signal, sys
import postroom
room = postroom.open(sys.argv[1])
for number in range(int(sys.argv[2])):
    room.send("q", str(number))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_in_a_log_with_room_at_its_end_is_found_after_a_kill(tmp_path: Path) -> None:
    file, many = tmp_path / "room.db", 120
    with postroom.open(file) as room:
        room.queues.create("q")
    killed = subprocess.run([sys.executable, "-c", _SENDS, str(file), str(many)], check=False)
    assert killed.returncode == -signal.SIGKILL
    log = Path(f"{file}-wal")
    assert log.read_bytes().endswith(bytes(16 * 1024)), "the log was not made longer ahead"
    copy = tmp_path / "copy.db"  # without the index of the log
    for suffix in ("", "-wal"):
        shutil.copy(f"{file}{suffix}", f"{copy}{suffix}")
    for each in (file, copy):
        with postroom.open(each) as room:
            received = [room.receive("q").message for _ in range(many)]
            assert [message and message.body for message in received] == [str(number) for number in range(many)]
            assert room.journal.verify().differences == ()
