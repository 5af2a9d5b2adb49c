"""Messages as events, and their error messages."""

from __future__ import annotations

import pytest
from tests.flows.evaluation.test_plans import GRAPH, room_graph

from postroom.engine.steps.effects import Arrival
from postroom.errors import PostroomError
from postroom.flows.evaluation.events import arcs_behind, as_event, error, is_event


def arrival(body: str, format: str = "json", cause: int | None = None) -> Arrival:
    return Arrival(0, "A", 7, format, None, body, "{}", 0, cause)


def test_what_was_admitted_is_an_event_and_what_a_rule_made_must_become_one() -> None:
    type = room_graph(GRAPH).running.spaces["A"].type
    admitted, made = arrival('{"n":1}'), arrival('{ "n": 1 }', cause=3)
    assert is_event(admitted)
    assert not is_event(made)
    assert as_event(admitted, type, "A") == as_event(made, type, "A") == '{"n":1}'
    with pytest.raises(PostroomError):
        as_event(arrival('{"x":1}', cause=3), type, "A")


def test_an_error_tells_the_arc_and_why() -> None:
    made = error(arrival('{"n":1}'), "too large", "ab")
    assert made.failed
    assert "<rule>ab</rule>" in made.body
    assert "too large" in made.body


def test_the_arcs_behind_a_space_are_those_on_its_ways_each_once() -> None:
    found = room_graph(GRAPH)
    behind = arcs_behind(found, found.places, "A")
    assert sorted(behind) == ["d:ab", "d:ac", "d:bd", "d:cd"]
    assert behind.index("d:ab") < behind.index("d:bd")
    assert arcs_behind(found, found.places, "B") == ["d:bd"]
    assert arcs_behind(found, found.places, "D") == []
