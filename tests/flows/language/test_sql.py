"""Patterns and results in Spark SQL against their meaning, one event at a time."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.flows.blocks import Block, blocks, said

from postroom.flows.evaluation.dataflow import register
from postroom.flows.language.meaning import make, match
from postroom.flows.language.patterns import Expression, Pattern, parse_expression, parse_pattern
from postroom.flows.language.sql import Variables, body_of, event_of, made, matches
from postroom.flows.language.types import Type, parse
from postroom.flows.language.values import canonical, parse_event


def by_spark(
    spark: SparkSession, type: Type, pattern: Pattern, bodies: list[str], made_of: tuple[Expression, Type] | None = None
) -> list[Any]:
    """For each event what the pattern binds (or what is made of it) as JSON, or None."""
    frame = spark.createDataFrame([(number, body) for number, body in enumerate(bodies)], "n int, body string")
    frame = frame.selectExpr("n", f"{event_of('body', type)} AS event")
    variables = Variables()
    matched = matches(pattern, type, "event", variables)
    if made_of is None:
        shown = [body_of(each.value, each.type) for each in variables.values()]
    else:
        shown = [body_of(made(made_of[0], made_of[1], variables), made_of[1])]
    register(spark, variables)
    rows = frame.where(matched).selectExpr("n", f"CAST(array({', '.join(shown)}) AS array<string>) AS shown").collect()
    found = {row.n: row.shown for row in rows}
    return [found.get(number) for number in range(len(bodies))]


@pytest.mark.parametrize("block", blocks("matches.txt"), ids=lambda block: said(block, "pattern"))
def test_a_pattern_is_a_condition(spark: SparkSession, block: Block) -> None:
    type, pattern = parse(said(block, "type")), parse_pattern(said(block, "pattern"))
    texts = [rest.partition(" : ")[0] if word == "yes" and " = " in rest else rest for word, rest in block[2:]]
    events = [parsed(text, type) for text in texts]
    found = by_spark(spark, type, pattern, [canonical(event, type) for event in events])
    for event, shown in zip(events, found, strict=True):
        bound = match(pattern, type, event)
        assert (bound is None) == (shown is None)
        if bound is not None:
            assert [parsed(text, of) for text, (_, of) in zip(shown, bound.values(), strict=True)] == [
                value for value, _ in bound.values()
            ]


@pytest.mark.parametrize("block", blocks("results.txt"), ids=lambda block: said(block, "result"))
def test_a_result_is_an_expression(spark: SparkSession, block: Block) -> None:
    type, wanted = parse(said(block, "type")), parse(said(block, "wanted"))
    pattern, expression = parse_pattern(said(block, "pattern")), parse_expression(said(block, "result"))
    events = [parse_event(rest.partition(" => ")[0], type, "S") for _, rest in block[4:]]
    bodies = [canonical(event, type) for event in events]
    for event, found in zip(events, by_spark(spark, type, pattern, bodies, (expression, wanted)), strict=True):
        bound = match(pattern, type, event)
        assert bound is not None
        assert parsed(found[0], wanted) == make(expression, wanted, bound)


def parsed(text: str, type: Type) -> Any:
    return parse_event(text, type, "S")
