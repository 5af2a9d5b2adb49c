"""What a space says of where its events come from, or go to."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.language.definitions import Space
from postroom.flows.language.outside import type_problem
from postroom.flows.language.reader import parse

HEAD = "domain d\nspace S : [n: int] "


def space(said: str) -> Space:
    found = parse(HEAD + said, "f")[1]
    assert isinstance(found, Space)
    return found


@pytest.mark.parametrize(
    "said",
    [
        'from files "market" format json',
        'from files "market/bids/2026" format csv',
        'retain from kafka "market/bids.v1"',
        'from socket "line"',
        'from rate "clock"',
        'to files "market/out" format parquet',
        'retain to files "market/out" format avro',
        'to kafka "market/out"',
        "to console",
    ],
)
def test_it_is_read_and_written_the_same(said: str) -> None:
    assert str(space(said)) == f"space S : [n: int] {said}"
    assert parse(f"domain d\n{space(said)}", "f")[1] == space(said)


@pytest.mark.parametrize(
    ("said", "column", "why"),
    [
        ("from files", 30, "the name of a gateway, in quotes"),
        ('from files "market"', 39, "format is expected here"),
        ('from files "market" format xml', 47, "json or csv or parquet or avro is expected"),
        ('from console "x"', 25, "files or kafka or socket or rate is expected"),
        ('to rate "x"', 23, "files or kafka or console is expected"),
        ('from files "/etc/passwd" format json', 31, "is not the name of a gateway"),
        ('from files "../x" format json', 31, "is not the name of a gateway"),
        ('from files "market/../x" format json', 31, "leads nowhere"),
        ('from files "market/.hidden" format json', 31, "leads nowhere"),
        ('from files "market//x" format json', 31, "leads nowhere"),
        ('from files "market/" format json', 31, "leads nowhere"),
        ('from kafka "market"', 31, "has no topic"),
        ('from kafka "market/a/b"', 31, "has no topic"),
        ('from rate "clock/x"', 30, "there is nothing below a gateway of rate"),
        ('from files "a" format json to console', 47, "is expected here"),
    ],
)
def test_what_is_not_in_the_language_is_refused_where_it_stands(said: str, column: int, why: str) -> None:
    with pytest.raises(FlowInvalid, match=why) as refused:
        space(said)
    (problem,) = refused.value.facts["problems"]
    assert (problem.position.line, problem.position.column) == (2, column)


def test_rows_of_files_are_flat_and_a_rate_has_its_type() -> None:
    flat, rate = space('from files "a" format csv'), space('from rate "a"')
    assert flat.source is not None
    assert rate.source is not None
    nested = parse("domain d\nspace S : [n: [m: int]]\nspace R : [t: timestamp, n: int]", "f")
    assert type_problem(flat.source, flat.type) is None
    assert "csv has rows of" in str(type_problem(flat.source, nested[1].type))  # type: ignore[union-attr]
    assert "rate has [timestamp, int]" in str(type_problem(rate.source, rate.type))
    assert type_problem(rate.source, nested[2].type) is None  # type: ignore[union-attr]
