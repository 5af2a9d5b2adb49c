"""The types that patterns bind and expressions make, and what can never be right."""

from __future__ import annotations

import pytest
from tests.flows.blocks import Block, blocks, said

from postroom.errors import FlowInvalid
from postroom.flows.language import inference
from postroom.flows.language.patterns import parse_expression, parse_pattern
from postroom.flows.language.types import parse


@pytest.mark.parametrize("block", blocks("refused.txt"), ids=lambda block: said(block, "why"))
def test_what_can_never_be_right_is_refused_with_its_place(block: Block) -> None:
    words = dict(block)

    def checked() -> None:
        bound = inference.bind(parse_pattern(words["pattern"], "f"), parse(words["type"]))
        inference.result(parse_expression(words["result"], "f"), parse(words["wanted"]), bound)

    with pytest.raises(FlowInvalid) as caught:
        checked()
    assert str(caught.value) == f"f:{words['why']}"


def test_a_pattern_binds_its_variables_in_their_order() -> None:
    bound = inference.bind(parse_pattern("[a: x, b: {1} + rest]"), parse("[a: string, b: {int}]"))
    assert {name: str(type) for name, type in bound.items()} == {"x": "string", "rest": "{int}"}
    assert list(bound) == ["x", "rest"]


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("1", "int"),
        ("1.5", "decimal"),
        ("n + 1", "int"),
        ("n / 2", "float"),
        ("n * 1.5", "decimal"),
        ("s + s", "string"),
        ("d + 1", "date"),
        ("d - d", "int"),
        ("{n, 1.5}", "{decimal}"),
        ("(n,)", "(int)"),
        ("[a: n, s]", "[a: int, string]"),
    ],
)
def test_an_expression_has_this_type_by_itself(expression: str, type: str) -> None:
    bound = {"n": parse("int"), "s": parse("string"), "d": parse("date")}
    assert str(inference.type_of(parse_expression(expression), bound)) == type


@pytest.mark.parametrize(
    "text", ["s + 1", "s - s", "d + d", "d * 2", "{}", '{1, "a"}', "nobody", "nope(1)", "length(1)"]
)
def test_an_expression_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(FlowInvalid):
        inference.type_of(parse_expression(text), {"s": parse("string"), "d": parse("date")})
