"""Rows become messages in a task and are committed by the driver, as Spark's processes do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, MapType, StringType, StructType

from postroom.engine.datasource.sink import BatchSink, Made, StreamSink
from postroom.errors import ArgumentInvalid, JsonMalformed, PropertyInvalid, TextInvalid
from postroom.room import Postroom
from postroom.spark import RoomSource

BODY = StructType().add("body", "string")


def sink(url: str, schema: StructType = BODY, **options: str) -> BatchSink:
    return RoomSource(CaseInsensitiveDict({"room": url, "queue": "q", **options})).writer(schema, overwrite=False)


def stream(url: str) -> StreamSink:
    options = {"room": url, "queue": "q", "checkpointLocation": "/somewhere"}
    return RoomSource(CaseInsensitiveDict(options)).streamWriter(BODY, overwrite=False)


def batches(**columns: list[Any]) -> Iterator[pyarrow.RecordBatch]:
    yield pyarrow.RecordBatch.from_pydict(columns)


def bodies(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.info("q").messages]


@pytest.fixture(autouse=True)
def _queue(request: pytest.FixtureRequest) -> None:
    if "room" in request.fixturenames:
        request.getfixturevalue("room").queues.create("q")


def test_tasks_write_nothing_and_the_commit_everything_in_order(url: str, room: Postroom) -> None:
    writer = sink(url)
    made = [writer.write(batches(body=["a", "b"])), writer.write(iter(())), writer.write(batches(body=["c"]))]
    assert bodies(room) == []
    writer.commit([*made])
    assert bodies(room) == ["a", "b", "c"]
    writer.abort([made[0], None])
    assert bodies(room) == ["a", "b", "c"]


def test_columns_in_any_order_and_case_with_what_is_missing_left_to_its_default(url: str, room: Postroom) -> None:
    schema = (
        StructType().add("Properties", "string").add("BODY", "binary").add("Format", "string").add("type", "string")
    )
    writer = sink(url, schema, actor="nightly")
    rows = batches(
        Properties=['{"n": 1.5, "b": null}', None],
        BODY=[b"<a/>", "é".encode()],
        Format=["xml", None],
        type=[None, None],
    )
    writer.commit([writer.write(rows)])
    found = list(room.queues.info("q").messages)
    assert [(message.body, message.format.value, message.properties) for message in found] == [
        ("<a/>", "xml", {"n": 1.5, "b": None}),
        ("é", "text", {}),
    ]
    assert room.trace(found[0].key)[0].by == "nightly"


def test_properties_may_be_a_map(url: str, room: Postroom) -> None:
    schema = StructType().add("body", "string").add("properties", MapType(StringType(), LongType()))
    writer = sink(url, schema)
    pairs = pyarrow.array([[("n", 1), ("m", None)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64()))
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(["a", "b"]), pairs], names=["body", "properties"])
    writer.commit([writer.write(iter([batch]))])
    assert [message.properties for message in room.queues.info("q").messages] == [{"n": 1, "m": None}, {}]


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"body": [None]}, ArgumentInvalid, "column body: a row has none"),
        ({"body": ["{"], "format": ["json"]}, JsonMalformed, "the body is not JSON"),
        ({"body": ["x"], "format": ["pdf"]}, TextInvalid, "'pdf' is not a format"),
        ({"body": ["x"], "properties": ["{"]}, PropertyInvalid, "the text is not JSON"),
        ({"body": ["x"], "properties": ["[1]"]}, PropertyInvalid, "the text is not a JSON object"),
        ({"body": ["x"], "properties": ['{"a": [1]}']}, PropertyInvalid, "a value is a string, a number"),
    ],
)
def test_a_bad_row_fails_its_task(row: dict[str, list[Any]], error: type[Exception], words: str) -> None:
    schema = StructType()
    for name in row:
        schema.add(name, "string")
    with pytest.raises(error, match=words):
        sink("room.db", schema).write(batches(**row))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"type": "string"}, "a message is written from body and, if wanted, format, type, properties"),
        ({"body": "string", "key": "string", "x": "string"}, "format, type, properties; key, x cannot be"),
        ({"body": "integer"}, "column body: it is int, not text"),
        ({"body": "string", "format": "binary"}, "column format: it is binary, not text"),
        ({"body": "string", "properties": "double"}, "column properties: it is double, not text"),
    ],
)
def test_a_table_that_is_no_messages_is_refused(columns: dict[str, str], words: str) -> None:
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    with pytest.raises(ArgumentInvalid) as refused:
        sink("room.db", schema)
    assert words in str(refused.value)


def test_a_queue_is_not_overwritten() -> None:
    source = RoomSource(CaseInsensitiveDict({"room": "room.db", "queue": "q"}))
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(ArgumentInvalid, match="mode: a queue is only ever appended to"):
            writer(BODY, overwrite=True)


def test_a_batch_of_a_stream_is_written_once(url: str, room: Postroom) -> None:
    writer = stream(url)
    made = writer.write(batches(body=["a"]))
    assert made.query is None, "there is no query here"
    made.query = "the query"
    for _ in range(2):
        writer.commit([made], 7)
    writer.commit([Made([], "the query")], 8)
    assert bodies(room) == ["a"]
    made.query = None
    with pytest.raises(ArgumentInvalid, match="does not tell which query"):
        writer.commit([made], 9)
