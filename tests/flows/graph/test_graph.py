"""A graph of statements: its spaces, its meta-spaces, and arcs that two domains share."""

from __future__ import annotations

from tests.flows.language.test_reader import TRADING

from postroom.flows.graph.checks import check
from postroom.flows.graph.graph import Graph
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


def test_arcs_of_one_name_are_told_apart_by_their_domains() -> None:
    text = "arc a : A -> B merge domain e space E : [x: int] space F : [x: int] arc a : E -> F merge"
    graph = Graph.of(parse(DOMAIN + text, "f"))
    assert graph.of_name("a") == ["d:a", "e:a"]
    assert graph.of_name("a", "e") == ["e:a"]
    assert graph.of_name("b") == []


def test_half_of_an_arc_across_domains_leads_nowhere_yet() -> None:
    half = "domain e space E : [x: int] arc a : A -> E merge"
    assert Graph.of(parse(DOMAIN + half, "f")).outgoing() == {}
    whole = Graph.of(parse(f"{DOMAIN}{half} domain d arc a : A -> E merge", "f"))
    assert [arc.name for arc in whole.outgoing()["A"]] == ["a"]


def test_the_first_of_two_spaces_of_a_name_counts() -> None:
    graph = Graph.of(parse(f"{DOMAIN}space A : [other: string]", "f"))
    assert str(graph.spaces["A"].type) == "[x: int]"
