"""Rooms as a Spark data source, on both stores and a real Spark. What needs no Spark is tested beside this file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from postroom.room import Postroom
from postroom.spark import register, session


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    register(spark)


def read(spark: SparkSession, url: str, queue: str = "orders", **options: str) -> DataFrame:
    return spark.read.format("postroom").options(room=url, queue=queue, **options).load()


def write(frame: DataFrame, url: str, queue: str = "out", mode: str = "append", **options: str) -> None:
    frame.write.format("postroom").options(room=url, queue=queue, **options).mode(mode).save()


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue).messages]


@pytest.fixture
def orders(room: Postroom) -> list[str]:
    """Ten messages in a queue, the first of them processed, and an empty queue beside it."""
    queue = room.queues.create("orders")
    room.queues.create("out")
    keys = [queue.send({"number": n}, properties={"n": n, "who": "Æ"}).key for n in range(10)]
    queue.receive()
    return keys


def test_a_queue_is_a_table_and_a_table_goes_into_a_queue(
    spark: SparkSession, url: str, room: Postroom, orders: list[str]
) -> None:
    frame = read(spark, url, partitions="3")
    assert frame.rdd.getNumPartitions() == 3
    rows = {row.key: row for row in frame.collect()}
    assert sorted(rows) == orders
    second = rows[orders[1]]
    assert (second.queue, second.format, second.body, second.state) == ("orders", "json", '{"number":1}', "unprocessed")
    assert (second.properties, second.type, second.cause) == ({"n": "1", "who": "Æ"}, None, None)
    assert rows[orders[0]].state == "processed"
    made = room.show(orders[1]).created
    assert frame.where(f"created = timestamp'{made.isoformat()}'").select("key").collect() == [(orders[1],)]
    assert frame.where("state = 'unprocessed' AND body LIKE '%7%' AND properties['n'] = '7'").count() == 1
    write(frame.orderBy("key").select("body", "format", "properties"), url)
    copies = list(room.queues.info("out").messages)
    assert [message.value["number"] for message in copies] == list(range(10))
    assert copies[3].properties == {"n": "3", "who": "Æ"}
    assert len({message.created for message in copies}) == 1, "one commit has one time"


def test_a_filter_of_one_query_is_not_seen_by_the_next(spark: SparkSession, url: str, orders: list[str]) -> None:
    """Spark keeps what it pushed down to a Python source with the table; so nothing may be pushed."""
    frame = read(spark, url)
    done, waiting = frame.where("state = 'processed'"), frame.where("state = 'unprocessed'")
    assert [frame.count(), done.count(), frame.count(), done.union(waiting).count()] == [10, 1, 10, 10]
    assert read(spark, url, state="unprocessed", key=",".join(orders[:3])).count() == 2


def test_a_refusal_reaches_the_user_by_its_name(
    spark: SparkSession, url: str, room: Postroom, orders: list[str]
) -> None:
    with pytest.raises(PySparkException, match=r"QueueUnknown: there is no queue oders; did you mean orders\?"):
        read(spark, url, "oders").collect()
    frame = spark.createDataFrame([("{",), ("{}",)], "body string").withColumn("format", F.lit("json"))
    with pytest.raises(PySparkException, match="JsonMalformed: the body is not JSON"):
        write(frame, url)
    with pytest.raises(PySparkException, match="ArgumentInvalid: mode: a queue is only ever appended to"):
        write(frame, url, mode="overwrite")
    room.queues.remove("out")
    with pytest.raises(PySparkException, match="QueueUnknown: there is no queue out"):
        write(frame.where("body = '{}'"), url)


def test_a_session_from_the_package_knows_the_format(spark: SparkSession, url: str, orders: list[str]) -> None:
    same = session("local[2]")
    assert same.sparkContext is spark.sparkContext
    frame = same.read.format("postroom").option("queue", "orders").schema("key string, state string").load(url)
    assert sorted(frame.collect()) == [(key, "processed" if key == orders[0] else "unprocessed") for key in orders]


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
        query.awaitTermination(240)
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

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
    room.send("orders", "ten")
    room.receive("orders")  # being processed is no arrival
    assert flow.run() == [1]
    assert bodies(room, "out") == [*expected, "ten"]
    flow.forget_last_commit()
    room.send("orders", "eleven")
    assert flow.run() == [1, 1], "Spark repeats the batch"
    assert bodies(room, "out") == [*expected, "ten", "eleven"], "and it is known"
    shutil.rmtree(flow.checkpoint)
    assert sum(flow.run()) == 12
    assert len(bodies(room, "out")) == 24, "a new checkpoint is a new query: its batches are its own"


def test_a_running_stream_takes_what_comes_after_it_started(flow: Flow, room: Postroom, orders: list[str]) -> None:
    arrivals = flow.spark.readStream.format("postroom").options(room=flow.url, queue="orders", startingOffset="latest")
    sink = arrivals.load().select("body").writeStream.format("postroom").options(room=flow.url, queue="out")
    query = sink.option("checkpointLocation", str(flow.checkpoint)).start()
    query.processAllAvailable()
    assert bodies(room, "out") == []
    room.send_many("orders", ["a", "b"])
    query.processAllAvailable()
    query.stop()
    assert bodies(room, "out") == ["a", "b"]


def test_a_stream_that_cannot_be_says_why(flow: Flow, room: Postroom, orders: list[str]) -> None:
    with pytest.raises(PySparkException, match="QueueUnknown: there is no queue oders"):
        flow.start(source="oders").awaitTermination(120)
