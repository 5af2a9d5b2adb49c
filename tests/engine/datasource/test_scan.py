"""A queue read in partitions, as Spark's processes do it: real stores, the calls in Spark's order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.types import StructType

import postroom
from postroom.engine.datasource import scan
from postroom.engine.datasource.frames import SCHEMA
from postroom.engine.datasource.scan import Scan
from postroom.errors import ArgumentInvalid, MessageUnsound, QueueUnknown, RoomMissing
from postroom.model.types import Field, MessageType
from postroom.room import Postroom
from postroom.spark import RoomSource


def scanned(url: str, queue: str = "orders", schema: StructType = SCHEMA, **options: str) -> Scan:
    return RoomSource(CaseInsensitiveDict({"room": url, "queue": queue, **options})).reader(schema)


def rows(reading: Scan, partitions: Sequence[InputPartition] | None = None) -> list[dict[str, Any]]:
    parts = reading.partitions() if partitions is None else partitions
    return [row for part in parts for batch in reading.read(part) for row in batch.to_pylist()]


def keys(url: str, **options: Any) -> list[str]:
    return sorted(row["key"] for row in rows(scanned(url, **options)))


@pytest.fixture
def orders(room: Postroom) -> list[str]:
    """Ten messages, the first of them processed."""
    queue = room.queues.create("orders")
    sent = [queue.send(f"body {n}", properties={"n": n, "odd": n % 2 == 1, "no": None}).key for n in range(10)]
    queue.receive()
    return sent


def test_every_column_says_what_the_message_says(url: str, room: Postroom, orders: list[str]) -> None:
    found = {row["key"]: row for row in rows(scanned(url))}
    assert sorted(found) == orders
    for key, row in found.items():
        message = room.show(key)
        assert (row["queue"], row["type"], row["format"], row["body"]) == ("orders", None, "text", message.body)
        assert (row["created"], row["processed"], row["cause"]) == (message.created, message.processed, None)
        assert row["state"] == ("processed" if key == orders[0] else "unprocessed")
    assert found[orders[3]]["properties"] == [("n", "3"), ("no", None), ("odd", "true")]


def test_partitions_cut_a_queue_into_like_parts_and_each_message_is_in_one(url: str, orders: list[str]) -> None:
    reading = scanned(url, partitions="3")
    sizes = [len(rows(reading, [part])) for part in reading.partitions()]
    assert sorted(sizes) == [3, 3, 4]
    assert keys(url, partitions="3") == keys(url, partitions="99") == keys(url) == orders
    assert len(scanned(url, partitions="99").partitions()) == 10
    assert len(scanned(url).partitions()) == 1


def test_an_empty_queue_and_no_partition_are_empty_tables(url: str, room: Postroom) -> None:
    room.queues.create("orders")
    assert rows(scanned(url)) == []
    assert rows(scanned(url), [InputPartition(None)]) == []


def test_a_schema_chooses_columns(url: str, orders: list[str]) -> None:
    found = rows(scanned(url, schema=StructType([SCHEMA["state"], SCHEMA["key"]])))
    assert found[0] == {"state": "unprocessed", "key": orders[1]}
    with pytest.raises(ArgumentInvalid, match="a message has no key int; it has key string, queue string"):
        scanned(url, schema=StructType().add("key", "integer"))
    with pytest.raises(ArgumentInvalid, match="a message has no colour string"):
        scanned(url, schema=StructType().add("colour", "string"))


def test_filters_find_what_they_say(url: str, room: Postroom, orders: list[str]) -> None:
    room.definitions.define_type(MessageType("Note", (Field("Text"),)))
    note = room.send("orders", {"Text": "x"}, type="Note").key
    moment = room.show(orders[5]).created
    then, later = moment.isoformat(), (moment + timedelta(microseconds=1)).isoformat()

    def found(**options: str) -> list[str]:
        return keys(url, partitions="2", **options)

    assert found(state="processed") == orders[:1]
    assert found(state="unprocessed") == [*orders[1:], note]
    assert found(type="Note") == [note]
    assert found(type="Nothing") == []
    assert found(key=orders[3]) == [orders[3]]
    assert found(key=f"{orders[3]}, {orders[0]},{orders[3]},99999.00001") == [orders[0], orders[3]]
    assert found(key=f"{orders[3]},{orders[0]}", state="processed") == [orders[0]]
    assert found(key=f"{orders[3]},{orders[6]}", since=then) == [orders[6]]
    assert found(since=then) == [*orders[5:], note]
    assert found(until=then) == orders[:5]
    assert found(since=then, until=later) == [orders[5]]
    assert found(since=then, until=later, state="processed", type="Note") == []
    assert found(since=moment.replace(tzinfo=None).isoformat(), until=later) == [orders[5]], "without a zone it is UTC"


def test_a_message_of_another_queue_is_not_found_by_its_key(url: str, room: Postroom, orders: list[str]) -> None:
    other = room.queues.create("other").send("x").key
    assert keys(url, key=other) == []


def test_messages_processed_while_others_are_read_come_once(
    url: str, room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "PAGE_ROWS", 2)
    queue = room.queues.create("orders")
    sent = [queue.send(f"{n}").key for n in range(7)]
    reading = scanned(url)
    (part,) = reading.partitions()
    found: list[str] = []
    for batch in reading.read(part):
        found += batch.column("key").to_pylist()
        queue.receive()
    assert sorted(found) == sent


def test_what_comes_in_after_the_planning_may_be_read_too_but_never_twice(url: str, room: Postroom) -> None:
    queue = room.queues.create("orders")
    sent = [queue.send(f"{n}").key for n in range(4)]
    reading = scanned(url, partitions="2")
    parts = reading.partitions()
    late = queue.send("late").key
    assert sorted(row["key"] for row in rows(reading, parts)) == [*sent, late]


def test_a_message_that_rotted_stops_the_reading_or_is_left_out(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        queue = room.queues.create("orders")
        sent = [queue.send(f"body {n}").key for n in range(3)]
        rot = apsw.Connection(sqlite_url)
        rot.execute("UPDATE messages SET body = 'other' WHERE body = 'body 1'")
        rot.close()
        with pytest.raises(MessageUnsound, match=f"message {sent[1]} in orders does not match.*corrupt = skip"):
            keys(sqlite_url)
        assert keys(sqlite_url, corrupt="skip") == [sent[0], sent[2]]
        assert room.queues.accept("orders").queues[0].unprocessed == 3, "nothing is set aside by looking"


def test_a_message_that_was_set_aside_is_for_nobody(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        queue = room.queues.create("orders")
        queue.send("rots")
        sound = queue.send("sound").key
        rot = apsw.Connection(sqlite_url)
        rot.execute("UPDATE messages SET body = 'other' WHERE body = 'rots'")
        rot.close()
        with pytest.raises(postroom.PostroomError):
            queue.receive()
        assert keys(sqlite_url) == [sound]


def test_a_queue_is_found_by_name_or_path_and_a_retired_one_too(url: str, room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text("01 INPUT-QUEUE (M)\n 02 SUB-QUEUE-1 (A)\n99\n")
    room.load(tmp_path / "tree.qdl")
    sent = room.send(("M", "A"), "x").key
    assert keys(url, queue="M/A") == [sent]
    gone = room.queues.create("gone").send("y").key
    room.receive("gone")
    room.queues.remove("gone")
    assert keys(url, queue="gone") == [gone]
    with pytest.raises(QueueUnknown, match=r"there is no queue M/B; did you mean M/A\?"):
        keys(url, queue="M/B")


def test_no_room_is_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(RoomMissing):
        keys(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
