"""What patterns and results mean for one event."""

from __future__ import annotations

import pytest
from tests.flows.blocks import Block, blocks, said
from tests.flows.literals import literal

from postroom.flows.language import inference
from postroom.flows.language.meaning import make, match
from postroom.flows.language.patterns import parse_expression, parse_pattern
from postroom.flows.language.types import Type, parse
from postroom.flows.language.values import canonical, parse_event


def event(text: str, type: Type) -> object:
    return parse_event(text, type, "S")


@pytest.mark.parametrize("block", blocks("matches.txt"), ids=lambda block: said(block, "pattern"))
def test_a_pattern_matches_what_it_says_and_binds_its_variables(block: Block) -> None:
    type, pattern = parse(said(block, "type")), parse_pattern(said(block, "pattern"))
    assert parse_pattern(str(pattern)) == pattern
    inferred = inference.bind(pattern, type)
    told = 0
    for word, rest in block[2:]:
        told += 1
        if word == "no":
            assert match(pattern, type, event(rest, type)) is None, rest
            continue
        text, _, expected = rest.partition(" : ") if " : " in rest else (rest, "", "")
        found = match(pattern, type, event(text, type))
        assert found is not None, text
        assert ", ".join(f"{name} = {literal(value, of)}" for name, (value, of) in found.items()) == expected
        assert {name: of for name, (_, of) in found.items()} == inferred
    assert told


@pytest.mark.parametrize("block", blocks("results.txt"), ids=lambda block: said(block, "result"))
def test_a_transform_makes_a_new_event(block: Block) -> None:
    type, wanted = parse(said(block, "type")), parse(said(block, "wanted"))
    pattern, expression = parse_pattern(said(block, "pattern")), parse_expression(said(block, "result"))
    assert parse_expression(str(expression)) == expression
    inference.result(expression, wanted, inference.bind(pattern, type))
    for word, rest in block[4:]:
        assert word == "event"
        text, _, expected = rest.partition(" => ")
        found = match(pattern, type, event(text, type))
        assert found is not None
        assert canonical(make(expression, wanted, found), wanted) == canonical(event(expected, wanted), wanted)
