"""The picture of a graph, and what `explain` tells of an arc."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from tests.flows.conftest import Load

from postroom.errors import DefinitionUnknown
from postroom.flows.graph.drawing import svg
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


def test_everything_is_in_the_picture_and_nothing_overlaps(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.client("desk").subscribe("A", durable=True)
    room.client("desk").disconnect()
    drawn = svg(room.graph())
    tree = ElementTree.fromstring(drawn)
    texts = {"".join(each.itertext()) for each in tree.iter() if each.tag.endswith("text")}
    assert {"A", "B", "C", "Alone", "desk", "meta:one", "ab", "bc", "domain one", "domain two"} <= texts
    assert {"(disabled)", "retain"} <= texts
    boxes = [
        tuple(float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        for each in tree.iter()
        if each.tag.endswith("rect") and len(each)
    ]
    assert len(boxes) == 10
    for one in boxes:
        for other in boxes:
            apart = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
            apart = apart or one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
            assert one is other or apart, (one, other)
    assert len(re.findall("<path d=.M", drawn)) == 1 + 2 * len(room.graph().arcs)
    assert drawn == svg(room.graph()), "the same graph has the same picture"


def test_a_graph_without_arcs_has_a_picture_too(room: Postroom, load: Load) -> None:
    load("domain d space A : [n: int]")
    assert "domain d" in svg(room.graph())


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
