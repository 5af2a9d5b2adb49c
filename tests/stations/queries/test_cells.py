"""What crosses to the process that answers SQL is the same there."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom.stations.queries.cells import packed, unpacked

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
)
_CELLS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.one_of(st.text(), st.decimals("0", "9")), inner)
    ),
)


@given(_CELLS)
def test_a_cell_is_the_same_on_the_other_side(cell: Any) -> None:
    there = unpacked(json.loads(json.dumps(packed(cell))))
    assert there == cell
    assert repr(there) == repr(cell), "with its kind, and its digits"


def test_kinds_that_are_alike_are_told_apart() -> None:
    cells = [1, 1.0, True, Decimal("1.0"), "1", date(2026, 1, 1), datetime(2026, 1, 1), timedelta(1), (1,), [1]]
    assert [type(each) for each in unpacked(packed(cells))] == [type(each) for each in cells]


def test_a_value_of_another_kind_is_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert packed([Odd()]) == ["odd"]
