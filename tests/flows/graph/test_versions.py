"""The graph in one version: what flows, what stays, what is disabled, and how it is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import postroom
from postroom.errors import DefinitionUnknown
from postroom.flows.graph import versions
from postroom.flows.graph.versions import Kept, RoomGraph, RoomGraphs, kept_from, key_of, with_queues
from postroom.flows.language.definitions import Arc
from postroom.flows.language.reader import parse

GRAPH = """domain d
allow op : addArc
allow op : deleteArc, addArc
space A : [n: int]
space B : [n: int] retain
space C : [n: int]
arc ab : A -> B select [n: > 1] durable
arc bc : B -> C merge
"""


def room_graph(text: str = GRAPH) -> RoomGraph:
    kept = kept_from(parse(text, "f.flow"), {})
    return RoomGraph(1, with_queues(kept, {}))


def disabled(found: RoomGraph, key: str) -> RoomGraph:
    return RoomGraph(2, {**found.kept, key: replace(found.kept[key], disabled="op")})


def test_every_statement_has_a_name_of_its_own() -> None:
    assert list(room_graph().kept) == [
        "domain d",
        "allow op in d",
        "space A",
        "space B",
        "space C",
        "arc ab in d",
        "arc bc in d",
    ]
    assert str(room_graph().kept["allow op in d"].statement) == "allow op : addArc, deleteArc"


def test_events_flow_from_spaces_with_arcs_and_stay_elsewhere() -> None:
    found = room_graph()
    assert found.flowing == {"A", "B"}
    assert found.keeping == {"B", "C", "meta:d"}
    assert found.durable.keys() == {"arc:ab"}
    assert found.before(["C"]) == {"A", "B", "C"}
    assert found.before(["A"]) == {"A"}


def test_a_disabled_durable_arc_leads_aside_and_another_one_nowhere() -> None:
    aside = disabled(room_graph(), "arc ab in d")
    (arc, _) = aside.running.arcs["d:ab"]
    assert (arc.target, str(arc.does)) == ("arc:ab", "select [n: > 1]")
    assert "arc:ab" in aside.keeping
    gone = disabled(room_graph(), "arc bc in d")
    assert "d:bc" not in gone.running.arcs
    assert gone.flowing == {"A", "B"}, "its events are skipped, not kept"


def test_what_a_newer_graph_has_with_another_type_is_not_alive() -> None:
    old, new = room_graph(), room_graph(GRAPH.replace("space C : [n: int]", "space C : [m: int]"))
    assert old.living(old) == old.places
    assert old.places - old.living(new) == {"C"}


def test_durable_arcs_of_one_name_have_queues_of_their_own() -> None:
    text = GRAPH + "domain e space E : [n: int] space F : [n: int] arc ab : E -> F merge durable"
    found = room_graph(text)
    queues = {found.aside(arc) for arc in found.durable.values()}
    assert queues == {"arc:ab", "arc:e:ab"}
    later = with_queues({key: each for key, each in found.kept.items() if key != "arc ab in d"}, found.kept)
    assert later["arc ab in e"].aside == "arc:e:ab", "it keeps the one it had"


def test_a_space_that_is_not_there_is_told_with_the_nearest() -> None:
    assert room_graph().space("A").retain is False
    with pytest.raises(DefinitionUnknown, match=r"space metad.*did you mean meta:d"):
        room_graph().space("metad")


@pytest.mark.parametrize("key", list(room_graph().kept))
def test_a_statement_is_read_from_the_catalog_as_it_was_written(key: str) -> None:
    kept = replace(room_graph().kept[key], origin="event", disabled="op" if key.startswith("arc") else "")
    assert versions._kept(versions.definition(key, kept)) == kept


def test_a_graph_is_read_once_for_each_version(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(GRAPH)
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        room_graphs = RoomGraphs()
        first = room.store.read(room_graphs.now)
        assert room.store.read(room_graphs.now) is first
        room.client("desk").subscribe("C")
        second = room.store.read(room_graphs.now)
        assert second.version > first.version
        assert room.store.read(lambda tx: room_graphs.at(tx, first.version)) is first
        assert second.origin("space desk") == "client"
        assert first.origin("space desk") is None


def test_a_kept_arc_is_known_by_name_and_domain() -> None:
    (arc,) = (each.statement for each in room_graph().kept.values() if key_of(each.statement) == "arc bc in d")
    assert isinstance(arc, Arc)
    assert room_graph().halves(arc) == ["arc bc in d"]
    assert Kept(arc).origin == "file"
