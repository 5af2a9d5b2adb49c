"""A stream from start to end: what is missing is told, it stops when it is asked to, and follows the graph."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.flows.streams import kafka
from tests.flows.streams.conftest import Folders

import postroom
from postroom.engine.spark.internals import SOURCE_EVOLUTION
from postroom.errors import StreamCheckpoint, StreamFailed, StreamPackageMissing
from postroom.flows.streams import running
from postroom.flows.streams.totals import StreamTotals
from postroom.room import Postroom

GRAPH = """
domain d
space In : [n: int] from files "data/in" format json
space Out : [n: int] to files "data/out" format json
space Kept : [n: int]
arc out : In -> Out transform [n: n] => [n: n * 10]
arc kept : In -> Kept merge
"""


def load(room: Postroom, tmp_path: Path, text: str = GRAPH) -> None:
    (tmp_path / "graph.flow").write_text(text)
    room.load(tmp_path / "graph.flow")


@contextmanager
def in_background(room: Postroom, **options: object) -> Iterator[list[StreamTotals]]:
    """A stream that runs beside the test; at the end it is stopped."""
    told: list[StreamTotals] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            room.stream(progress=told.append, **options)  # type: ignore[arg-type]
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield told
    finally:
        room.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert failures == []


def wait(until: object, seconds: int = 240) -> None:
    assert callable(until)
    turn = threading.Event()
    for _ in range(seconds * 10):
        if until():
            return
        turn.wait(0.1)
    raise AssertionError("it did not come")


def test_it_runs_until_it_is_stopped_and_follows_changes(streaming: Postroom, folders: Folders, tmp_path: Path) -> None:
    load(streaming, tmp_path)
    folders.put("in", [{"n": 1}])
    folders.put("more", [{"n": 5}])
    with in_background(streaming) as told:
        wait(lambda: folders.read("out") == [{"n": 10}])
        load(streaming, tmp_path, GRAPH.replace("n * 10", "n * 100"))
        folders.put("in", [{"n": 2}])
        wait(lambda: {"n": 200} in folders.read("out"))
        more = 'space More : [n: int] from files "data/more" format json\narc more : More -> Out merge\n'
        load(streaming, tmp_path, GRAPH + more)  # it has one more source now
        wait(lambda: {"n": 5} in folders.read("out"))
        wait(lambda: len(told) == 3)
    assert [each.version for each in told] == [1, 2, 3]
    assert [message.body for message in streaming.peek("Kept")] == ['{"n":1}', '{"n":2}']
    assert streaming.stream(until_idle=True)[0].batches == 0


def test_what_is_missing_is_told_before_anything_is_read(streaming: Postroom, folders: Folders, tmp_path: Path) -> None:
    load(streaming, tmp_path)
    with pytest.raises(StreamFailed, match="space In: there is no folder"):
        streaming.stream(until_idle=True)
    streaming.gateways.add("bus", "kafka", brokers="127.0.0.1:9")
    load(
        streaming, tmp_path, 'domain d\nspace K : [n: int] from kafka "bus/k"\nspace E : [n: int]\narc e : K -> E merge'
    )
    with pytest.raises(StreamPackageMissing, match=r"--packages .*kafka"):
        streaming.stream(until_idle=True)


def test_a_failure_in_a_batch_stops_it_and_it_goes_on_later(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    load(streaming, tmp_path)
    folders.put("in", [{"n": 1}])
    (folders.root / "out").write_text("no folder")
    with pytest.raises(StreamFailed, match=r"stream In has stopped: .*out.*; started again, it goes on with batch 0"):
        streaming.stream(until_idle=True)
    assert streaming.queues.count("Kept").queues[0].unprocessed == 0
    (folders.root / "out").unlink()
    streaming.stream(until_idle=True)
    assert folders.read("out") == [{"n": 10}]
    assert streaming.queues.count("Kept").queues[0].unprocessed == 1


def test_begun_anew_it_reads_all_again_and_an_older_room_is_refused(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    load(streaming, tmp_path)
    folders.put("in", [{"n": 1}])
    streaming.stream(until_idle=True)
    streaming.backup(tmp_path / "older.db")
    folders.put("in", [{"n": 2}])
    streaming.stream(until_idle=True)
    with postroom.open(tmp_path / "older.db") as older:
        folders.put("in", [{"n": 3}])
        with pytest.raises(StreamCheckpoint, match="one of them is an older copy"):
            older.stream(until_idle=True, checkpoints=f"{streaming.url}.streams")
    streaming.stream(until_idle=True, restart=True)
    assert sorted(each["n"] for each in folders.read("out")) == [10, 10, 20, 20, 30]


def test_a_socket_and_a_clock_for_trials(streaming: Postroom, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        streaming.gateways.add("line", "socket", address=f"127.0.0.1:{server.getsockname()[1]}")
        streaming.gateways.add("clock", "rate", events="20")
        text = """domain d
