"""Patterns of Table 2 and expressions: read and printed."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.language.patterns import parse_expression, parse_pattern


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
