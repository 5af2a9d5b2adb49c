"""The part of a graph whose events come from outside: where it ends, and what is refused when it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import EventRefused, FlowInvalid, GatewayInUse
from postroom.flows.graph.checks import check
from postroom.flows.graph.streamed import streamed, streams
from postroom.flows.language.reader import parse
from postroom.room import Postroom

T = "[n: int]"
GOOD = f"""domain d
space A : {T} from files "g/a" format json
space B : {T} from files "g/b" format json
space C : {T} from files "g/c" format json
space M : {T}
space L : {T}
space O : {T} to files "g/o" format json
space R : {T}
arc am : A -> M merge
arc bm : B -> M merge
arc mo : M -> O merge
arc cl : C -> L merge
arc rl : R -> L merge
"""


def test_sources_belong_together_where_their_events_meet() -> None:
    graph = check(parse(GOOD, "f"))
    assert streams(graph) == [("A", "B"), ("C",)]
    assert streamed(graph) == {"A", "B", "C", "M", "L", "O"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("arc x : R -> A merge", "events of A come from outside, and no arc leads there"),
        ("arc x : O -> L merge", "events of O go outside, and no arc leads on"),
        ("arc x : R -> O merge", "only events from outside go to O, not those of R"),
        ("arc x : R -> M merge", "M leads events from outside on, and R has events of the room"),
        ("arc x : A -> L merge durable", "arc x cannot be durable"),
        ('space U from files "g/a" format json', "its type is missing"),
        ('space U : [n: {int}] from files "g/a" format csv', "csv has rows of"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(more: str, why: str) -> None:
    with pytest.raises(FlowInvalid, match=why) as refused:
        check(parse(GOOD + more, "f"))
    assert refused.value.facts["problems"][0].position.line == GOOD.count("\n") + 1


def test_events_of_the_room_and_from_outside_do_not_meet_in_a_join() -> None:
    text = """domain d
space A : [n: int, t: timestamp] from files "g/a" format json
space R : [n: int, t: timestamp]
space L : [n: int]
arc x : A -> L transform [n: n, t: t] at t join R [n: n, t: u] at u within 1 day => [n: n]
"""
    with pytest.raises(FlowInvalid, match="R has no events from outside, and they cannot meet"):
        check(parse(text, "f"))


def test_a_gateway_must_be_there_and_stays_while_it_is_named(room: Postroom, tmp_path: Path) -> None:
    file = tmp_path / "g.flow"
    file.write_text(GOOD)
    with pytest.raises(FlowInvalid, match="this room has no gateway g; an operator adds it with") as refused:
        room.load(file)
    position = refused.value.facts["problems"][0].position
    assert (position.line, position.column) == (2, 31)
    room.gateways.add("g", "kafka", brokers="localhost:9092")
    with pytest.raises(FlowInvalid, match="the gateway g is kafka, not files"):
        room.load(file)
    room.gateways.remove("g")
    room.gateways.add("g", "files", folder=str(tmp_path))
    room.load(file)
    with pytest.raises(GatewayInUse, match="space A"):
        room.gateways.remove("g")
    assert "space O" in room.gateways.all()[0]["queue_names"]


def test_nobody_publishes_where_a_stream_leads_on(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(GOOD)
    room.gateways.add("g", "files", folder=str(tmp_path))
    room.load(tmp_path / "g.flow")
    for space in ("A", "M", "O"):
        with pytest.raises(EventRefused, match="its events come from outside"):
            room.publish(space, {"n": 1})
    for space in ("L", "R"):
        room.publish(space, {"n": 1})
