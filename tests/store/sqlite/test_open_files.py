"""The files of an open room: taken together and let go together."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import postroom
from postroom.errors import RoomMissing, StoreBusy, StoreUnavailable
from postroom.store.files import guard
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


HOLDER = """
import sys, time, postroom
with postroom.open(sys.argv[1]) as room:
    room.store.transact("send", lambda tx: (print("holds", flush=True), time.sleep(600)))
"""


def test_a_process_that_is_stopped_in_the_midst_of_a_change_is_named(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BUSY_SECONDS", 0.3)
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        argv = [sys.executable, "-c", HOLDER, sqlite_url]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
            try:
                assert holder.stdout is not None
                assert holder.stdout.readline() == "holds\n"
                with pytest.raises(StoreBusy, match=f"process {holder.pid} writes; try again"):
                    room.send("q", "m")
                holder.send_signal(signal.SIGSTOP)
                with pytest.raises(StoreBusy, match=rf"process {holder.pid} writes, and is stopped: let it go on"):
                    room.send("q", "m")
            finally:
                holder.kill()
        assert room.receive("q").message is None
