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
