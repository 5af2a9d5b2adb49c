"""A disk that is really full: a small one in memory, filled up to a few pages. Sending is refused, all else goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

import postroom
from postroom.errors import StoreFull
from postroom.limits import LOOK_SECONDS, RESERVE_BYTES, RESERVE_OPEN_BYTES

SCRIPT = r"""
import errno, os, shutil, sys, time
from pathlib import Path
import postroom
from postroom.engine.archiving import archive
from postroom.errors import StoreFull
from postroom.limits import RESERVE_BYTES
from tests.faults.upkeep_workload import write_here
disk = Path(sys.argv[1])
first, last, step = map(int, sys.argv[2:5])

def fill(free_pages):
    handle = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
    size = 0
    for block in (1 << 20, 4096):
        try:
            while True: size += os.write(handle, bytes(block))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    os.ftruncate(handle, max(0, os.fstat(handle).st_size - free_pages * 4096))
    os.close(handle)

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def one(free_pages, was_open):
    for old in disk.iterdir(): shutil.rmtree(old) if old.is_dir() else old.unlink()
    url = str(disk / "room.db")
    def begin():
        with postroom.open(url) as room:
            room.queues.create("q")
            for number in range(60): room.send("q", f"{number} " + "x" * 2000)
    if was_open:
        begin()
        room = postroom.open(url)
        assert room.send("q", "60 " + "x" * 2000).key
    else:
        in_child(begin)
    fill(free_pages)
    sent = 61 if was_open else 60
    if not was_open: room = postroom.open(url)  # there is neither a log nor its index
    assert len(list(room.queues.info("q"))) == sent
    refused = 0
    while refused < 3:
        try:
            room.send("q", f"{sent} " + "x" * 2000)
            sent += 1
        except StoreFull as full:
            assert full.happened == "no"
            refused += 1
    got = []
    def take(room, count):
        for number in range(count):  # in three ways: at once, confirmed when it was written, and as a lease
            message = room.receive("q", lease=30).message if number % 3 == 2 else None
            told = []
            if message is None:
                message = room.receive("q", **({"deliver": told.append} if number % 3 else {})).message
            else:
                message.done()
            assert message is not None and len(told) == (number % 3 == 1)
            got.append(int(message.body.split()[0]))
    take(room, 20)
    def other():
        with postroom.open(url) as mine:
            assert len(list(mine.queues.info("q"))) == sent - 20
            take(mine, 5)
            try: mine.send("q", "more")
            except StoreFull: pass
            else: raise AssertionError("the reserve was used to send")
    in_child(other)
    take(room, 5)
    room.close()
    def again():  # all were closed: there is no log any more
        with postroom.open(url) as mine:
            assert len(list(mine.queues.info("q"))) == sent - 30
            take(mine, 5)
    in_child(again)
    room = postroom.open(url)
    outside = disk.parent / f"archives {free_pages} {was_open}"
    archives = archive(room.store, room.store.read(lambda tx: tx.now), outside, write_here)
    assert archives and room.store.read(lambda tx: tx.journal.archives.all()) == archives
    take(room, 1)
    assert got == [*range(20), *range(25, 30), 35], got
    (disk / "filler").unlink()
    time.sleep(0.6)
    room.send("q", "after")
    assert Path(url + "-reserve").stat().st_size >= RESERVE_BYTES
    bodies = [message.body.split()[0] for message in room.queues.info("q")]
    assert bodies == [*map(str, range(36, sent)), "after"], bodies
    assert not room.journal.verify().differences
    room.close()
    return sent

for pages in range(first, last, step):
    for was_open in (True, False):
        print(pages, was_open, one(pages, was_open), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="to mount a small disk takes root")
@pytest.mark.parametrize(
    ("first", "last", "step"), [(0, 12, 5), pytest.param(0, 260, 1, marks=pytest.mark.slow)], ids=["slice", "whole"]
)
def test_on_a_full_disk_receiving_and_reading_go_on(tmp_path: Path, first: int, last: int, step: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = f'mount -t tmpfs -o size=24m none "{disk}" && exec "$@"'
    ours = [sys.executable, "-c", SCRIPT, str(disk), str(first), str(last), str(step)]
    out = subprocess.run(["unshare", "-m", "sh", "-c", mounted, "sh", *ours], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr[-3000:]
    assert len(out.stdout.splitlines()) == 2 * len(range(first, last, step))


def test_who_adds_to_the_room_is_refused_while_the_reserve_is_given_up(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = Path(sqlite_url + "-reserve")
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as other:
        room.queues.create("q")
        room.send("q", "x")
        assert reserve.stat().st_size == RESERVE_BYTES
        assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES  # space, not a hole
        os.truncate(reserve, RESERVE_OPEN_BYTES)  # as a process does that finds the disk full
        sleep(LOOK_SECONDS)
        monkeypatch.setattr("postroom.store.files.reserve._allocate", no_space)
        for act in (lambda: room.send("q", "y"), lambda: other.send_many("q", ["y"]), lambda: room.queues.create("r")):
            with pytest.raises(StoreFull, match="kept for receiving"):
                act()
        assert other.receive("q").message is not None
        monkeypatch.undo()
        monkeypatch.setattr("postroom.store.files.reserve.RESERVE_SECONDS", 0.0)
        assert room.send("q", "z").key
        assert reserve.stat().st_size == RESERVE_BYTES


def no_space(handle: int, begin: int, end: int) -> None:
    raise OSError(28, "No space left on device")


def test_the_reserve_grows_with_the_log(sqlite_url: str) -> None:
    reserve, log = Path(sqlite_url + "-reserve"), Path(sqlite_url + "-wal")
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send_many("q", ["x" * 1_000_000] * 20)
        assert reserve.stat().st_size >= log.stat().st_size + RESERVE_BYTES
    with postroom.open(sqlite_url):
        assert reserve.stat().st_size == RESERVE_BYTES


def test_a_reserve_that_somebody_removed_is_made_again(sqlite_url: str) -> None:
    reserve = Path(sqlite_url + "-reserve")
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        reserve.unlink()
        sleep(LOOK_SECONDS)
        assert room.send("q", "x").key
        assert reserve.stat().st_size == RESERVE_BYTES
