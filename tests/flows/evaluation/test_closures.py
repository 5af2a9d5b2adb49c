"""Patterns and expressions as functions: for every event they say what the plain meaning says."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.flows.blocks import Block, blocks, said
from tests.flows.language.test_arithmetic import (
    by_meaning,
    combinations,
    comparisons,
    expression,
    graph_of,
    is_planned,
    planned,
)

from postroom.flows.evaluation.closures import maker, matcher
from postroom.flows.evaluation.paths import NO_VALUE
from postroom.flows.graph.graph import Graph
from postroom.flows.language import inference
from postroom.flows.language.arithmetic import NoValue
from postroom.flows.language.codecs import reader, writer
from postroom.flows.language.definitions import Arc, Select
from postroom.flows.language.meaning import match, matched
from postroom.flows.language.patterns import parse_expression, parse_pattern
from postroom.flows.language.types import SCALARS, parse
from postroom.flows.language.values import canonical, parse_event


@pytest.mark.parametrize("block", blocks("matches.txt"), ids=lambda block: said(block, "pattern"))
def test_a_function_of_a_pattern_binds_what_the_pattern_does(block: Block) -> None:
    type, pattern = parse(said(block, "type")), parse_pattern(said(block, "pattern"))
    function, types = matcher([(pattern, type)])
    assert types == inference.bind(pattern, type)
    for word, rest in block[2:]:
        event = parse_event(rest.partition(" : ")[0] if word != "no" else rest, type, "S")
        plain = match(pattern, type, event)
        assert function(event) == (None if plain is None else {name: value for name, (value, _) in plain.items()})
        assert (plain is None) == (word == "no")


@pytest.mark.parametrize("block", blocks("results.txt"), ids=lambda block: said(block, "result"))
def test_a_function_of_an_expression_makes_what_the_expression_does(block: Block) -> None:
    type, wanted = parse(said(block, "type")), parse(said(block, "wanted"))
    pattern, result = parse_pattern(said(block, "pattern")), parse_expression(said(block, "result"))
    function, types = matcher([(pattern, type)])
    make = maker(result, wanted, types)
    for _, rest in block[4:]:
        text, _, expected = rest.partition(" => ")
        made = make(function(parse_event(text, type, "S")) or {})
        assert writer(wanted)(made) == canonical(parse_event(expected, wanted, "S"), wanted)


def by_functions(graph: Graph, arc: Arc, event: Any) -> str | None:
    source, target = (graph.spaces[name].type for name in (arc.source, arc.target))
    function, types = matcher([(arc.does.pattern, source)])  # type: ignore[union-attr]  # no merge is here
    try:
        bound = function(event)
        if bound is None:
            return None
        made = event if isinstance(arc.does, Select) else maker(arc.does.result, target, types)(bound)  # type: ignore[union-attr]
    except NoValue:
        return NO_VALUE
    return writer(target)(made)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 200))])
def test_functions_and_meaning_agree_at_the_edges_of_every_type(seed: int) -> None:
    chance = random.Random(seed)
    types = (chance.choice(SCALARS), chance.choice(["int", "decimal", "float", *SCALARS]), chance.choice(SCALARS))
    tried = (expression(chance, 2) for _ in range(60))
    results = [result for result in tried if is_planned(graph_of(types, [result], []))][:8]
    patterns = [pattern for pattern in comparisons(chance, types) if is_planned(graph_of(types, [], [pattern]))]
    graph = planned(graph_of(types, results, patterns))
    source = graph.spaces["S"].type
    for text in combinations(chance, types, 12):
        event = parse_event(text, source, "S")
        assert reader(source)(canonical(event, source)) == event
        for arc, *_ in graph.arcs.values():
            assert by_functions(graph, arc, event) == by_meaning(graph, arc, event), f"{arc} of {text}"


def test_two_patterns_share_what_they_bind() -> None:
    left, right = parse("[k: string, n: int]"), parse("[k: string, m: decimal]")
    patterns = [(parse_pattern("[k: k, n: n > 0]"), left), (parse_pattern("[k: k, m: > n / 2]"), right)]
    function, _ = matcher(patterns)
    for event, other in ((("a", 3), ("a", 2)), (("a", 3), ("b", 2)), (("a", 3), ("a", 1)), (("a", -3), ("a", 2))):
        plain = matched([(*patterns[0], event), (*patterns[1], other)])
        assert function(event, other) == (None if plain is None else {name: said for name, (said, _) in plain.items()})
