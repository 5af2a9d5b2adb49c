"""Aggregates that are joined: whatever the parts, the whole is the same."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from postroom.flows.evaluation.partials import Partials
from postroom.flows.language.aggregates import AGGREGATES, made_type, split
from postroom.flows.language.patterns import parse_expression
from postroom.flows.language.types import DECIMAL, INT, Type


def partials(type: Type) -> Partials:
    calls = ", ".join("count()" if name == "count" else f"{name}(x)" for name in AGGREGATES)
    _, found = split(parse_expression(f"[{calls}]"))
    bound = {"x": type}
    assert all(made_type(each, bound) for each in found.values())
    return Partials(list(found.values()), bound)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("type", [INT, DECIMAL], ids=str)
def test_parts_in_a_row_make_the_same_whole_however_they_are_cut(seed: int, type: Type) -> None:
    dice, work = random.Random(seed), partials(type)
    values: list[Any] = [dice.randrange(-99, 99) for _ in range(9)]
    if type == DECIMAL:
        values = [Decimal(each).scaleb(-dice.randrange(3)) for each in values]
    ones = [work.begun({"x": value}, dice.randrange(3)) for value in values]

    def joined(some: list[Any]) -> list[Any]:
        if len(some) == 1:
            found: list[Any] = some[0]
            return found
        cut = dice.randrange(1, len(some))
        return work.joined(joined(some[:cut]), joined(some[cut:]))

    first, second = (work.results(joined(ones)) for _ in range(2))
    assert first == second
    assert first["count()"] == 9
    assert first["sum(x)"] == sum(values)
    assert first["min(x)"] == min(values)
    assert first["max(x)"] == max(values)


def test_a_sum_keeps_the_larger_scale_and_equal_decimals_are_told_apart_as_written() -> None:
    work = partials(DECIMAL)
    parts = [work.begun({"x": Decimal(each)}, 0) for each in ("1.5", "1.50", "2")]
    whole = work.results(work.joined(work.joined(parts[0], parts[1]), parts[2]))
    assert str(whole["sum(x)"]) == "5.00"
    assert str(whole["min(x)"]) == "1.5"
    assert str(whole["last(x)"]) == "2"