space Line : [n: int] from socket "line"
space Seen : [n: int] to console
arc seen : Line -> Seen merge
space Clock : [t: timestamp, n: int] from rate "clock"
space Some : [n: int]
arc some : Clock -> Some transform [n: n < 5] => [n: n]
"""
        load(streaming, tmp_path, text)
        shown: list[tuple[str, str]] = []
        with in_background(streaming, show=lambda space, line: shown.append((space, line))):
            client, _ = server.accept()
            with client:
                client.sendall(b'{"n": 1}\nx\n{"n": 2}\n')
                wait(lambda: len(shown) == 2)
                wait(lambda: streaming.queues.count("Some").queues[0].unprocessed == 5)
    assert shown == [("Seen", '{"n":1}'), ("Seen", '{"n":2}')]
    assert len(list(streaming.queues.info("postroom-errors"))) == 1


@pytest.mark.slow  # its source is Python, whose process Spark gives 10 s to start: too few on a busy machine
def test_kafka_as_far_as_it_can_be_seen_without_a_broker(
    streaming: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kafka.stand_in(spark, monkeypatch)
    bus = tmp_path / "bus"
    whole, wide = b'{"n":1,"s":"a"}', b'{\r\n  "n": 2,\n  "s": "b"\n}\n'
    kafka.put(bus, "in", 0, [whole, wide, None, b"", b'{"n":3,"s":"\n"}', b'{"n":4,"s":"\xff"}', b"[5,\t\n"])
    kafka.put(bus, "in", 1, [b'{"n":6,"s":"a"}'])
    (tmp_path / "kafka.options").write_text(f"stand.in={bus}\n")
    streaming.gateways.add("bus", "kafka", brokers="127.0.0.1:9", options=f"file:{tmp_path / 'kafka.options'}")
    text = """domain d
space In : [n: int, s: string] from kafka "bus/in"
space Out : [n: int] to kafka "bus/out"
space Counts : [s: string, n: int]
arc out : In -> Out transform [n: n] => [n: n * 10]
arc counts : In -> Counts collapse [s: s] by s => [s: s, n: count()]
"""
    load(streaming, tmp_path, text)
    (totals,) = streaming.stream(until_idle=True)
    assert (totals.delivered, totals.stored, totals.refused) == (3, 3, 5)
    assert sorted(kafka.taken(bus, "out")) == [b'{"n":10}', b'{"n":20}', b'{"n":60}']
    counted = [message.body for message in streaming.peek("Counts")]
    assert counted == ['{"s":"a","n":1}', '{"s":"b","n":1}', '{"s":"a","n":2}'], "in the order of the topic"
    said = [message.body for message in streaming.queues.info("postroom-errors")]
    assert sum("there is no value" in each for each in said) == 1
    assert sum("it is not UTF-8" in each and "4" in each for each in said) == 1
    assert streaming.stream(until_idle=True)[0].batches == 0


def test_queries_of_others_in_the_same_session_are_as_before(
    streaming: Postroom, folders: Folders, spark: SparkSession, tmp_path: Path
) -> None:
    load(streaming, tmp_path)
    folders.put("in", [{"n": 1}])
    streaming.stream(until_idle=True)
    events = spark.readStream.schema("n long").json(str(folders.root / "in"))
    place = tmp_path / "theirs"
    writer = events.writeStream.option("checkpointLocation", str(place / "checkpoint")).option("path", str(place))
    query = writer.format("json").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None
    assert [line for file in place.glob("*.json") for line in file.read_text().splitlines()] == ['{"n":1}']


def test_two_streams_that_begin_at_once_leave_the_session_as_it_was(spark: SparkSession) -> None:
    before, is_second_in = spark.conf.get(SOURCE_EVOLUTION), threading.Event()

    def begin() -> None:
        with running._query_settings(spark):
            is_second_in.set()

    second = threading.Thread(target=begin)
    with running._query_settings(spark):
        second.start()
        assert not is_second_in.wait(0.5)
    second.join()
    assert is_second_in.is_set()
    assert spark.conf.get(SOURCE_EVOLUTION) == before
