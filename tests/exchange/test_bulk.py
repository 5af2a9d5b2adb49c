"""Files of messages, sent in batches: whole, in order, and once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import postroom
from postroom.errors import FileLineInvalid, FileUnreadable, QueueUnknown, TypeUnknown
from postroom.exchange import bulk
from postroom.exchange.bulk import SentFile
from postroom.room import Postroom


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BULK_MESSAGES", 10)


def lines(file: Path, numbers: range, bad: int | None = None) -> Path:
    file.write_text("".join("{\n" if number == bad else f'{{"n": {number}}}\n' for number in numbers))
    return file


def numbers(room: Postroom, queue: str = "q") -> list[int]:
    return [message.value["n"] for message in room.peek(queue)]


def test_a_file_is_sent_in_order_and_once(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    room.queues.create("other")
    file = lines(tmp_path / "a.jsonl", range(25))
    seen: list[tuple[int, int]] = []
    sent = room.queues.send_file("q", file, progress=lambda done, total: seen.append((done, total)))
    assert sent == SentFile(str(file), "q", 25, 0)
    assert numbers(room) == list(range(25))
    assert len(seen) == 3
    assert seen[-1] == (file.stat().st_size,) * 2
    file = file.rename(tmp_path / "b.jsonl")
    assert room.queues.send_file("q", file) == SentFile(str(file), "q", 0, 25)
    assert room.queues.send_file("other", file).sent_count == 25, "another queue has not had it"
    assert room.queues.send_file("q", file, idempotency_key="again").sent_count == 25
    assert room.queues.send_file("q", file, idempotency_key="again").sent_count == 0
    assert room.queues.send_file("q", file, properties={"p": 1}).sent_count == 25, "these are other messages"


def test_a_file_goes_on_after_it_was_corrected_or_grew(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(25), bad=17)
    with pytest.raises(FileLineInvalid, match=r"a\.jsonl, line 18: the body is not JSON"):
        room.queues.send_file("q", file)
    assert numbers(room) == list(range(10)), "what a batch had is sent whole or not at all"
    lines(file, range(25))
    assert room.queues.send_file("q", file) == SentFile(str(file), "q", 15, 10)
    lines(file, range(33))
    assert room.queues.send_file("q", file) == SentFile(str(file), "q", 8, 25)
    assert numbers(room) == list(range(33))
    lines(file, range(5, 33))
    assert room.queues.send_file("q", file).sent_count == 28, "with another beginning it is another file"


def test_two_that_send_the_same_file_send_it_once(room: Postroom, url: str, tmp_path: Path) -> None:
    room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(35))
    with postroom.open(url) as other:

        def meanwhile(done: int, _: int) -> None:
            if len(numbers(room)) == 10:
                other.queues.send_file("q", file)

        sent = room.queues.send_file("q", file, progress=meanwhile)
    assert sent == SentFile(str(file), "q", 10, 25)
    assert numbers(room) == list(range(35))


_SENDER = """
import sys, postroom
from postroom.exchange import bulk
bulk.BULK_MESSAGES = 10
with postroom.open(sys.argv[1]) as room:
    room.queues.send_file("q", sys.argv[2], progress=lambda done, total: print(done, flush=True))
"""


def test_a_kill_loses_nothing_and_doubles_nothing(room: Postroom, url: str, tmp_path: Path) -> None:
    room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(3000))
    for attempt in count():
        sender = subprocess.Popen([sys.executable, "-c", _SENDER, url, str(file)], stdout=subprocess.PIPE, text=True)
        assert sender.stdout is not None
        with sender.stdout as told:
            for _ in range(40):
                told.readline()
            if attempt < 2:
                os.kill(sender.pid, signal.SIGKILL)
                sender.wait()
                assert 0 < len(numbers(room)) < 3000
                continue
            told.read()
        assert sender.wait() == 0
        break
    assert numbers(room) == list(range(3000))
    assert room.journal.verify().differences == ()


def test_rows_are_checked_as_a_send_checks_them(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(3))
    for error, queue, name, options in (
        (QueueUnknown, "nowhere", file.name, {}),
        (FileUnreadable, "q", "missing.jsonl", {}),
        (TypeUnknown, "q", file.name, {"type": "ORDER"}),
    ):
        with pytest.raises(error):
            room.queues.send_file(queue, tmp_path / name, **options)  # type: ignore[arg-type]
    assert numbers(room) == []


def test_what_an_export_writes_comes_back(room: Postroom, tmp_path: Path) -> None:
    for name in ("q", "copy"):
        room.queues.create(name)
    room.send("q", "plain\ntext é", properties={"a": 1, "b": None})
    room.send("q", "<x>1</x>", format="xml")
    room.send_many("q", [{"n": number} for number in range(20)])
    made = room.queues.export("q", tmp_path / "q.jsonl")
    assert (made.message_count, made.damaged_count) == (22, 0)
    assert room.queues.send_file("copy", tmp_path / "q.jsonl", messages=True).sent_count == 22

    def said(queue: str) -> list[tuple[str, str, object]]:
        return [(message.body, message.format, message.properties) for message in room.peek(queue)]

    assert said("copy") == said("q")
    assert json.loads((tmp_path / "q.jsonl").read_text().splitlines()[2])["body"] == {"n": 0}
