"""Arrivals as a stream: offsets, spans and batches, as Spark's processes ask for them."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from postroom.engine.datasource import stream
from postroom.engine.datasource.frames import SCHEMA
from postroom.engine.datasource.stream import Offset, Stream
from postroom.room import Postroom
from postroom.spark import RoomSource

ALL = ReadAllAvailable()


@pytest.fixture
def queue(room: Postroom) -> str:
    room.queues.create("q")
    return "q"


def followed(url: str, **options: str) -> Stream:
    return RoomSource(CaseInsensitiveDict({"room": url, "queue": "q", **options})).streamReader(SCHEMA)


def bodies(reader: Stream, start: Offset, end: Offset) -> list[str]:
    task = copy.copy(reader)  # what Spark sends to a task
    found: list[Any] = [batch for span in reader.partitions(start, end) for batch in task.read(span)]
    return [body for batch in found for body in batch.column("body").to_pylist()]


def test_every_arrival_is_between_two_offsets(url: str, room: Postroom, queue: str) -> None:
    reader = followed(url)
    start = reader.initialOffset()
    assert start == {"journal": 0}
    room.send_many("q", ["a", "b"])
    middle = reader.latestOffset(start, ALL)
    room.receive("q")
    room.send("q", "c")
    end = reader.latestOffset(middle, ALL)
    assert bodies(reader, start, middle) == ["a", "b"], "processed or not"
    assert bodies(reader, middle, end) == ["c"]
    assert bodies(reader, start, end) == ["a", "b", "c"]
    assert reader.latestOffset(end, ALL) == end
    assert reader.partitions(end, end) == []
    reader.stop()


def test_a_batch_has_no_more_than_its_limit_and_is_cut_into_spans(url: str, room: Postroom, queue: str) -> None:
    reader = followed(url, maxPerBatch="4", partitions="2")
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    assert followed(url).getDefaultReadLimit() == ALL
    room.send_many("q", [str(number) for number in range(10)])
    offsets = [reader.initialOffset()]
    for _ in range(4):
        offsets.append(reader.latestOffset(offsets[-1], reader.getDefaultReadLimit()))
    assert offsets[3] == offsets[4]
    taken = [bodies(reader, start, end) for start, end in pairwise(offsets)]
    assert taken == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"], []]
    assert len(reader.partitions(offsets[0], offsets[3])) == 2
    reader.stop()


def test_pages_follow_each_other(url: str, room: Postroom, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PAGE_ROWS", 2)
    room.send_many("q", list("abcde"))
    reader = followed(url)
    assert bodies(reader, {"journal": 0}, reader.latestOffset({"journal": 0}, ALL)) == list("abcde")
    reader.stop()


def test_latest_starts_behind_what_is_there(url: str, room: Postroom, queue: str) -> None:
    room.send("q", "early")
    reader = followed(url, startingOffset="latest")
    start = reader.initialOffset()
    room.send("q", "late")
    assert bodies(reader, start, reader.latestOffset(start, ALL)) == ["late"]
    reader.stop()


def test_available_now_ends_at_what_was_there_when_it_began(url: str, room: Postroom, queue: str) -> None:
    reader = followed(url)
    room.send_many("q", ["a", "b"])
    reader.prepareForTriggerAvailableNow()
    room.send("q", "c")
    first = reader.latestOffset({"journal": 0}, ReadMaxRows(1))
    end = reader.latestOffset(first, ALL)
    assert bodies(reader, {"journal": 0}, end) == ["a", "b"]
    assert reader.latestOffset(end, ALL) == end
    other = followed(url)
    beyond = other.latestOffset(end, ALL)
    other.stop()
    assert reader.latestOffset(beyond, ALL) == beyond, "a query that was further already does not go back"
    reader.stop()


def test_a_message_that_left_is_left_out_wherever_it_went(url: str, room: Postroom, queue: str) -> None:
    room.queues.set_mode("q", keep_processed=False)
    room.send_many("q", ["gone", "here"])
    reader = followed(url)
    end = reader.latestOffset({"journal": 0}, ALL)
    room.receive("q")
    assert bodies(reader, {"journal": 0}, end) == ["here"]
    reader.stop()
    reader.stop()
