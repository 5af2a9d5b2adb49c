"""Messages as rows: the columns that a reader asked for, and what no longer says what was sent."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from postroom.engine.datasource.frames import COLUMNS, SCHEMA, Frames
from postroom.errors import ArgumentInvalid, MessageUnsound
from postroom.room import Postroom
from postroom.store.tables.scans import Found


@pytest.fixture
def found(sqlite_url: str) -> list[Found]:
    import postroom

    with postroom.open(sqlite_url) as room:
        return _sent(room)


def _sent(room: Postroom) -> list[Found]:
    room.queues.create("q")
    room.send("q", "first", properties={"p": 1, "t": "x"})
    room.send("q", "second")
    return [Found(0, 1, stored) for stored in room.store.read(lambda tx: list(tx.slices.queue("q")))]


def test_a_batch_has_every_column_of_a_message(found: list[Found]) -> None:
    rows = Frames(SCHEMA, "fail").batch(found).to_pylist()
    assert [row["body"] for row in rows] == ["first", "second"]
    assert dict(rows[0]["properties"]) == {"p": "1", "t": "x"}
    assert list(rows[0]) == list(COLUMNS)
    assert rows[0]["queue"] == "q"


def test_a_reader_gets_the_columns_that_it_asked_for(found: list[Found]) -> None:
    few = StructType([field for field in SCHEMA.fields if field.name in ("body", "key")])
    assert Frames(few, "fail").batch(found).schema.names == few.fieldNames()
    with pytest.raises(ArgumentInvalid, match="a message has no size bigint"):
        Frames(StructType([StructField("size", LongType())]), "fail")


def test_a_damaged_message_ends_the_reading_or_is_left_out(found: list[Found]) -> None:
    damaged = [found[0]._replace(stored=found[0].stored._replace(body="rot")), found[1]]
    with pytest.raises(MessageUnsound):
        Frames(SCHEMA, "fail").batch(damaged)
    assert [row["body"] for row in Frames(SCHEMA, "skip").batch(damaged).to_pylist()] == ["second"]
