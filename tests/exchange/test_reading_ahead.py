"""A file that is read in another process: the same batches, the same errors, and no more of them than are wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from tests.exchange.test_bulk import lines, numbers

from postroom.errors import FileLineInvalid, FileUnreadable
from postroom.exchange import bulk, reading_ahead
from postroom.exchange.message_files import Options
from postroom.exchange.parts import Batch, Reading, batches
from postroom.exchange.reading_ahead import read_ahead
from postroom.limits import READ_AHEAD_BYTES
from postroom.room import Postroom


def reading(file: Path, begin: int = 0, size: int = 10) -> Reading:
    return Reading(file, Options(None, None, '{"from":"file"}'), "mine", begin, size, 1 << 20)


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_the_batches_are_those_that_are_read_here(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(95))
    file.write_text(file.read_text() + '{"n": "\\u00e9 \N{SNOWMAN}", "of": [1.50, null]}\n')
    for begin in (0, 7, 96):
        with read_ahead(reading(file, begin), READ_AHEAD_BYTES) as there:
            assert list(there) == list(batches(reading(file, begin)))
    csv = tmp_path / "a.csv"
    csv.write_text('id,name\n1,Bolt\n2,"a, b"\n')
    with read_ahead(reading(csv), READ_AHEAD_BYTES) as there:
        (batch,) = there
    assert [draft.body for draft in batch.drafts] == ['{"id":"1","name":"Bolt"}', '{"id":"2","name":"a, b"}']


def test_only_a_large_file_gets_a_process(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(10))
    with read_ahead(reading(file), READ_AHEAD_BYTES - 1) as there:
        assert not children()
        assert len(next(there).drafts) == 10
    with read_ahead(reading(file), READ_AHEAD_BYTES) as there:
        assert len(next(there).drafts) == 10
        assert len(children()) == 1


def test_an_error_comes_after_the_batches_before_it(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(25), bad=17)
    with read_ahead(reading(file), READ_AHEAD_BYTES) as there:
        assert len(next(there).drafts) == 10
        with pytest.raises(FileLineInvalid, match=r"a\.jsonl, line 18: the body is not JSON") as told:
            next(there)
    assert told.value.facts["line"] == 18
    with (
        read_ahead(reading(tmp_path / "none.jsonl"), READ_AHEAD_BYTES) as there,
        pytest.raises(FileUnreadable, match="No such file"),
    ):
        next(there)


def test_who_stops_early_leaves_no_process(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(200_000))
    with read_ahead(reading(file), READ_AHEAD_BYTES) as there:
        assert len(list(islice(there, 3))) == 3
    assert not children()
    with pytest.raises(KeyError), read_ahead(reading(file), READ_AHEAD_BYTES) as there:
        raise KeyError(next(there).place)
    assert not children()


def test_a_process_that_is_killed_is_told_and_what_it_had_read_stays_sent(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_ahead, "READ_AHEAD_BYTES", 1)
    monkeypatch.setattr(bulk, "BULK_MESSAGES", 1_000)
    room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(100_000))
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed:
            killed.extend(map(int, children()))
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(FileUnreadable, match="the process that read it ended with status -9"):
        room.queues.send_file("q", file, progress=kill)
    sent = len(numbers(room))
    assert sent % 1_000 == 0
    assert 0 < sent < 100_000
    again = room.queues.send_file("q", file)
    assert (again.sent_count, again.skipped_count) == (100_000 - sent, sent)
    assert numbers(room) == list(range(100_000))


def test_the_process_ends_with_who_asked_it(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(500_000))
    program = f"""
from pathlib import Path
from tests.exchange.test_reading_ahead import children, reading, read_ahead
with read_ahead(reading(Path({str(file)!r})), 1 << 30) as there:
    next(there)
    print(*children(), flush=True)
    input()
"""
    asking = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert asking.stdout is not None
    reader = Path("/proc", asking.stdout.readline().decode().strip())
    assert reader.exists()
    asking.kill()
    asking.communicate()
    until = time.monotonic() + 60
    while reader.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not reader.exists()


def test_a_batch_survives_the_way(tmp_path: Path) -> None:
    (batch,) = batches(reading(lines(tmp_path / "a.jsonl", range(10))))
    part, place, columns = reading_ahead._packed(batch)
    assert reading_ahead._unpacked(part, place, columns) == batch
    assert isinstance(batch, Batch)
