"""A graph as a function from frames to frames: on a batch, on a stream, against the plain meaning of its arcs."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import postroom
from postroom import limits
from postroom.flows.evaluation import paths
from postroom.flows.evaluation.dataflow import ArcNetwork
from postroom.flows.graph.checks import check
from postroom.flows.graph.graph import Graph
from postroom.flows.language.arithmetic import NoValue
from postroom.flows.language.definitions import Select, Transform
from postroom.flows.language.meaning import make, match
from postroom.flows.language.reader import parse
from postroom.flows.language.values import canonical, parse_event
from postroom.spark import register

TRADE = "[issue: string, price: int, volume: int]"
GRAPH = f"""
domain trading
space NYSE : {TRADE}
space Big : {TRADE}
space Huge : {TRADE}
space Capital : [issue: string, capital: int]
space Rich : [issue: string, capital: int]
space All : {TRADE}
space Where : [issue: string, city: string]
space Cities : [city: string]
table homes : [issue: string, city: string] from "homes.csv"
arc big : NYSE -> Big select [price: p > 75]
arc huge : Big -> Huge select [volume: v >= 100]
arc capital : NYSE -> Capital transform [issue: i, price: p, volume: v] => [issue: i, capital: p * v]
arc rich : Capital -> Rich select [capital: > 5000]
arc all : NYSE -> All merge
arc back : Big -> All merge
arc home : Big -> Where transform [issue: i] join homes [issue: i, city: c] => [issue: i, city: upper(c)]
arc city : Where -> Cities transform [city: c] => [city: c]
"""
HOMES = [("IBM", "Armonk"), ("IBM", "Hawthorne"), ("HP", "Palo Alto")]
STORED = frozenset({"Huge", "Rich", "All", "Cities", "Where"})
EVENTS = [("IBM", 80, 10), ("IBM", 80, 100), ("HP", 70, 200), ("HP", 76, 1), ("X", 100, 100), ("Y", 2**62, 4)]


def graph() -> Graph:
    return check(parse(GRAPH, "f"))


def bodies(graph: Graph) -> list[str]:
    type = graph.spaces["NYSE"].type
    return [canonical(event, type) for event in EVENTS]


def homes(spark: SparkSession) -> dict[str, DataFrame]:
    return {"homes": spark.createDataFrame(HOMES, "issue string, city string")}


def plain(graph: Graph, stored: frozenset[str]) -> list[tuple[int, str, str, str]]:
    """What must be delivered: event, arc, space and body, in the order of events and then of ways."""
    found = []
    for number, event in enumerate(EVENTS):
        todo: list[tuple[str, Any]] = [("NYSE", event)]
        order: list[tuple[str, str, str]] = []
        while todo:
            space, value = todo.pop()
            behind = []
            for arc in graph.outgoing().get(space, ()):
                for made in _delivered(graph, arc.does, space, arc.target, value):
                    if arc.target in stored:
                        order.append((arc.name, arc.target, canonical(made, graph.spaces[arc.target].type)))
                    behind.append((arc.target, made))
            todo += reversed(behind)
        found += [(number, *each) for each in order]
    return found


def _delivered(graph: Graph, does: Any, source: str, target: str, value: Any) -> list[Any]:
    from_type, to_type = graph.spaces[source].type, graph.spaces[target].type
    if not isinstance(does, Select | Transform):
        return [value]
    bound = match(does.pattern, from_type, value)
    if bound is None:
        return []
    if isinstance(does, Select):
        return [value]
    rows = [bound]
    if does.join is not None:
        table = graph.tables[does.join.table].type
        rows = [each for row in HOMES if (each := match(does.join.pattern, table, row, bound)) is not None]
    made = []
    for each in rows:
        with suppress(NoValue):
            made.append(make(does.result, to_type, each))
    return made


def test_every_way_from_a_source_to_its_consumers_is_fused(spark: SparkSession) -> None:
    known = graph()
    events = spark.createDataFrame(list(enumerate(bodies(known))), "n long, body string")
    rows = ArcNetwork(known, STORED).deliveries("NYSE", events, homes(spark)).collect()
    delivered = [(row.n, row.arc, row.space, row.body) for row in rows if row.failure is None]
    assert sorted(delivered) == sorted(plain(known, STORED))
    (failed,) = [row for row in rows if row.failure is not None]
    assert (failed.n, failed.arc, failed.space, failed.body) == (5, "capital", "Capital", None)
    assert failed.failure == "arc capital: a value is too large for its type, or divided by zero"


def test_deliveries_of_one_event_are_in_the_order_of_the_ways(spark: SparkSession) -> None:
    known = graph()
    events = spark.createDataFrame([(0, bodies(known)[1])], "n long, body string")
    rows = ArcNetwork(known, STORED).deliveries("NYSE", events, homes(spark)).orderBy("n", "place").collect()
    ways = ArcNetwork(known, STORED).ways("NYSE")
    assert [way.arc.name for way in ways] == ["big", "capital", "all", "huge", "back", "home", "city", "rich"]
    assert [row.arc for row in rows] == [way.arc.name for way in ways for row in rows if row.place == way.number]


def test_very_many_subscriptions_go_through_an_index(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [f'[issue: "{issue}", price: > {price}]' for issue in ("IBM", "HP", "X") for price in range(60, 110, 4)]
    clients = "".join(
        f"space C{number} : {TRADE} arc to{number} : NYSE -> C{number} select {pattern}\n"
        for number, pattern in enumerate(patterns)
    )
    assert len(patterns) >= limits.INDEXED_ARCS_MIN
    more = "space Same : [issue: string, price: int, volume: int] arc same : NYSE -> Same select [price: p, volume: p]"
    known = check(parse(GRAPH + clients + more, "f"))
    stored = STORED | {space for space in known.spaces if space.startswith("C")} | {"Same"}
    events = spark.createDataFrame(list(enumerate(bodies(known))), "n long, body string")

    def delivered() -> list[tuple[Any, ...]]:
        rows = ArcNetwork(known, stored).deliveries("NYSE", events, homes(spark)).collect()
        return sorted((row.n, row.place, row.arc, row.space, row.body) for row in rows if row.failure is None)

    by_index = delivered()
    assert sorted((n, arc, space, body) for n, _, arc, space, body in by_index) == sorted(plain(known, stored))
    monkeypatch.setattr(paths, "INDEXED_ARCS_MIN", 10_000)
    assert delivered() == by_index


def test_a_space_without_arcs_delivers_nothing(spark: SparkSession) -> None:
    known = graph()
    events = spark.createDataFrame([(0, '{"city":"X"}')], "n long, body string")
    assert ArcNetwork(known, STORED).deliveries("Cities", events).collect() == []


def test_the_same_function_serves_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    known = graph()
    with postroom.open(tmp_path / "room.db") as room:
        register(spark)
        room.queues.create("NYSE")
        for body in bodies(known):
            room.send("NYSE", body, format="json")
        events = (
            spark.readStream.format("postroom")
            .options(room=str(tmp_path / "room.db"), queue="NYSE")
            .load()
            .selectExpr("hash(key) AS n", "body")
        )
        assert events.isStreaming
        query = (
            ArcNetwork(known, STORED)
            .deliveries("NYSE", events, homes(spark))
            .writeStream.format("memory")
            .queryName("delivered")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
    rows = [(row.arc, row.space, row.body) for row in spark.table("delivered").collect() if row.failure is None]
    assert sorted(rows) == sorted(each[1:] for each in plain(known, STORED))


def test_bodies_are_those_that_a_reader_gets(spark: SparkSession) -> None:
    types = (
        "[a: atom, b: boolean, c: float, d: decimal, e: date, f: timestamp, g: {string}, h: (int), i: union [X: []]]"
    )
    known = check(parse(f"domain d space A : {types} space B : {types} arc a : A -> B merge", "f"))
    type = known.spaces["A"].type
    text = '[image, true, 1.5, 2.50, "2026-11-15", "2026-11-15T10:00:00Z", {"é\\"", "b"}, (2, 1), X: []]'
    value = parse_event(text, type, "A")
    events = spark.createDataFrame([(0, canonical(value, type))], "n long, body string")
    (row,) = ArcNetwork(known, frozenset({"B"})).deliveries("A", events).collect()
    assert parse_event(row.body, type, "B") == value
    assert json.loads(row.body)["g"] == ["b", 'é"']
