"""Changes of a graph: what is kept, what goes, and what a change needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import NameInvalid, QueueInUse
from postroom.flows.graph import changes
from postroom.flows.graph.versions import CLIENT, Kept, RoomGraph, kept_from, key_of
from postroom.flows.language.reader import parse

TWO = "domain one space A : [n: int] space B domain two space X : [n: int] domain one arc ab : A -> B merge"


def room_graph(text: str) -> RoomGraph:
    return RoomGraph(3, kept_from(parse(text, "f.flow"), {}))


def test_a_space_without_a_type_gets_that_of_its_first_arc() -> None:
    typed = changes.typed(room_graph(TWO).kept)
    assert str(typed["space B"].statement) == "space B : [n: int]"
    assert typed["space A"] == room_graph(TWO).kept["space A"]


def test_statements_of_a_name_are_replaced_and_others_are_kept() -> None:
    old = room_graph(TWO)
    (_, other) = parse("domain one arc ab : A -> B select [n: 1]", "g.flow")
    wanted = changes.with_statements(old, [Kept(other)])
    assert wanted.keys() == old.kept.keys()
    assert wanted[key_of(other)].statement is other
    assert changes.without(old, ["space X", "no such key"]).keys() == old.kept.keys() - {"space X"}


def test_a_domain_that_is_loaded_again_keeps_what_came_at_run_time() -> None:
    old = room_graph(TWO)
    (_, added) = parse("domain one space desk : [n: int]", "client")
    more = RoomGraph(3, changes.with_statements(old, [Kept(added, CLIENT)]))
    assert list(changes.without_domains(more, {"one"})) == ["domain two", "space X", "space desk"]


def test_a_space_whose_name_no_queue_can_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long.flow").write_text(f"domain d space {'x' * 201} : [n: int]")
    with postroom.open(tmp_path / "room.db") as room:
        with pytest.raises(NameInvalid, match="1 to 200 characters"):
            room.load(tmp_path / "long.flow")
        assert room.flows.graph().spaces == ()


def test_the_type_of_a_space_with_unread_events_changes_only_if_they_are_dropped(tmp_path: Path) -> None:
    file = tmp_path / "g.flow"
    with postroom.open(tmp_path / "room.db") as room:
        file.write_text("domain d space A : [n: int]")
        room.load(file)
        room.publish("A", "[1]")
        file.write_text("domain d space A : [s: string]")
        with pytest.raises(QueueInUse):
            room.load(file)
        assert [str(space.type) for space in room.flows.graph().spaces if space.name == "A"] == ["[n: int]"]
        assert room.load(file, drop=True).changed == ("space A",)


def test_a_load_that_changes_nothing_but_lines_makes_no_version_and_no_epoch(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(TWO)
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        (tmp_path / "g.flow").write_text(f"# a remark\n{TWO}")
        room.load(tmp_path / "g.flow")
        assert room.flows.graph().version == 1
        assert [event.verb for event in room.journal.last(100)].count("graph") == 1
