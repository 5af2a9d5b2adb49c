"""The picture of a graph as a Mermaid flowchart."""

from __future__ import annotations

import re

from tests.flows.conftest import Load

from postroom.flows.graph.drawing import mermaid
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


def test_everything_is_in_the_flowchart(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.client("desk").subscribe("A", durable=True)
    room.client("desk").disconnect()
    drawn = mermaid(room.flows.graph())
    assert drawn.startswith("flowchart LR\n")
    labels = set(re.findall(r'"([^"]*)"', drawn))
    assert {"A", "B", "C<br>retain", "Alone", "desk", "domain one", "domain two"} <= labels
    assert "ab<br>select [n: n #62; 1 and #60; 10]" in labels
    assert any(label.startswith("meta:one") for label in labels)
    assert any(label.endswith("<br>(disabled)") for label in labels)
    assert drawn.count("-.->") == 2, "that of the client that has gone"
    assert drawn == mermaid(room.flows.graph()), "the same graph has the same picture"


def test_every_arrow_is_between_nodes_that_are_there(room: Postroom, load: Load) -> None:
    load(GRAPH)
    drawn = mermaid(room.flows.graph())
    nodes = re.findall(r"^ +(\w+)(?:\(|\[)", drawn, re.MULTILINE)
    arrows = [
        line.replace("-.->", "-->").split("-->") for line in drawn.splitlines() if "-->" in line or "-.->" in line
    ]
    assert len(nodes) == len(set(nodes))
    assert {end.strip() for ends in arrows for end in ends} <= set(nodes)
    assert len(arrows) == len(room.flows.graph().arcs)


def test_signs_of_mermaid_in_a_text_stay_text(room: Postroom, load: Load) -> None:
    load('domain d space A : [s: string] space B : [s: string] arc a : A -> B select [s: "#`<b>&\\""]')
    (label,) = re.findall(r'"a<br>([^"]*)"', mermaid(room.flows.graph()))
    assert label == "select [s: #34;#35;#96;#60;b#62;#38;\\#34;#34;]"
