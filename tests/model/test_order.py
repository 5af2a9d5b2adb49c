"""One order for all values of a kind."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.model.key import key_text
from postroom.model.order import sortable
from postroom.model.types import Kind

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5)), timezone(timedelta(hours=-3, minutes=-30))])
VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.STRING: st.text(),
    Kind.INT: st.integers(),
    Kind.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False),
    Kind.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    Kind.BOOLEAN: st.booleans(),
    Kind.DATE: st.dates(),
    Kind.TIME: st.times(),
    Kind.TIMESTAMP: st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=ZONES),
    Kind.KEY: st.integers(100_001, 10**16).map(key_text),
}


@pytest.mark.parametrize("kind", list(Kind))
@given(data=st.data())
def test_texts_are_ordered_as_their_values_are(kind: Kind, data: st.DataObject) -> None:
    one, other = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    first, second = (
        sortable(kind, one).encode(errors="surrogatepass"),
        sortable(kind, other).encode(errors="surrogatepass"),
    )
    if kind is Kind.KEY:
        one, other = [(len(key.partition(".")[0]), key) for key in (one, other)]
    assert (one < other) is (first < second)
    assert (one == other) is (first == second)


@pytest.mark.parametrize(
    ("kind", "less", "more"),
    [
        (Kind.INT, -11, -2),
        (Kind.INT, -1, 0),
        (Kind.INT, 9, 10),
        (Kind.DECIMAL, Decimal("12.49"), Decimal("12.5")),
        (Kind.FLOAT, -0.1, 1e300),
        (Kind.DATE, date(1981, 8, 9), date(1981, 10, 1)),
        (Kind.TIME, time(9, 30), time(10)),
        (Kind.TIMESTAMP, datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=-1)))),
        (Kind.KEY, "99999.00001", "100000.00001"),
    ],
)
def test_a_smaller_value_comes_first(kind: Kind, less: Any, more: Any) -> None:
    assert sortable(kind, less) < sortable(kind, more)


def test_one_value_has_one_text() -> None:
    assert sortable(Kind.DECIMAL, Decimal("12.50")) == sortable(Kind.DECIMAL, Decimal("12.5"))
    assert sortable(Kind.TIME, time(10)) == sortable(Kind.TIME, time(12, tzinfo=timezone(timedelta(hours=2))))
