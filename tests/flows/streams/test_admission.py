"""Admission in SQL against admission in Python: what SQL lets in is let in, as the same event."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from postroom.flows.language.sql import body_of
from postroom.flows.language.types import parse
from postroom.flows.streams.admission import event_of_raw, fits, raw_of
from postroom.flows.streams.formats import admitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLAT = "[s: string, n: int, x: float, p: decimal, d: date, t: timestamp, b: boolean]"
DEEP = "union [one: [n: int, in: [s: string]], two: int]"
VALUES = {
    "s": ['"a"', '""', '"a, "', '": "', '"é"', '"\\u00e9"', '"a\\nb"', "5", "null", "true", '"\\\\"'],
    "n": ["0", "-5", "9223372036854775807", "9223372036854775808", "1.0", "1e3", '"1"', "null", "-0", "01", "true"],
    "x": ["1.5", "0.1", "1", "-0.0", "0.0", "1e400", '"NaN"', "NaN", "12345678.5", "0.0001", "null", "1.50"],
    "p": [
        '"1.50"',
        '"-0"',
        '"-0.00"',
        "1.5",
        '"1e3"',
        '"x"',
        '"0.0000000000000000001"',
        '"123456789012345678901"',
        '"01"',
    ],
    "d": ['"2026-03-01"', '"2026-02-30"', '"0000-01-01"', '"2026-3-1"', '"20260301"', "5", '"2026-W01-1"'],
    "t": [
        '"2026-03-01T10:00:00Z"',
        '"2026-03-01T10:00:00.5Z"',
        '"2026-03-01T10:00:00.123456Z"',
        '"2026-03-01T10:00:00.1234567Z"',
        '"2026-03-01T24:00:00Z"',
        '"2026-03-01T10:00:60Z"',
        '"2026-03-01T10:00:00+01:00"',
        '"2026-03-01 10:00:00Z"',
        '"0000-03-01T10:00:00Z"',
        '"2026-03-01T1:0:0.123456Z"',
        '"2026-03-01"',
    ],
    "b": ["true", "false", '"true"', "1", "null"],
}
GOOD = {name: some[0] for name, some in VALUES.items()}


def lines() -> list[str]:
    dice, found = random.Random(5), []
    for name, some in VALUES.items():
        for value in some:
            given = {**GOOD, name: value}
            found.append("{" + ",".join(f'"{key}":{said}' for key, said in given.items()) + "}")
            found.append("{" + ", ".join(f'"{key}": {said}' for key, said in given.items()) + "}")
    whole = found[0]
    found += [
        whole[:-1],
        f" {whole}",
        whole + "x",
        whole + whole,
        whole.replace('"n"', '"N"'),
        whole[:-1] + ',"more":1}',
    ]
    found += [whole.replace('"b":true', '"b":true,"b":false'), "[]", "{}", "null", "5", '"x"', "", "{" * 50, "[1,2]"]
    for _ in range(200):  # damaged somewhere
        place = dice.randrange(len(whole))
        found.append(whole[:place] + dice.choice(['"', ",", " ", "{", "0", ""]) + whole[place + 1 :])
    return found


DEEP_LINES = [
    '{"one":{"n":1,"in":{"s":"a"}}}',
    '{"two":5}',
    '{"one":{"n":1,"in":{"s":"a"}},"two":5}',
    "{}",
    '{"one":{"n":1,"in":{}}}',
    '{"one":{"n":1}}',
    '{"one":null}',
    '{"three":1}',
    '{"two": 5}',
]


@pytest.mark.parametrize(("said", "given", "least"), [(FLAT, lines(), 20), (DEEP, DEEP_LINES, 3)])
def test_what_sql_lets_in_python_lets_in_as_the_same(
    spark: SparkSession, said: str, given: list[str], least: int
) -> None:
    type = parse(said)
    raw = raw_of("line", type)
    assert raw is not None
    frame = spark.createDataFrame([(line,) for line in given], "line string").selectExpr("line", f"{raw} AS raw")
    frame = frame.where(fits("line", "raw", "to_json(raw)", type))
    frame = frame.selectExpr("line", f"{event_of_raw('raw', type)} AS event")
    found = {row.line: row.body for row in frame.selectExpr("line", f"{body_of('event', type)} AS body").collect()}
    assert len(found) >= least, "most lines that programs write need no Python"
    for line, body in found.items():
        row = admitted(line, type, "S")
        assert row.problem is None, line
        assert json.loads(row.body) == json.loads(body), line
        assert row.body == body, line


def test_lists_and_simple_values_are_for_python() -> None:
    assert [raw_of("line", parse(said)) for said in ("int", "{int}", "[a: (int)]", "[]")] == [None] * 4
