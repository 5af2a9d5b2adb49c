"""Events: from Gryphon's literals and from JSON to one body, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flows.blocks import lines
from tests.flows.language.test_types import types
from tests.flows.literals import literal

from postroom.errors import EventInvalid, PostroomError
from postroom.flows.language.types import Bag, List, Scalar, Tuple, Type, Union, parse
from postroom.flows.language.values import Tagged, canonical, in_order, parse_event

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "atom": TEXT,
    "string": TEXT,
    "int": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
    "date": st.dates(),
    "timestamp": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
}


def values(type: Type) -> st.SearchStrategy[Any]:
    if isinstance(type, Scalar):
        return SIMPLE[type.name]
    if isinstance(type, List):
        return st.lists(values(type.of), max_size=3).map(tuple)
    if isinstance(type, Bag):
        of = type.of
        return st.lists(values(of), max_size=3).map(lambda some: in_order(some, of))
    if isinstance(type, Union):
        return st.one_of([st.builds(Tagged, st.just(each.name), values(each.type)) for each in type.tags])
    return st.tuples(*[values(each.type) for each in type.fields])


@pytest.mark.parametrize("line", lines("values.txt"))
def test_an_event_is_stored_as_one_json_or_refused(line: str) -> None:
    kind, _, rest = line.partition(" | ")
    if " !> " in rest:
        text, _, why = rest.partition(" !> ")
        with pytest.raises(EventInvalid) as caught:
            parse_event(text, parse(kind), "S")
        assert str(caught.value) == why
    else:
        text, _, body = rest.rpartition(" => ")
        assert canonical(parse_event(text, parse(kind), "S"), parse(kind)) == body


@settings(deadline=None)
@given(types(2).flatmap(lambda each: st.tuples(st.just(each), values(each))))
def test_a_value_survives_as_literal_and_as_json(both: tuple[Type, Any]) -> None:
    type, value = both
    body = canonical(value, type)
    assert canonical(parse_event(body, type, "S"), type) == body
    assert canonical(parse_event(literal(value, type), type, "S"), type) == body


@settings(deadline=None)
@given(st.text(max_size=20) | st.text('[]{}():,"ab1. \\-+', max_size=20), types(2))
def test_whatever_is_published_is_an_event_or_refused(text: str, type: Type) -> None:
    try:
        value = parse_event(text, type, "S")
    except PostroomError:
        return
    assert canonical(parse_event(canonical(value, type), type, "S"), type) == canonical(value, type)


def test_simple_values_are_what_python_has() -> None:
    type = parse("[date, timestamp, decimal, union [A: int]]")
    assert isinstance(type, Tuple)
    text = '["2026-11-15", "2026-11-15T00:00:00Z", 1.10, A: 3]'
    found = parse_event(text, type, "S")
    assert found == (date(2026, 11, 15), datetime(2026, 11, 15, tzinfo=UTC), Decimal("1.10"), Tagged("A", 3))


@pytest.mark.parametrize("text", ["", "  ", '{"a": 1, "a": 2}', "[" * 10_000, "[" * 10_000 + "]" * 10_000])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(PostroomError):
        parse_event(text, parse("[a: int]"), "S")
