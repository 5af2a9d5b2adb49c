"""Rooms as a Spark data source, on both stores and a real Spark: batches, streams, filters, and what is refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, LessThan, Not
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

import postroom
from postroom.engine.frames import SCHEMA, Frames
from postroom.engine.options import Place
from postroom.engine.scan import Scan
from postroom.model.types import Field, MessageType
from postroom.room import Postroom
from postroom.spark import RoomSource, register


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    register(spark)


def read(spark: SparkSession, url: str, queue: str = "orders", **options: str) -> DataFrame:
    return spark.read.format("postroom").options(room=url, queue=queue, **options).load()


def write(frame: DataFrame, url: str, queue: str = "out", mode: str = "append", **options: str) -> None:
    frame.write.format("postroom").options(room=url, queue=queue, **options).mode(mode).save()


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.info(queue).messages]


@pytest.fixture
def orders(room: Postroom) -> list[str]:
    """Ten messages in a queue, the first of them processed, and an empty queue beside it."""
    queue = room.create_queue("orders")
    room.create_queue("out")
    keys = [queue.send({"number": n}, properties={"n": n, "odd": n % 2 == 1, "who": "Æ"}).key for n in range(10)]
    queue.receive()
    return keys


def test_every_column_says_what_the_message_says(
    spark: SparkSession, url: str, room: Postroom, orders: list[str]
) -> None:
    rows = {row.key: row for row in read(spark, url).collect()}
    assert sorted(rows) == orders
    first, second = room.show(orders[0]), rows[orders[1]]
    assert (second.queue, second.type, second.format, second.body) == ("orders", None, "json", '{"number":1}')
    assert second.properties == {"n": "1", "odd": "true", "who": "Æ"}
    assert (second.state, second.processed, second.cause) == ("unprocessed", None, None)
    moments = {
        row.key: row
        for row in read(spark, url).select("key", F.unix_micros("created"), F.unix_micros("processed")).collect()
    }
    assert first.processed is not None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [(moment - epoch).total_seconds() * 1e6 for moment in (first.created, first.processed)]
    assert list(moments[orders[0]][1:]) == pytest.approx(micros, abs=1)
    assert rows[orders[0]].state == "processed"


def test_partitions_cut_a_queue_without_loss_and_a_schema_chooses_columns(
    spark: SparkSession, url: str, orders: list[str]
) -> None:
    frame = read(spark, url, partitions="3")
    assert frame.rdd.getNumPartitions() == 3
    sizes = frame.groupBy(F.spark_partition_id()).count().collect()
    assert sorted(row["count"] for row in sizes) == [3, 3, 4]
    few = (
        spark.read.format("postroom")
        .options(room=url, queue="orders", partitions="99")
        .schema("key string, state string")
    )
    assert sorted(few.load().collect()) == [(key, "processed" if key == orders[0] else "unprocessed") for key in orders]
    assert read(spark, url, "out").collect() == []


def test_filters_give_the_same_with_and_without_the_stores_help(
    spark: SparkSession, url: str, room: Postroom, orders: list[str]
) -> None:
    frame = read(spark, url)
    middle = room.show(orders[5]).created.isoformat()
    wishes = {
        "state = 'unprocessed'": 9,
        "state = 'nonsense'": 0,
        f"key = '{orders[3]}'": 1,
        f"key IN ('{orders[3]}', '{orders[0]}', 'no key')": 2,
        f"key IN ('{orders[3]}', '{orders[0]}') AND state = 'processed'": 1,
        f"created >= timestamp'{middle}'": 5,
        f"created < timestamp'{middle}' AND state = 'unprocessed'": 4,
        "type = 'Note'": 0,
        "type IS NULL AND properties['n'] = '3'": 1,
        "queue = 'orders' AND body LIKE '%7%' AND format = 'json'": 1,
        "state <> 'processed' OR key IS NULL": 9,
    }
    assert {wish: frame.where(wish).count() for wish in wishes} == wishes


def test_what_the_store_filters_is_not_filtered_again(spark: SparkSession, url: str, orders: list[str]) -> None:
    def plan(wish: str) -> str:
        return read(spark, url).where(wish)._jdf.queryExecution().executedPlan().toString()

    assert "Filter" in plan("body = 'x'").replace("RuntimeFilters", "")
    pushed = f"state = 'unprocessed' AND key = '{orders[0]}' AND type = 'T' AND created > timestamp'2020-01-01'"
    assert plan(pushed).replace("RuntimeFilters", "").count("Filter") == 1, "type may be null: Spark looks again"
    assert "isnotnull(type" in plan(pushed)


def test_filters_that_the_store_takes(sqlite_url: str) -> None:
    def left(*filters: Filter) -> list[Filter]:
        frames = Frames(StructType.fromDDL(SCHEMA), "fail")
        return Scan(Place(sqlite_url, "q"), frames, None).pushFilters(list(filters))

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert left(EqualTo(("state",), "x"), EqualTo(("key",), "k"), In(("key",), ("a", None)), IsNotNull(("key",))) == []
    assert left(GreaterThan(("created",), moment), LessThan(("created",), moment), EqualTo(("created",), moment)) == []
    others: list[Filter] = [
        GreaterThan(("created",), moment.replace(tzinfo=None)),
        GreaterThan(("key",), "00001.00001"),
        Not(EqualTo(("state",), "x")),
        IsNotNull(("type",)),
        EqualTo(("type",), None),
        EqualTo(("properties", "x"), "y"),
    ]
    assert left(*others) == others
    both = [EqualTo(("type",), "A"), EqualTo(("type",), "B")]
    assert left(*both) == both[1:]


def test_a_frame_written_is_one_commit_in_its_order(
    spark: SparkSession, url: str, room: Postroom, orders: list[str]
) -> None:
    room.define_type(MessageType("Note", (Field("Text"),)))
    before = room.show(orders[0])
    frame = (
        spark.range(7)
        .repartitionByRange(3, "id")
        .select(
            F.concat(F.lit('{"Text": "no '), "id", F.lit('"}')).alias("body"),
            F.lit("json").alias("format"),
            F.when(F.col("id") < 3, "Note").alias("type"),
            F.create_map(F.lit("n"), F.col("id")).alias("properties"),
        )
    )
    write(frame, url, actor="nightly")
    listing = list(room.info("out").messages)
    assert [message.value["Text"] for message in listing] == [f"no {n}" for n in range(7)]
    assert [message.type for message in listing] == ["Note"] * 3 + [None] * 4
    assert [message.properties for message in listing] == [{"n": n} for n in range(7)]
    assert len({message.created for message in listing}) == 1, "one commit has one time"
    assert room.trace(listing[0].key)[0].by == "nightly"
    assert before == room.show(orders[0])


def test_bytes_and_properties_as_json_are_taken(
    spark: SparkSession, room: Postroom, url: str, orders: list[str]
) -> None:
    frame = spark.createDataFrame([("<a/>", '{"n": 1.5, "b": null}'), ("<b/>", None)], "Body string, Properties string")
    write(frame.withColumn("Body", F.encode("Body", "UTF-8")).withColumn("format", F.lit("xml")).coalesce(1), url)
    found = list(room.info("out").messages)
    assert [(message.body, message.format.value, message.properties) for message in found] == [
        ("<a/>", "xml", {"n": 1.5, "b": None}),
        ("<b/>", "xml", {}),
    ]


def test_a_bad_row_leaves_nothing_behind(spark: SparkSession, url: str, room: Postroom, orders: list[str]) -> None:
    good = spark.createDataFrame([('{"a": 1}',)] * 5, "body string")
    bad = spark.createDataFrame([("{",)], "body string")
    with pytest.raises(PySparkException, match="JsonMalformed"):
        write(good.union(bad).withColumn("format", F.lit("json")), url)
    with pytest.raises(PySparkException, match="a row has none"):
        write(good.union(spark.createDataFrame([(None,)], "body string")), url)
    with pytest.raises(PySparkException, match="the text is not JSON"):
        write(good.withColumn("properties", F.lit("{")), url)
    with pytest.raises(PySparkException, match="not a JSON object"):
        write(good.withColumn("properties", F.lit("[]")), url)
    with pytest.raises(PySparkException, match="TypeUnknown"):
        write(good.withColumn("type", F.lit("Nothing")), url)
    assert bodies(room, "out") == []


def test_what_cannot_be_is_refused_by_name(spark: SparkSession, url: str, room: Postroom, orders: list[str]) -> None:
    frame = spark.createDataFrame([("x",)], "body string")
    room.create_queue("held", password="pw")
    room.disable("held", password="pw")
    refusals = {
        "only ever appended to": lambda: write(frame, url, mode="overwrite"),
        "QueueHeld: held is on hold": lambda: write(frame, url, "held"),
        "no queue oders; did you mean": lambda: write(frame, url, "oders"),
        "body and, if wanted, format, type, properties; key cannot be": lambda: write(
            frame.withColumn("key", F.lit("k")), url
        ),
        "a message is written from body": lambda: write(frame.select(F.lit("x").alias("type")), url),
        "column body: it is int, not text": lambda: write(frame.select(F.lit(1).alias("body")), url),
        "option actor: 1 to 100": lambda: write(frame, url, actor="\n"),
        "there is no queue oders; did you mean orders": lambda: read(spark, url, "oders").collect(),
        "option queue: give the name": lambda: spark.read.format("postroom").option("room", url).load().collect(),
        "option room: give the path": lambda: spark.read.format("postroom").option("queue", "q").load().collect(),
        "RoomMissing": lambda: read(spark, "/nowhere.db").collect(),
        "option partition: there is none; did you mean partitions": lambda: read(spark, url, partition="2").collect(),
        "option partitions: 'many' is not a number from 1": lambda: read(spark, url, partitions="many").collect(),
        "option corrupt: 'maybe' is not one of: fail, skip": lambda: read(spark, url, corrupt="maybe").collect(),
        "a message has no key int; it has key string": lambda: (
            spark.read.format("postroom").options(room=url, queue="orders").schema("key int").load().collect()
        ),
    }
    for words, refused in refusals.items():
        with pytest.raises(PySparkException) as told:
            refused()
        assert words in str(told.value)
    assert bodies(room, "out") == []


def test_a_queue_is_found_by_its_path_and_read_when_retired(
    spark: SparkSession, url: str, room: Postroom, tmp_path: Path
) -> None:
    (tmp_path / "tree.qdl").write_text("01 INPUT-QUEUE (M)\n 02 SUB-QUEUE-1 (A)\n99\n")
    room.load(tmp_path / "tree.qdl")
    write(spark.createDataFrame([("x",)], "body string"), url, "M/A")
    assert [row.body for row in read(spark, url, "M/A").collect()] == ["x"]
    room.create_queue("gone").send("y")
    room.receive("gone")
    room.remove_queue("gone")
    assert [row.body for row in read(spark, url, "gone").collect()] == ["y"]


def test_a_message_that_rotted_stops_the_reading_or_is_left_out(
    spark: SparkSession, sqlite_url: str, tmp_path: Path
) -> None:
    import apsw

    with postroom.open(sqlite_url) as room:
        queue = room.create_queue("orders")
        keys = [queue.send(f"body {n}").key for n in range(3)]
        rot = apsw.Connection(sqlite_url)
        rot.execute("UPDATE messages SET body = 'other' WHERE body = 'body 1'")
        rot.close()
        with pytest.raises(PySparkException, match=rf"MessageUnsound: message {keys[1]} in orders"):
            read(spark, sqlite_url).collect()
        assert [row.key for row in read(spark, sqlite_url, corrupt="skip").collect()] == [keys[0], keys[2]]
        assert bodies(room, "orders") == ["body 0", "", "body 2"], "nothing was set aside by looking"


# --- streams ---


class Flow:
    """A stream from one queue to another, run until all that is there has gone through."""

    def __init__(self, spark: SparkSession, url: str, folder: Path) -> None:
        self.spark = spark
        self.url = url
        self.checkpoint = folder / "checkpoint"

    def start(self, source: str = "orders", queue: str = "out", **options: str) -> StreamingQuery:
        arrivals = self.spark.readStream.format("postroom").options(room=self.url, queue=source, **options).load()
        sink = arrivals.select("body", "format").writeStream.format("postroom").options(room=self.url, queue=queue)
        return sink.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()

    def run(self, **options: str) -> list[int]:
        """Rows per batch."""
        query = self.start(**options)
        query.awaitTermination(120)
        return [progress.numInputRows for progress in query.recentProgress]

    def forget_last_commit(self) -> None:
        commits = self.checkpoint / "commits"
        newest = max(int(name) for name in os.listdir(commits) if name.isdigit())
        for name in (str(newest), f".{newest}.crc"):
            (commits / name).unlink(missing_ok=True)


@pytest.fixture
def flow(spark: SparkSession, url: str, tmp_path: Path) -> Iterator[Flow]:
    yield Flow(spark, url, tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_a_stream_goes_on_where_it_stopped_and_a_repeated_batch_is_written_once(
    flow: Flow, room: Postroom, orders: list[str]
) -> None:
    expected = [f'{{"number":{n}}}' for n in range(10)]
    assert flow.run(maxPerBatch="4", partitions="2") == [4, 4, 2]
    assert bodies(room, "out") == expected, "processed messages came in too"
    assert flow.run() == []
    room.send("orders", "ten")
    room.receive("orders")  # being processed is no arrival
    assert flow.run() == [1]
    assert bodies(room, "out") == [*expected, "ten"]
    flow.forget_last_commit()
    room.send("orders", "eleven")
    assert flow.run() == [1, 1], "Spark repeats the batch"
    assert bodies(room, "out") == [*expected, "ten", "eleven"], "and it is known"


def test_a_new_checkpoint_is_a_new_stream_and_latest_starts_at_the_end(
    flow: Flow, room: Postroom, orders: list[str]
) -> None:
    assert flow.run(startingOffset="latest") == []
    room.send("orders", "late")
    assert flow.run(startingOffset="latest") == [1]
    shutil.rmtree(flow.checkpoint)
    assert sum(flow.run()) == 11
    assert len(bodies(room, "out")) == 12, "the batches of another query are not taken for these"


def test_a_message_that_left_before_it_was_read_is_left_out(flow: Flow, room: Postroom) -> None:
    room.create_queue("out")
    queue = room.create_queue("orders", keep_processed=False)
    for body in ("gone", "here"):
        queue.send(body)
    queue.receive()
    assert flow.run() == [1]
    assert bodies(room, "out") == ["here"]


def test_a_running_stream_takes_what_comes(flow: Flow, room: Postroom, orders: list[str]) -> None:
    arrivals = flow.spark.readStream.format("postroom").options(room=flow.url, queue="orders").load()
    sink = arrivals.select("body").writeStream.format("postroom").options(room=flow.url, queue="out")
    query = sink.option("checkpointLocation", str(flow.checkpoint)).start()
    query.processAllAvailable()
    assert len(bodies(room, "out")) == 10
    room.send_many("orders", ["a", "b"])
    room.send("out", "from elsewhere")
    query.processAllAvailable()
    query.stop()
    assert bodies(room, "out")[10:] in (["from elsewhere", "a", "b"], ["a", "b", "from elsewhere"])
    assert room.receive("out")


def test_a_stream_that_cannot_be_says_why(flow: Flow, room: Postroom, orders: list[str]) -> None:
    with pytest.raises(PySparkException, match="there is no queue oders"):
        flow.start(source="oders").awaitTermination(60)
    with pytest.raises(PySparkException, match="option maxPerBatch: '0' is not a number"):
        flow.start(maxPerBatch="0").awaitTermination(60)
    with pytest.raises(PySparkException, match="option startingOffset"):
        flow.start(startingOffset="middle").awaitTermination(60)
    with pytest.raises(PySparkException, match="there is no queue oot"):
        flow.start(queue="oot").awaitTermination(60)
    assert bodies(room, "out") == []


def test_the_source_has_one_name() -> None:
    assert RoomSource.name() == "postroom"
