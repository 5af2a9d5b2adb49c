"""Flow files in a room: what a load adds, keeps and removes, and what it must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.flows.conftest import Load

from postroom.errors import CollectionUnknown, DefinitionUnknown, EventsOnTheWay, FlowInvalid, NameTaken, QueueWatched
from postroom.room import Postroom

GRAPH = """
domain trading
allow operator : addArc
allow operator : deleteArc
space NYSE : [issue: string, price: int]
space Big  : [issue: string, price: int]
arc big : NYSE -> Big select [price: p > 75]
"""


def test_a_load_tells_what_it_added_kept_changed_and_removed(load: Load) -> None:
    first = load(GRAPH)
    assert first.added == (
        "domain trading",
        "allow operator in trading",
        "space NYSE",
        "space Big",
        "arc big in trading",
    )
    again = load(GRAPH)
    assert (again.added, again.changed, again.removed) == ((), (), ())
    assert again.version == first.version
    changed = load(GRAPH.replace("75", "80").replace("allow operator : deleteArc\n", ""))
    assert changed.changed == ("allow operator in trading", "arc big in trading")
    assert changed.version == first.version + 1


def test_what_one_principal_is_allowed_is_put_together(room: Postroom, load: Load) -> None:
    load(GRAPH)
    assert room.flows.graph().domains == {"trading": {"operator": ["addArc", "deleteArc"]}}


def test_a_load_replaces_its_own_domains_and_keeps_what_came_at_run_time(room: Postroom, load: Load) -> None:
    load(GRAPH.replace("allow operator : addArc", "allow * : addArc, addSpace, disableArc"))
    load("domain other space X : [n: int]", "other.flow")
    room.client("desk").subscribe("NYSE")
    room.publish("meta:trading", 'AddSpace: ["Added : [n: int]"]')
    room.publish("meta:trading", 'DisableArc: ["big"]')
    load(GRAPH)
    graph = room.flows.graph()
    assert {space.name for space in graph.spaces} >= {"X", "desk", "Added", "NYSE", "Big"}
    assert {arc.name: arc.state for arc in graph.arcs} == {"big": "disabled", "desk_NYSE": "enabled"}
    load(GRAPH.replace("75", "70"))
    assert {arc.name: arc.state for arc in room.flows.graph().arcs}["big"] == "enabled", "it is another arc now"


def test_a_space_that_a_subscription_needs_cannot_go(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.client("desk").subscribe("Big")
    with pytest.raises(FlowInvalid, match=r"subscription of desk.*arc desk_Big: there is no space Big"):
        load("domain trading space NYSE : [issue: string, price: int]")


def test_a_subscription_follows_the_type_of_its_space(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.client("desk").subscribe("NYSE", "[price: p > 10]")
    load(GRAPH.replace("price: int]", "price: int, volume: int]"))
    types = {space.name: space.type for space in room.flows.graph().spaces}
    assert types["desk"] == types["NYSE"] == "[issue: string, price: int, volume: int]"
    with pytest.raises(FlowInvalid, match=r"subscription of desk.*price"):
        load("domain trading space NYSE : [issue: string]")


def test_what_is_on_its_way_keeps_its_goal(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.publish("NYSE", '["IBM", 80]')
    with pytest.raises(EventsOnTheWay, match=r"Big cannot be removed or get another type: 1 event\(s\) in NYSE"):
        load("domain trading space NYSE : [issue: string, price: int]")
    load("domain trading space NYSE : [issue: string, price: int]", drop=True)


def test_files_may_share_a_domain_in_one_load(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "a.flow").write_text("domain d space A : [n: int]")
    (tmp_path / "b.flow").write_text("domain d space B : [n: int] arc ab : A -> B merge")
    room.load(tmp_path / "a.flow", tmp_path / "b.flow")
    assert [arc.name for arc in room.flows.graph().arcs] == ["ab"]


def test_flows_rules_and_queues_load_together_or_not_at_all(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "q.qdl").write_text("01 INPUT-QUEUE (M)\n99\n")
    (tmp_path / "r.demaq").write_text(
        "create queue orders kind basic mode persistent\n"
        "create rule toFlow for orders if (/order) then do enqueue <x/> into In"
    )
    (tmp_path / "f.flow").write_text("domain d space In : [n: int] space Out : [n: int] arc a : In -> Out merge")
    loaded = room.load(*[tmp_path / name for name in ("q.qdl", "r.demaq", "f.flow")])
    assert {"INP_0000", "space In", "rule toFlow"} <= set(loaded.added)
    (tmp_path / "f.flow").write_text("domain d space In : [n: int] arc a : In -> Out merge")
    before = room.store.read(lambda tx: tx.definitions.version())
    with pytest.raises(FlowInvalid, match="there is no space Out"):
        room.load(*[tmp_path / name for name in ("q.qdl", "r.demaq", "f.flow")])
    assert room.store.read(lambda tx: tx.definitions.version()) == before


@pytest.mark.parametrize("name", ["plain", "M"])
def test_a_name_that_is_a_queue_already_is_taken(room: Postroom, load: Load, tmp_path: Path, name: str) -> None:
    (tmp_path / "q.qdl").write_text("01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n99\n")
    room.load(tmp_path / "q.qdl")
    room.queues.create("plain")
    with pytest.raises(NameTaken):
        load(f"domain d space {name} : [n: int]")
    assert room.flows.graph().spaces == ()


def test_messages_of_a_queue_are_taken_by_rules_or_by_arcs(room: Postroom, load: Load, tmp_path: Path) -> None:
    load("domain d space A : [n: int] space B : [n: int] arc a : A -> B merge")
    program = tmp_path / "r.demaq"
    program.write_text("create rule r for A if (/x) then do enqueue <y/> into B")
    with pytest.raises(QueueWatched, match="the messages of A are taken by arcs, so rules cannot take them"):
        room.load(program)
    program.write_text("create rule r for B if (/x) then do enqueue <y/> into A")
    room.load(program)
    with pytest.raises(QueueWatched, match="the messages of B are taken by rules, so arcs cannot take them"):
        room.client("desk").subscribe("B")
    program.write_text("")
    room.load(program)
    room.client("desk").subscribe("B")


def test_a_graph_with_more_ways_than_a_plan_can_hold_is_refused(load: Load) -> None:
    layers = [f"space S{n} : [n: int]" for n in range(18)]
    layers += [f"arc {which}{n} : S{n} -> S{n + 1} merge" for n in range(17) for which in "ab"]
    with pytest.raises(FlowInvalid, match=r"more than 50000 arcs on all paths from S0 \[ways\]"):
        load("domain d " + " ".join(layers))


def test_a_space_that_comes_back_finds_its_history(room: Postroom, load: Load) -> None:
    load("domain d space A : [n: int]")
    room.publish("A", {"n": 1})
    room.receive("A")
    load("domain d")
    with pytest.raises(DefinitionUnknown, match="space A"):
        room.publish("A", {"n": 2})
    load("domain d space A : [n: int]")
    room.publish("A", {"n": 3})
    assert [message.body for message in room.queues.history("A")] == ['{"n":1}']


def test_a_check_changes_nothing_and_tells_every_problem(room: Postroom, load: Load, tmp_path: Path) -> None:
    load(GRAPH)
    bad = tmp_path / "bad.flow"
    bad.write_text("domain trading space A : [n: int] arc a : A -> B merge arc b : C -> A merge")
    with pytest.raises(FlowInvalid) as error:
        room.definitions.check(bad)
    assert [problem.rule for problem in error.value.facts["problems"]] == ["arc-ends", "arc-ends"]
    bad.write_text("domain trading space A : [n: int]")
    assert room.definitions.check(bad) == 2
    assert {space.name for space in room.flows.graph().spaces} == {"meta:trading", "NYSE", "Big"}


def test_a_table_from_an_unknown_collection_is_refused(load: Load) -> None:
    with pytest.raises(CollectionUnknown, match="prices"):
        load("domain d table t : [a: string] from collection prices")


def test_the_catalog_lists_what_a_graph_consists_of(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.client("desk").subscribe("NYSE")
    entries = {(entry.what, entry.name): entry for entry in room.definitions.catalog()}
    arc = entries["arc", "big in trading"]
    assert arc.definition["text"] == "arc big : NYSE -> Big select [price: p > 75]"
    assert arc.where is not None
    assert arc.where.endswith("graph.flow:7:1")
    assert entries["space", "desk"].by == "desk"
