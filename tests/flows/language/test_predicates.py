"""What a pattern asks of single values, as far as an index can answer it."""

from __future__ import annotations

import pytest

from postroom.flows.language.patterns import parse_pattern
from postroom.flows.language.predicates import Predicate, predicates
from postroom.flows.language.types import parse

TYPE = parse("[issue: string, price: int, of: [rate: float, open: boolean]]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("any", []),
        ('[issue: "IBM"]', [Predicate(("issue",), "=", "IBM")]),
        ("[price: p > 75 and <= 80]", [Predicate(("price",), ">", 75), Predicate(("price",), "<=", 80)]),
        ("[of: [rate: >= 0.5]]", [Predicate(("of", "rate"), ">=", 0.5)]),
        ("[issue: i, price: p]", []),
        ("[price: p, of: [rate: > p]]", None),
        ("[issue: i > i]", None),
    ],
)
def test_only_comparisons_with_constants_go_into_an_index(text: str, expected: list[Predicate] | None) -> None:
    assert predicates(parse_pattern(text), TYPE) == expected


@pytest.mark.parametrize("text", ["[x, x]", "[a: d > '2026-01-01']".replace("'", '"'), "{1} + rest"])
def test_what_asks_for_more_stays_a_column(text: str) -> None:
    types = {"[x, x]": "[int, int]", "{1} + rest": "{int}"}
    assert predicates(parse_pattern(text), parse(types.get(text, "[a: date]"))) is None
