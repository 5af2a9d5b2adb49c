"""Messages of a queue in files."""

from __future__ import annotations

import csv
from pathlib import Path

import apsw
import pyarrow.parquet
import pytest

import postroom
from postroom.errors import ArgumentInvalid
from postroom.exchange import message_writer
from postroom.room import Postroom


def test_csv_and_parquet_have_the_same(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_writer, "PAGE_ROWS", 2)
    room.queues.create("q")
    keys = [room.send("q", body, properties={"n": 1}).key for body in ('a "b",\nc', {"x": 1}, "é")]
    seen: list[tuple[int, int]] = []
    room.queues.export("q", tmp_path / "q.csv", progress=lambda done, total: seen.append((done, total)))
    room.queues.export("q", tmp_path / "q.parquet")
    assert seen == [(2, 3)]
    with (tmp_path / "q.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == keys
    assert [row["body"] for row in rows] == ['a "b",\nc', '{"x":1}', "é"]
    table = pyarrow.parquet.read_table(tmp_path / "q.parquet").to_pylist()
    assert [{name: value or "" for name, value in row.items()} for row in table] == rows
    room.receive("q")
    assert room.queues.export("q", tmp_path / "done.csv", processed=True).message_count == 1
    assert room.count("q").queues[0].unprocessed == 2, "they stay"
    with pytest.raises(ArgumentInvalid, match="exists"):
        room.queues.export("q", tmp_path / "q.csv")
    with pytest.raises(ArgumentInvalid, match=r"\.jsonl, \.csv or \.parquet"):
        room.queues.export("q", tmp_path / "q.txt")


def test_a_damaged_message_is_left_out_and_counted(sqlite_url: str, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send_many("q", ["1", "2"])
    apsw.Connection(sqlite_url).execute("UPDATE messages SET body = '3' WHERE body = '2'")
    with postroom.open(sqlite_url) as room:
        made = room.queues.export("q", tmp_path / "q.jsonl")
    assert (made.message_count, made.damaged_count) == (1, 1)
