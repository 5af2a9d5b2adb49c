"""What a graph shows of itself, and what explain says of one arc."""

from __future__ import annotations

import pytest
from tests.flows.conftest import Load

from postroom.errors import DefinitionUnknown
from postroom.room import Postroom

GRAPH = """
domain one
space A : [n: int]
space B : [n: int]
space Alone : [n: int]
arc ab : A -> B select [n: n > 1 and n < 10]
domain two
space C : [m: int] retain
arc bc : B -> C transform [n: x] => [m: 2 * x + 1]
domain one
arc bc : B -> C transform [n: x] => [m: 2 * x + 1]
"""


def test_an_arc_is_explained_by_types_variables_and_sql(room: Postroom, load: Load) -> None:
    load(GRAPH)
    told = room.explain_arc("bc")
    assert told.binds == {"x": "int"}
    assert told.source_type == "[n: int]"
    assert told.target_type == "[m: int]"
    assert told.domains == ("one", "two")
    assert told.result is not None
    assert "try_multiply" in told.result
    assert room.explain_arc("ab").condition == "event.`n` > 1L AND event.`n` < 10L"
    with pytest.raises(
        DefinitionUnknown, match=r"there is no arc b_c \(postroom catalog lists everything\); did you mean bc"
    ):
        room.explain_arc("b_c")


def test_many_select_arcs_are_told_to_have_an_index(room: Postroom, load: Load) -> None:
    spaces = " ".join(f"space C{n} : [n: int] arc c{n} : A -> C{n} select [n: {n}]" for n in range(40))
    load(f"domain d space A : [n: int] {spaces}")
    assert room.explain_arc("c3").matched_by == "the index of A, with 39 other arcs"
