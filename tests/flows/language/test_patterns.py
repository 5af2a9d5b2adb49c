"""Patterns of Table 2 and results: read, printed, typed, and what they mean for one event."""

from __future__ import annotations

import pytest
from tests.flows.blocks import Block, blocks, said
from tests.flows.literals import literal

from postroom.errors import FlowInvalid
from postroom.flows.evaluation.meaning import make, match
from postroom.flows.language import inference
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


@pytest.mark.parametrize("block", blocks("refused.txt"), ids=lambda block: said(block, "why"))
def test_what_can_never_be_right_is_refused_with_its_place(block: Block) -> None:
    words = dict(block)

    def checked() -> None:
        bound = inference.bind(parse_pattern(words["pattern"], "f"), parse(words["type"]))
        inference.result(parse_expression(words["result"], "f"), parse(words["wanted"]), bound)

    with pytest.raises(FlowInvalid) as caught:
        checked()
    assert str(caught.value) == f"f:{words['why']}"


@pytest.mark.parametrize(
    "text",
    [
        "any",
        "p",
        "p >= 3 and < 5",
        "p >= 1 and <= 2",
        "A: B: any",
        "{1, 2} + rest",
        "(a, b) + any",
        "[]",
        '["x", y = 3]',
    ],
)
def test_what_is_printed_reads_back_as_the_same(text: str) -> None:
    assert str(parse_pattern(text)) == text
    assert parse_pattern(str(parse_pattern(text))) == parse_pattern(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1 + 2 * 3", "1 + 2 * 3"),
        ("(1 + 2) * 3", "(1 + 2) * 3"),
        ("1 - (2 - 3)", "1 - (2 - 3)"),
        ("-x", "0 - x"),
        ("(1,)", "(1,)"),
        ("(1)", "1"),
        ("[a: x, upper(y)]", "[a: x, upper(y)]"),
        ("A: {1, -2}", "A: {1, -2}"),
    ],
)
def test_an_expression_is_printed_as_it_is_read(text: str, printed: str) -> None:
    assert str(parse_expression(text)) == printed
    assert parse_expression(printed) == parse_expression(text)


@pytest.mark.parametrize("text", ["", "[", "p >", "p > 3 and", "p between 3", "[a: ]", "+ 3", "x + ", "1 2", "{1"])
def test_half_a_pattern_is_refused(text: str) -> None:
    with pytest.raises(FlowInvalid, match=r"is expected here, not .* \[syntax\]"):
        parse_pattern(text)
