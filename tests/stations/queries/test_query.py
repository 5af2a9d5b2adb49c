"""Queries over nodes on real Spark: scopes, places, nodes that are down or silent, time, tasks that are done again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait as real_wait
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.stations.world import desk, network

from postroom.engine.spark.jobs import PACKED
from postroom.errors import (
    ArgumentInvalid,
    NodeDown,
    QueryExpired,
    QueryOvertaken,
    QueryTooLarge,
    SparkUnavailable,
    StationUnknown,
)
from postroom.room import Postroom
from postroom.stations.forms.reader import parse
from postroom.stations.queries import query as queries
from postroom.stations.queries.conditions import sketch
from postroom.stations.queries.node_answers import Job, Part, read_part
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Asked, Plan
from postroom.store.tables.tracking import STATIONS

HOMES = {"ann": "north", "abe": "north", "bob": "south", "cid": "control"}


@pytest.fixture
def room(url: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postroom]:
    """One whose queries go to Spark, however few messages there are."""
    monkeypatch.setattr(queries, "_is_small", lambda *_: False)
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(url, tmp_path, nodes, HOMES) as opened:
        yield opened


def filled(room: Postroom) -> dict[str, str]:
    """A message at every station, and two in mailboxes."""
    keys = {name: desk(room, name).create("NOTE", To=name, Count=len(name), Text=f"of {name}") for name in HOMES}
    for name in ("ann", "cid"):
        keys[f"mail of {name}"] = desk(room, name).create("NOTE", To="bob", Text="letter")
        desk(room, name).ship(keys[f"mail of {name}"], "bob")
    return keys


def test_scopes(room: Postroom) -> None:
    keys = filled(room)
    ann = desk(room, "ann")
    assert [image.key for image in ann.query("NOTE")] == [keys["ann"]]
    group = ann.query("NOTE", scope="group")
    assert {image.key: image.place for image in group} == {keys["ann"]: "ann", keys["abe"]: "abe"}
    everything = ann.query("NOTE", scope="global")
    assert {image.key: image.place for image in everything} == {
        **{keys[name]: name for name in HOMES},
        keys["mail of ann"]: "mailbox:bob",
        keys["mail of cid"]: "mailbox:bob",
    }
    assert [image.key for image in everything] == sorted(image.key for image in everything)
    listed = ann.query("NOTE", scope="stations=bob, cid")
    assert {image.place for image in listed} == {"bob", "cid"}
    assert [answer.seq for answer in (group, everything, listed)] == [1, 2, 3]
    letters = ann.query("NOTE", Text="l*", scope="global")
    assert [image.place for image in letters] == ["mailbox:bob"] * 2
    assert ann.count("NOTE", To="bob", scope="global") == 3
    for scope, error in (
        ("everywhere", ArgumentInvalid),
        ("stations=", ArgumentInvalid),
        ("stations=ann,bop", StationUnknown),
    ):
        with pytest.raises(error):
            ann.query("NOTE", scope=scope)
    with pytest.raises(ArgumentInvalid, match="timeout"):
        ann.query("NOTE", scope="global", timeout=0)


def test_a_query_shows_how_far_it_is(room: Postroom) -> None:
    told: list[tuple[int, int]] = []
    desk(room, "ann").query("NOTE", scope="global", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)


def test_a_query_that_nobody_wants_any_more_is_stopped(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows it raises: Spark's job is ended, and nothing is left behind."""
    filled(room)
    real, ended = spark.sparkContext.cancelJobGroup, []

    def cancel(group: str) -> None:
        ended.append(group)
        real(group)

    def unwanted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(spark.sparkContext, "cancelJobGroup", cancel)
    monkeypatch.setattr(queries, "wait", lambda some, seconds: real_wait(some, 0))  # it is asked before it is over
    with pytest.raises(KeyboardInterrupt):
        desk(room, "ann").query("NOTE", scope="global", progress=unwanted)
    assert len(ended) == 1
    monkeypatch.undo()
    assert len(desk(room, "ann").query("NOTE", scope="global")) == 6
    assert room._parts.store.read(lambda tx: tx.tracking.running()) == []


