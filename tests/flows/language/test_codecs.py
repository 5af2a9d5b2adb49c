"""The JSON of values by functions: what they write is canonical, and they read it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flows.language.test_types import types
from tests.flows.language.test_values import values

from postroom.flows.language.codecs import data_of_value, reader, value_of_data, writer
from postroom.flows.language.types import Type, parse
from postroom.flows.language.values import as_json, canonical, parse_event


@settings(deadline=None)
@given(types(2).flatmap(lambda kind: st.tuples(st.just(kind), values(kind))))
def test_functions_write_what_is_canonical_and_read_it(both: tuple[Type, Any]) -> None:
    type, value = both
    body = canonical(value, type)
    event = parse_event(body, type, "S")
    assert writer(type)(event) == body
    assert reader(type)(body) == event
    assert data_of_value(type)(event) == as_json(event, type)
    assert value_of_data(type)(as_json(event, type)) == event


def test_names_may_have_any_sign() -> None:
    type = parse("[a: int, string]")
    assert writer(type)((1, "100 %s {} \"'\n")) == canonical((1, "100 %s {} \"'\n"), type)
