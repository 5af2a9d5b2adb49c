"""Statements of a flow file: what each prints."""

from __future__ import annotations

import pytest

from postroom.flows.language.definitions import ACTIONS, SUBSCRIBE, Allow, Arc, Domain, Merge, Space, Table
from postroom.flows.language.types import UNTYPED, parse
from postroom.model.definitions import Position

HERE = Position("f.flow", 1)
ROW = parse("[n: int]")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (Domain("d", HERE), "domain d"),
        (Allow("d", "*", ("addArc", "subscribe"), HERE), "allow * : addArc, subscribe"),
        (Space("A", "d", ROW, False, HERE), "space A : [n: int]"),
        (Space("A", "d", ROW, True, HERE), "space A : [n: int] retain"),
        (Space("A", "d", UNTYPED, True, HERE), "space A retain"),
        (Table("t", "d", ROW, "t.csv", False, HERE), 'table t : [n: int] from "t.csv"'),
        (Table("t", "d", ROW, "prices", True, HERE), "table t : [n: int] from collection prices"),
        (Arc("a", "d", "A", "B", Merge(), True, HERE), "arc a : A -> B merge durable"),
    ],
)
def test_a_statement_prints_as_it_is_written(statement: object, text: str) -> None:
    assert str(statement) == text


def test_an_arc_is_its_domains_own() -> None:
    assert Arc("a", "d", "A", "B", Merge(), False, HERE).full_name == "d:a"


def test_reading_is_no_change_of_the_graph() -> None:
    assert len(ACTIONS) == len(set(ACTIONS)) == 9
    assert SUBSCRIBE not in ACTIONS
