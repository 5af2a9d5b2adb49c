"""A file that is read in another process: the same batches, the same errors, and no more of them than are wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.exchange.test_bulk import lines, numbers

from postroom.errors import FileLineInvalid, FileUnreadable
from postroom.exchange import bulk, reading_ahead
from postroom.exchange.message_files import Options
from postroom.exchange.parts import Batch, Reading, batches
from postroom.exchange.reading_ahead import read_ahead
from postroom.limits import READ_AHEAD_BYTES
from postroom.model.body import Format
from postroom.room import Postroom


def reading(file: Path, begin: int = 0, options: Options = Options(properties='{"from":"file"}')) -> Reading:  # noqa: B008
    return Reading(file, options, "mine", begin, 10, 1 << 20)


def there(asked: Reading, size: int = READ_AHEAD_BYTES, use: Callable[[], None] = lambda: None) -> list[Batch]:
    found: list[Batch] = []

    def take(batch: Batch) -> None:
        found.append(batch)
        use()

    read_ahead(asked, size, take)
    return found


def readers() -> list[int]:
    """The processes that read files for this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(child) for child in children if b"reading_ahead" in Path("/proc", child, "cmdline").read_bytes()]


def test_the_batches_are_those_that_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lines(tmp_path / "a.jsonl", range(95))
    file.write_text(file.read_text() + '{"n": "\\u00e9 \N{SNOWMAN}\N{GRINNING FACE}\u2028", "of": [1.50, null]}\n')
    for begin in (0, 7, 96):
        assert there(reading(file, begin)) == list(batches(reading(file, begin)))
    monkeypatch.chdir(tmp_path)
    assert there(reading(Path("a.jsonl"))) == list(batches(reading(file)))
    whole = tmp_path / "whole.jsonl"
    whole.write_text('{"body": "one\\ntwo", "format": "text", "properties": {"p": 1}}\n{"body": [1], "type": "T"}\n')
    whole_messages = reading(whole, options=Options(messages=True))
    assert [draft.body for draft in there(whole_messages)[0].drafts] == ["one\ntwo", "[1]"]
    assert there(whole_messages) == list(batches(whole_messages))
    texts = tmp_path / "a.txt"
    texts.write_text("<a/>\n<b>\n")
    xml = reading(texts, options=Options(Format.XML))
    with pytest.raises(FileLineInvalid, match=r"a\.txt, line 2: the body is not"):
        there(xml)


def test_only_a_large_file_gets_a_process(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(10))
    before = readers()
    assert len(there(reading(file), READ_AHEAD_BYTES - 1)) == 1
    assert readers() == before
    assert len(there(reading(file), READ_AHEAD_BYTES)) == 1
    assert len(readers()) == 1


def test_an_error_comes_after_the_batches_before_it(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(25), bad=17)
    had: list[int] = []
    with pytest.raises(FileLineInvalid, match=r"a\.jsonl, line 18: the body is not JSON") as told:
        there(reading(file), use=lambda: had.append(10))
    assert (told.value.facts["line"], had) == (18, [10])
    with pytest.raises(FileUnreadable, match="No such file"):
        there(reading(tmp_path / "none.jsonl"))


def test_an_error_of_the_receiver_is_its_own_and_ends_the_reading(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(200_000))
    used: list[int] = []

    def use() -> None:
        used.append(1)
        raise KeyError("full")

    with pytest.raises(KeyError, match="full"):
        there(reading(file), use=use)
    assert used == [1]
    assert not readers()


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
            killed.extend(readers())
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(FileUnreadable, match="the process that read it was killed"):
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
from tests.exchange.test_reading_ahead import readers, reading, there
there(reading(Path({str(file)!r})), use=lambda: input(f"{{readers()[0]}}\\n"))
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
