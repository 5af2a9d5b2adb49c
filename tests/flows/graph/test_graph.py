"""A graph of statements: its spaces, its meta-spaces, and arcs that two domains share."""

from __future__ import annotations

from tests.flows.language.test_reader import TRADING

from postroom.flows.graph.checks import check
from postroom.flows.graph.meta import META_TYPE
from postroom.flows.language.reader import parse

DOMAIN = "domain d\nspace A : [x: int]\nspace B : [x: int]\nspace C : [y: string]\n"


def test_a_sound_graph_has_its_spaces_and_a_meta_space_of_each_domain() -> None:
    graph = check(parse(TRADING, "f"))
    assert set(graph.spaces) == {"meta:trading", "NYSE", "NASDAQ", "Big", "All", "Capital", "Seen", "Where"}
    assert (graph.spaces["meta:trading"].type, graph.spaces["meta:trading"].retain) == (META_TYPE, True)
    assert {name: len(arcs) for name, arcs in graph.outgoing().items()} == {"NYSE": 2, "NASDAQ": 1, "Seen": 1}


def test_an_arc_across_domains_stands_in_both() -> None:
    text = "domain e space E : [x: int] arc a : A -> E merge domain d arc a : A -> E merge"
    graph = check(parse(DOMAIN + text, "f"))
    assert [arc.domain for arc in graph.arcs["d:e:a"]] == ["e", "d"]
    assert graph.crosses(graph.arcs["d:e:a"][0])
