"""The ways of events over arcs, without Spark."""

from __future__ import annotations

from tests.flows.evaluation.test_plans import GRAPH, room_graph

from postroom.flows.evaluation.paths import ArcPaths


def test_every_arc_on_every_way_comes_behind_the_one_it_follows() -> None:
    found = room_graph(GRAPH)
    steps = ArcPaths(found.running, found.places).ways("A")
    assert [step.number for step in steps] == list(range(len(steps)))
    assert all(step.before < step.number for step in steps)
    assert sorted(step.arc.name for step in steps) == ["ab", "ac", "bd", "cd"]


def test_what_no_arc_changes_stays_as_it_came() -> None:
    found = room_graph(
        "domain d space A : [n: int] space B : [n: int] space C : [n: int] "
        "arc ab : A -> B select [n: 1] arc bc : B -> C transform [n: x] => [n: x]"
    )
    paths = ArcPaths(found.running, found.places)
    names = {step.number: step.arc.name for step in paths.ways("A")}
    assert {names[number] for number in paths.unchanged("A")} == {"ab"}
    assert paths.junctions("A") == []
