"""The index over select arcs finds what asking each arc finds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.flows.evaluation.index import Index
from postroom.flows.language.meaning import match
from postroom.flows.language.patterns import parse_pattern
from postroom.flows.language.predicates import predicates
from postroom.flows.language.types import parse

TYPE = parse("[issue: string, price: int, of: [rate: float, open: boolean]]")
COLUMNS = {("issue",): pa.string(), ("price",): pa.int64(), ("of", "rate"): pa.float64(), ("of", "open"): pa.bool_()}
WORDS = ["", "a", "b", "bb", "é", "z"]
SIGNS = ["=", "!=", ">", ">=", "<", "<="]

issues = st.sampled_from(WORDS)
prices = st.integers(-3, 3)
rates = st.sampled_from([-1.5, -0.5, 0.0, 0.5, 2.0])
events = st.lists(st.tuples(issues, prices, st.tuples(rates, st.booleans())), max_size=12)


def compared(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = st.tuples(st.sampled_from(SIGNS), values).map(" ".join)
    return st.lists(one, min_size=1, max_size=3).map(" and ".join) | st.just("any") | values


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = {
        "issue": compared(issues.map(lambda word: f'"{word}"')),
        "price": compared(prices.map(str)),
        "of": compared(rates.map(str)).map(lambda said: f"[rate: {said}]") | st.sampled_from(["[open: true]", "any"]),
    }
    names = draw(st.lists(st.sampled_from(list(parts)), unique=True))
    return f"[{', '.join(f'{name}: {draw(parts[name])}' for name in names)}]" if names else "any"


def columns(some: list[Any]) -> dict[tuple[str, ...], pa.Array]:
    values = {
        ("issue",): [each[0] for each in some],
        ("price",): [each[1] for each in some],
        ("of", "rate"): [each[2][0] for each in some],
        ("of", "open"): [each[2][1] for each in some],
    }
    return {path: pa.array(found, COLUMNS[path]) for path, found in values.items()}


@settings(max_examples=300, deadline=None)
@given(st.lists(patterns(), max_size=12), events)
def test_an_index_passes_what_its_arcs_pass(texts: list[str], some: list[Any]) -> None:
    read = [parse_pattern(text) for text in texts]
    asked = [predicates(pattern, TYPE) for pattern in read]
    assert all(each is not None for each in asked)
    found = Index([each for each in asked if each is not None]).match(columns(some), len(some))
    assert list(zip(found.events.tolist(), found.arcs.tolist(), strict=True)) == [
        (event, arc)
        for event, value in enumerate(some)
        for arc, pattern in enumerate(read)
        if match(pattern, TYPE, value) is not None
    ]


def test_an_index_without_arcs_passes_nothing() -> None:
    index = Index([])
    assert (index.paths, index.match({}, 5).events.tolist()) == ((), [])
