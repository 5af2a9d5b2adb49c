"""Definitions and the places where they were written."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.model.definitions import Definition, Position, Problem

POSITIONS = st.builds(Position, st.sampled_from(["a.qdl", "b.qdl"]), st.integers(1, 1000), st.integers(1, 200))


def test_a_position_reads_as_editors_and_compilers_write_it() -> None:
    assert str(Position("hotel.qdl", 12, 4)) == "hotel.qdl:12:4"


def test_a_position_without_a_column_is_at_the_start_of_its_line() -> None:
    assert Position("hotel.qdl", 3) == Position("hotel.qdl", 3, 1)


@settings(deadline=None, max_examples=100)
@given(st.lists(POSITIONS, max_size=20))
def test_positions_sort_by_file_then_line_then_column(positions: list[Position]) -> None:
    places = [(position.file, position.line, position.column) for position in sorted(positions)]
    assert places == sorted((position.file, position.line, position.column) for position in positions)


def test_a_problem_says_where_what_and_which_rule() -> None:
    problem = Problem(Position("hotel.qdl", 2, 5), "the name is taken", "name-unique")
    assert str(problem) == "hotel.qdl:2:5: the name is taken [name-unique]"


def test_a_definition_needs_only_a_kind_and_a_name() -> None:
    definition = Definition("queue-level", "ORDERS")
    assert (definition.body, definition.position, definition.since) == ({}, None, 0)


def test_definitions_do_not_share_their_empty_bodies() -> None:
    assert Definition("k", "a").body is not Definition("k", "b").body


@pytest.mark.parametrize(
    ("thing", "attribute"),
    [
        (Position("f", 1), "line"),
        (Problem(Position("f", 1), "what", "rule"), "what"),
        (Definition("k", "n"), "name"),
    ],
)
def test_what_was_written_cannot_be_changed_afterwards(thing: object, attribute: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(thing, attribute, "other")


def test_a_problem_survives_a_process_border() -> None:
    problem = Problem(Position("f", 1, 2), "what", "rule")
    assert pickle.loads(pickle.dumps(problem)) == problem
