"""What a graph shows of itself, and what explain says of one arc."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.flows.conftest import Load

import postroom
from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.flows.graph.versions import Kept, definition
from postroom.flows.language.definitions import Arc
from postroom.flows.language.reader import parse
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
    told = room.definitions.explain_arc("bc")
    assert told.binds == {"x": "int"}
    assert told.source_type == "[n: int]"
    assert told.target_type == "[m: int]"
    assert told.domains == ("one", "two")
    assert told.result is not None
    assert "try_multiply" in told.result
    assert room.definitions.explain_arc("ab").condition == "event.`n` > 1L AND event.`n` < 10L"
    with pytest.raises(
        DefinitionUnknown, match=r"there is no arc b_c \(postroom catalog lists everything\); did you mean bc"
    ):
        room.definitions.explain_arc("b_c")


def test_many_select_arcs_are_told_to_have_an_index(room: Postroom, load: Load) -> None:
    spaces = " ".join(f"space C{n} : [n: int] arc c{n} : A -> C{n} select [n: {n}]" for n in range(40))
    load(f"domain d space A : [n: int] {spaces}")
    assert room.definitions.explain_arc("c3").matched_by == "the index of A, with 39 other arcs"


def test_a_graph_is_shown_with_what_waits_and_who_may_do_what(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,s\n1,one\n")
    (tmp_path / "g.flow").write_text(
        """domain d allow * : addArc allow op : addSpace, deleteSpace
        space A : [n: int] space B : [s: string]
        table t : [n: int, s: string] from "t.csv"
        arc j : A -> B transform [n: x] join t [n: x, s: y] => [s: y]"""
    )
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        room.publish("A", "[1]")
        shown = room.flows.graph()
    assert shown.domains == {"d": {"*": ["addArc"], "op": ["addSpace", "deleteSpace"]}}
    assert {space.name: (space.waiting, space.stored) for space in shown.spaces if space.name in "AB"} == {
        "A": (1, False),
        "B": (0, True),
    }
    assert [table.as_dict()["row_count"] for table in shown.tables] == [1]
    assert shown.joins == (("t", "d:j"),)


def test_half_an_arc_waits_for_the_other_domain_and_a_name_of_two_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(
        """domain one space A : [n: int] space B : [n: int] arc x : A -> B merge arc half : A -> C merge
        domain two space C : [n: int] space D : [n: int] arc x : C -> D merge"""
    )
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        assert {arc.key: arc.state for arc in room.flows.graph().arcs} == {
            "one:x": "enabled",
            "one:two:half": "waits for the domain two",
            "two:x": "enabled",
        }
        with pytest.raises(ArgumentInvalid, match="several domains have an arc x: say one:x or two:x"):
            room.definitions.explain_arc("x")
        assert room.definitions.explain_arc("two:x").source == "C"


def test_an_arc_between_two_domains_is_found_by_either_and_by_both(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(
        """domain one space A : [n: int] arc x : A -> B merge
        domain two space B : [n: int] arc x : A -> B merge
        domain three space C : [n: int] space D : [n: int] arc x : C -> D merge"""
    )
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        with pytest.raises(ArgumentInvalid, match="several domains have an arc x: say one:two:x or three:x"):
            room.definitions.explain_arc("x")
        assert [room.definitions.explain_arc(f"{domain}:x").source for domain in ("one", "two", "one:two")] == ["A"] * 3
        for domain in ("one:three", "four", "one:two:three"):
            with pytest.raises(DefinitionUnknown, match=f"there is no arc {domain}:x"):
                room.definitions.explain_arc(f"{domain}:x")


def test_an_arc_is_quoted_as_it_was_written(room: Postroom, load: Load) -> None:
    """It was quoted as it would be printed: other signs, no comments, no lines."""
    arc = "arc ab :  A -> B\n  select [n:   n > 1   and n <> 007]  # of those\n  durable"
    load(f"domain one space A : [n: int] space B : [n: int]\n{arc}   # the last\n\nspace C : [m: int]")
    assert room.definitions.explain_arc("ab").definition == arc
    assert room.definitions.explain_arc("ab").as_dict()["as_written"] == arc
    printed = room.definitions.files()
    assert b"durable" in b"".join(printed.values())
    with postroom.open(room.url) as again:
        assert again.definitions.explain_arc("ab").definition == arc


def test_an_arc_that_was_changed_otherwise_is_quoted_as_it_would_be_written() -> None:
    *_, arc = parse("domain one arc late :  A -> B  select [n: > 1]", "one.flow")
    assert isinstance(arc, Arc)
    assert definition("arc late in one", Kept(arc)).body["text"] == "arc late :  A -> B  select [n: > 1]"
    changed = Kept(replace(arc, durable=True))
    assert definition("arc late in one", changed).body["text"] == "arc late : A -> B select [n: > 1] durable"
