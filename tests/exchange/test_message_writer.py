"""Messages of a queue in files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import apsw
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import postroom
from postroom.errors import ArgumentInvalid
from postroom.exchange import message_writer
from postroom.model.body import json_text
from postroom.model.message import Message, Stored
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
    for name in ("q.txt", "q.xlsx", "q"):
        with pytest.raises(ArgumentInvalid, match=r"written as \.jsonl, \.csv or \.parquet$"):
            room.queues.export("q", tmp_path / name)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


MOMENTS = st.integers(0, 2**50)
PROPERTIES = st.dictionaries(st.sampled_from(["a", "é"]), TEXTS | st.integers(-9, 9) | st.none(), max_size=2)
JSON = st.sampled_from(['{"n":1.50,\n"x":[]}', '"\u2028 \\" "', "1e5", '[{"a": "\\u00e9"}]', "[1,\r2]"])


@given(
    TEXTS.map(lambda text: (text, "text")) | JSON.map(lambda text: (text, "json")),
    PROPERTIES,
    MOMENTS,
    st.none() | MOMENTS,
    st.none() | TEXTS,
    st.none() | st.integers(1, 10**9),
    st.booleans(),
)
def test_a_line_is_what_the_message_is_in_json(
    said: tuple[str, str],
    properties: dict[str, Any],
    created: int,
    processed: int | None,
    type: str | None,
    cause: int | None,
    blocked: bool,
) -> None:
    body, form = said
    own = json_text(properties)
    stored = Stored(400001, 'a"é', created, processed, type, form, body, b"", own, cause, 1, 1, 1)
    message = Message(stored, blocked=blocked)
    line = message_writer._line(message)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert json.loads(line) == message.as_dict()


def test_a_number_keeps_its_digits_and_a_body_of_several_lines_is_one(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    for body in ('{"price":12.50}', '{\n"price": 1}'):
        room.send("q", body, format="json")
    room.queues.export("q", tmp_path / "q.jsonl")
    first, second = (tmp_path / "q.jsonl").read_text().splitlines()
    assert '"body": {"price":12.50}, "properties": {}' in first
    assert '"body": {"price": 1}, "properties": {}' in second


def test_rows_of_parquet_are_written_in_groups(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room.queues.create("q")
    room.send_many("q", [f"{number}" * 10 for number in range(7)])
    monkeypatch.setattr(message_writer, "BULK_MESSAGES", 3)
    room.queues.export("q", tmp_path / "rows.parquet")
    monkeypatch.setattr(message_writer, "BULK_BYTES", 20)
    room.queues.export("q", tmp_path / "bytes.parquet")
    for name, groups in (("rows", 3), ("bytes", 4)):
        with pyarrow.parquet.ParquetFile(tmp_path / f"{name}.parquet") as file:
            assert (file.metadata.num_row_groups, file.metadata.num_rows) == (groups, 7)


def test_a_damaged_message_is_left_out_and_counted(sqlite_url: str, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send_many("q", ["1", "2"])
    apsw.Connection(sqlite_url).execute("UPDATE messages SET body = '3' WHERE body = '2'")
    with postroom.open(sqlite_url) as room:
        made = room.queues.export("q", tmp_path / "q.jsonl")
    assert (made.message_count, made.damaged_count) == (1, 1)
