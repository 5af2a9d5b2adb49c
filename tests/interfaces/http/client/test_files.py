"""Files that are sent through a server: whole, in order and once, as into a room of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.test_bulk import lines, numbers
from tests.interfaces.http.conftest import Served

import postroom
import postroom.aio
from postroom.errors import (
    AnswerLost,
    ArgumentInvalid,
    BodyError,
    FileLineInvalid,
    QueueHeld,
    QueueUnknown,
    RightMissing,
)
from postroom.exchange.bulk import SentFile
from postroom.exchange.parts import Batch
from postroom.interfaces.http.client import files
from postroom.interfaces.http.client.files import RemoteIntake
from postroom.interfaces.http.client.remote import RemoteRoom

_DIGEST = "5e1f" * 8


@pytest.fixture
def remote(here: Served) -> Iterator[RemoteRoom]:
    with postroom.open(here.url, token=here.token) as room:
        assert isinstance(room, RemoteRoom)
        yield room


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BULK_LINES", 10)


def test_a_file_is_sent_in_order_and_once(here: Served, remote: RemoteRoom, tmp_path: Path) -> None:
    remote.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(25))
    seen: list[tuple[int, int]] = []
    sent = remote.queues.send_file("q", file, progress=lambda done, total: seen.append((done, total)))
    assert (sent, len(seen)) == (SentFile(str(file), "q", 25, 0), 3)
    assert remote.queues.send_file("q", file) == SentFile(str(file), "q", 0, 25)
    lines(file, range(33))
    assert remote.queues.send_file("q", file) == SentFile(str(file), "q", 8, 25)
    assert numbers(here.room) == list(range(33))
    assert remote.queues.send_file("q", file, idempotency_key="again").sent_count == 33


def test_at_an_invalid_row_the_batches_before_it_stay(here: Served, remote: RemoteRoom, tmp_path: Path) -> None:
    remote.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(25), bad=17)
    with pytest.raises(FileLineInvalid, match=r"a\.jsonl, line 18: the body is not JSON"):
        remote.queues.send_file("q", file)
    assert numbers(here.room) == list(range(10))
    assert remote.queues.send_file("q", lines(file, range(25))) == SentFile(str(file), "q", 15, 10)
    assert numbers(here.room) == list(range(25))


def test_messages_arrive_as_they_do_in_a_room_of_this_machine(here: Served, remote: RemoteRoom, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"body": 'a\u0001\U0001f600\u2028 \\ " text', "format": "text"},
        {"body": {"a": 1.10, "b": 12345678901234567890123}, "format": "json", "properties": {"p": "ü", "n": 1}},
        {"body": "<a b='1'>x</a>", "format": "xml"},
        {"body": ""},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for queue in ("local", "far"):
        here.room.queues.create(queue)
    here.room.queues.send_file("local", file, messages=True)
    remote.queues.send_file("far", file, messages=True)
    told = [
        [(message.body, message.format, message.type, message.properties) for message in here.room.peek(queue)]
        for queue in ("local", "far")
    ]
    assert told[0] == told[1]
    assert len(told[0]) == 4


def test_a_batch_whose_answer_was_lost_is_sent_once(
    here: Served, remote: RemoteRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(25))
    send = RemoteIntake.send

    def lost(self: RemoteIntake, batch: Batch) -> int:
        sent = send(self, batch)
        if batch.part.message_count == 20:
            raise AnswerLost(url=here.url, what="a part", why="the line was cut")
        return sent

    monkeypatch.setattr(RemoteIntake, "send", lost)
    with pytest.raises(AnswerLost):
        remote.queues.send_file("q", file)
    monkeypatch.setattr(RemoteIntake, "send", send)
    assert remote.queues.send_file("q", file) == SentFile(str(file), "q", 5, 20)
    assert numbers(here.room) == list(range(25))


def test_users_send_files_of_their_own(here: Served, remote: RemoteRoom, tmp_path: Path) -> None:
    """Nobody can keep another's file from being sent by naming its parts."""
    remote.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(5))
    assert remote.queues.send_file("q", file).sent_count == 5
    assert here.room.queues.send_file("q", file).sent_count == 5
    with postroom.open(here.url, token=here.user("ann", ("send", "q"))) as other:
        assert other.queues.sent_parts("q").parts == []
        assert other.queues.send_file("q", file).sent_count == 5
        assert other.queues.send_file("q", file).sent_count == 0
    assert len(remote.queues.sent_parts("q").parts) == len(here.room.queues.sent_parts("q").parts) == 1


def test_what_a_local_room_refuses_is_refused(here: Served, remote: RemoteRoom, tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(5))
    with pytest.raises(QueueUnknown):
        remote.queues.send_file("nowhere", file)
    remote.queues.create("q", password="pw")
    with postroom.open(here.url, token=here.user("bob", ("look", "q"))) as other, pytest.raises(RightMissing):
        other.queues.send_file("q", file)
    remote.queues.disable("q", password="pw", input_only=True)
    with pytest.raises(QueueHeld):
        remote.queues.send_file("q", file)
    assert here.room.count("q").queues[0].unprocessed == 0


@pytest.mark.parametrize(
    ("rows", "count", "digest", "why"),
    [
        ([], 1, _DIGEST, "rows: 1 to"),
        ([{}], 1, _DIGEST, "rows: row 1 does not have body, format, properties, type"),
        ([{"body": 1, "format": "json", "type": None, "properties": {}}], 1, _DIGEST, "rows: row 1"),
        ([{"body": "x", "format": None, "type": None, "properties": {}}], 1, _DIGEST, "rows: row 1"),
        ([{"body": "x", "format": "text", "type": 1, "properties": {}}], 1, _DIGEST, "rows: the type"),
        ([{"body": "x", "format": "text", "type": None, "properties": {}}], 0, _DIGEST, "message_count: at least 1"),
        ([{"body": "x", "format": "text", "type": None, "properties": {}}], 1, "5e:1", "digest: 32 hexadecimal"),
    ],
)
def test_a_part_that_is_none_is_refused_and_changes_nothing(
    here: Served, remote: RemoteRoom, rows: list[dict[str, Any]], count: int, digest: str, why: str
) -> None:
    remote.queues.create("q")
    for room in (remote, here.room):
        with pytest.raises(ArgumentInvalid, match=why):
            room.queues.send_part("q", rows, message_count=count, digest=digest)
    bad: list[dict[str, Any]] = [{"body": "{", "format": "json", "type": None, "properties": {}}]
    with pytest.raises(BodyError):
        remote.queues.send_part("q", bad, message_count=1, digest=_DIGEST)
    assert remote.queues.sent_parts("q").parts == []
    assert here.room.count("q").queues[0].unprocessed == 0


def test_a_task_sends_a_file(here: Served, tmp_path: Path) -> None:
    here.room.queues.create("q")
    file = lines(tmp_path / "a.jsonl", range(25))

    async def send() -> SentFile:
        async with postroom.aio.open(here.url, token=here.token) as room:
            return await room.queues.send_file("q", file)

    assert asyncio.run(send()) == SentFile(str(file), "q", 25, 0)
    assert numbers(here.room) == list(range(25))