def test_a_node_that_is_down_is_named_and_nothing_is_left_behind(room: Postroom, tmp_path: Path) -> None:
    filled(room)
    room._parts.network.close()
    os.rename(tmp_path / "south.db", tmp_path / "away.db")
    ann = desk(room, "ann")
    with pytest.raises(NodeDown, match="node south does not answer"):
        ann.query("NOTE", scope="global")
    assert len(ann.query("NOTE", scope="group")) == 2, "others go on"
    for store in (room.store, room._parts.network.store("north")):
        assert store.read(lambda tx: tx.tracking.running()) == []
    os.rename(tmp_path / "away.db", tmp_path / "south.db")
    assert len(ann.query("NOTE", scope="global")) == 6


def test_a_node_that_falls_silent_costs_its_own_query_only(
    tmp_path: Path, postgres_url: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of one node is stopped in the middle: the query fails by the clock and names it."""
    monkeypatch.setattr(queries, "NODE_SECONDS", 1.5)
    nodes = {"north": postgres_url}
    with network(str(tmp_path / "room.db"), tmp_path, nodes, {"ann": "north", "cid": "control"}) as room:
        cid = desk(room, "cid")
        cid.create("NOTE", To="x")
        desk(room, "ann").create("NOTE", To="x")
        assert len(cid.query("NOTE", scope="global")) == 2
        store = room._parts.network.store("north")
        (pid,) = store.session.rows("SELECT pg_backend_pid()")[0]
        os.kill(pid, signal.SIGSTOP)  # the process that serves our connection
        try:
            started = time.monotonic()
            with pytest.raises(NodeDown, match=r"node north does not answer: no answer for 1\.5 s"):
                cid.query("NOTE", scope="global")
            assert time.monotonic() - started < 20
            assert [image.place for image in cid.query("NOTE", scope="group")] == ["cid"]
        finally:
            os.kill(pid, signal.SIGCONT)
        assert len(cid.query("NOTE", scope="global")) == 2
        assert room.store.read(lambda tx: tx.tracking.running()) == []


def frame_of(read: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[SparkSession, tuple[str, ...]], DataFrame]:
    return lambda spark, urls: spark.range(0, len(urls), 1, len(urls)).mapInArrow(read, PACKED)


def test_a_query_that_takes_too_long_ends(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            time.sleep(30)
            yield from ()

    monkeypatch.setattr(queries, "_frame", frame_of(slow))
    started = time.monotonic()
    with pytest.raises(QueryExpired, match="--timeout"):
        desk(room, "ann").query("NOTE", scope="global", timeout=2)
    assert time.monotonic() - started < 15
    assert room.store.read(lambda tx: tx.tracking.running()) == []


def test_a_task_that_fails_is_an_error_that_says_so(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        raise ValueError("a test")

    with monkeypatch.context() as patch:
        patch.setattr(queries, "_frame", frame_of(broken))
        with pytest.raises(SparkUnavailable, match="ask again"):
            desk(room, "ann").query("NOTE", scope="global")
    assert desk(room, "ann").count("NOTE", scope="global") == 0


def test_what_an_index_finds_needs_no_spark(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless there is more of it than a few look-ups bring; the answer is the same."""
    keys = filled(room)
    ann = desk(room, "ann")
    ran: list[int] = []
    run = _Query._run

    def counted(query: _Query, *more: Any) -> Any:
        ran.append(query.number)
        return run(query, *more)

    monkeypatch.setattr(_Query, "_run", counted)
    looked_up = ann.query("NOTE", Text='"letter" "of bob"', scope="global")
    assert (ann.count("NOTE", Text="letter", scope="global"), ran) == (2, [])
    monkeypatch.setattr(queries, "SCANNED_MAX", 1)
    on_spark = ann.query("NOTE", Text='"letter" "of bob"', scope="global")
    assert ran == [on_spark.seq]
    for answer in (looked_up, on_spark):
        assert {image.key for image in answer} == {keys["mail of ann"], keys["mail of cid"], keys["bob"]}
    assert len(ann.query("NOTE", Text="<> letter", scope="global")) == 4
    assert len(ran) == 2


def test_few_messages_need_no_spark(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are those of Spark; a query over more messages than a few goes there."""
    asked: list[str] = []

    def no_spark(*_: Any) -> Any:
        asked.append("spark")
        raise SparkUnavailable(master="a test", why="there is none", advice="")

    monkeypatch.setattr("postroom.room.stations.spark_session", no_spark)
    nodes = {name: str(tmp_path / f"{name}.db") for name in ("north", "south")}
    with network(url, tmp_path, nodes, HOMES) as room:
        keys, told = filled(room), list[tuple[int, int]]()
        ann = desk(room, "ann")
        found = ann.query("NOTE", scope="global", progress=lambda done, total: told.append((done, total)))
        assert {image.key for image in found} == set(keys.values())
        assert told[-1] == (4, 4)
        assert ann.count("NOTE", Text="<> letter", scope="global") == 4
        assert len(ann.query("NOTE", scope="stations=bob,cid")) == 2
        assert asked == []
        monkeypatch.setattr(queries, "SCANNED_MAX", 5)
        with pytest.raises(SparkUnavailable):
            ann.query("NOTE", scope="global")
        assert room.store.read(lambda tx: tx.tracking.running()) == []


def test_the_start_of_workers_is_no_part_of_a_querys_time(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark needs to begin, a query is opened behind it."""
    filled(room)
    opened: list[float] = []
    real = _Query.open

    def noted(query: _Query, *more: Any) -> None:
        opened.append(query.started)
        real(query, *more)

    monkeypatch.setattr("postroom.engine.spark.jobs.start_workers", lambda spark: time.sleep(1.2))
    monkeypatch.setattr(_Query, "open", noted)
    began = time.monotonic()
    assert len(desk(room, "ann").query("NOTE", scope="global", timeout=60)) == 6
    assert opened[0] - began > 1.0


def test_what_travels_to_a_task_is_plain_data() -> None:
    (form,) = parse(
        """type T
| S: _ I: _ D: _ F: _ B: _ A: _ C: _ M: _ K: _ L: _ |
field S string free
field I int free
field D decimal free
field F float free
field B boolean free
field A date free
field C time free
field M timestamp free
field K key free
field L list of int free
""",
        "f",
    )
    said = {
        "S": '"a" <> "" x*', "I": "2..3 >7", "D": "1.50", "F": "<2.5e3", "B": "true", "A": "1981-08-01..1981-08-31",
        "C": "10:00", "M": ">=2026-11-30T14:30:00Z", "K": "00004.00001", "L": "<5 >8",
    }  # fmt: skip
    kinds = {field.name: field.kind for field in form.fields}
    fields = [Asked(name, kinds[name], True, some) for name, some in sketch(form, said).items()]
    for stations in (None, frozenset({"ann", "bob"})):
        job = Job([Part("north", "n.db", STATIONS)], 7, Plan("T", tuple(fields)), stations, True)
        assert Job.unpacked(job.packed(), ["n.db"]) == job
        assert "n.db" not in job.packed()


def test_an_answer_has_a_largest_size(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(room)
    monkeypatch.setattr(queries, "IMAGES_MAX", 5)
    with pytest.raises(QueryTooLarge, match="--count"):
        desk(room, "ann").query("NOTE", scope="global")


def test_a_damaged_message_is_named_and_left_out(room: Postroom) -> None:
    keys = filled(room)
    store = room._parts.network.store("south")
    number = int(keys["bob"].replace(".", ""))
    store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{}' WHERE key = ?", (number,)))
    answer = desk(room, "ann").query("NOTE", scope="global")
    assert answer.damaged == (keys["bob"],)
    assert keys["bob"] not in [image.key for image in answer]


def test_queries_are_opened_one_after_another(room: Postroom) -> None:
    """A query that was overtaken while it was held up asks again; it is never opened behind a later one."""
    network = room._parts.network
    scope = Scope(("control", "north", "south"), None)
    first = _Query(network, Plan("NOTE", ()), scope, "other/1", 30)
    first._begin()
    first._open_node("north")
    late = _Query(network, Plan("NOTE", ()), scope, "other/2", 0.2)
    with pytest.raises(QueryExpired):
        late.open()  # the first one has the lease
    room.store.transact("query-open", lambda tx: tx.leases.release("queries", first.fence))
    second = _Query(network, Plan("NOTE", ()), scope, "other/3", 30)
    second.open()
    with pytest.raises(QueryOvertaken):
        first._open_node("south")
    for each in (first, second):
        each.close()


def test_queries_of_the_dead_are_cleaned_up(room: Postroom) -> None:
    network = room._parts.network
    dead = f"{postroom_owner()}/99999999/1/1"
    scope = Scope(("control", "north"), None)
    left = _Query(network, Plan("NOTE", ()), scope, dead, 3_000)
    left.open()
    ann = desk(room, "ann")
    key = ann.create("NOTE", To="x")
    ann.modify(key, Text="y")
    assert desk(room, "bob").query("NOTE", scope="global")[0].key == key
    for store in (room.store, network.store("north")):
        assert store.read(lambda tx: tx.tracking.running()) == []
    with pytest.raises(QueryExpired):
        network.store("north").read(lambda tx: tx.tracking.opened(left.number, STATIONS))


def postroom_owner() -> str:
    from postroom.store.kernel.owner import process_token

    return process_token().partition("/")[0]


def test_a_query_that_ran_out_of_time_keeps_nothing(tmp_path: Path) -> None:
    now = 1_000_000_000_000_000
    import postroom

    (tmp_path / "f.form").write_text("type NOTE\n| To: ____ |\nfield To string free\n")
    with postroom.open(tmp_path / "room.db", clock=lambda: now) as room:
        room.load(tmp_path / "f.form")
        room._parts.network.add_station("cid", "control", None)
        key = desk(room, "cid").create("NOTE", To="x")
        left = _Query(room._parts.network, Plan("NOTE", ()), Scope(("control",), None), "other/1/1/1", 30)
        left.open()
        desk(room, "cid").modify(key, To="y")
        ghosts = lambda tx: tx.session.rows("SELECT count(*) FROM ghosts")  # noqa: E731
        assert room.store.read(ghosts) == [(1,)]
        now += 3_600_000_000
        desk(room, "cid").modify(key, To="z")
        assert room.store.read(ghosts) == [(0,)]
        with pytest.raises(QueryExpired):
            room.store.read(lambda tx: tx.tracking.opened(left.number, STATIONS))


def test_spark_does_a_task_again_and_the_answer_is_the_same(
    room: Postroom, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the attempts all messages move on; each is still found where it was."""
    keys = filled(room)
    run = _Query._run

    def read(job: Job) -> list[list[str]]:
        rows = [
            read_part(index, part, job.number, job.plan, job.stations).rows() for index, part in enumerate(job.parts)
        ]
        return [sorted(map(str, some)) for some in rows]

    def twice(query: _Query, spark: SparkSession, job: Job, progress: Any) -> Any:
        first = read(job)
        for name in HOMES:
            there = desk(room, name)
            for image in there.messages():
                there.modify(image.key, Text="moved")
                there.ship(image.key, "cid")
            there.get()
        assert read(job) == first
        return run(query, spark, job, progress)

    monkeypatch.setattr(_Query, "_run", twice)
    answer = desk(room, "abe").query("NOTE", scope="global")
    assert {image.key for image in answer} == set(keys.values())
    assert {image.place for image in answer} == {*HOMES, "mailbox:bob"}
    assert "moved" not in [image.fields["Text"] for image in answer]


def test_the_server_is_there_again(postgres_server: str) -> None:
    """The stopped process was one connection's; the server serves on."""
    with psycopg.connect(postgres_server) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
