"""Times: microseconds in stores, aware datetimes to programs, ISO 8601 to people."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.model.moment import iso_of, system_clock, to_datetime, to_iso

#: From 1970 to the last microsecond a datetime can hold.
MICROSECONDS = st.integers(0, 253_402_300_799_999_999)


def test_the_system_clock_counts_microseconds_since_1970() -> None:
    before = time.time_ns() // 1000
    now = system_clock()
    assert before <= now <= time.time_ns() // 1000


def test_zero_is_the_first_moment_of_1970_in_utc() -> None:
    assert to_datetime(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert to_datetime(0).tzinfo is UTC


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (1, "1970-01-01T00:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_000_000, "1970-01-01T00:00:01.000000Z"),
        (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_people_read_six_decimals_and_z(microseconds: int, text: str) -> None:
    assert to_iso(to_datetime(microseconds)) == iso_of(microseconds) == text


@settings(deadline=None, max_examples=300)
@given(MICROSECONDS)
def test_no_microsecond_is_lost_on_the_way_to_a_datetime(microseconds: int) -> None:
    passed = to_datetime(microseconds) - to_datetime(0)
    assert passed // timedelta(microseconds=1) == microseconds


@settings(deadline=None, max_examples=300)
@given(MICROSECONDS)
def test_the_text_reads_back_as_the_same_moment(microseconds: int) -> None:
    moment = to_datetime(microseconds)
    assert datetime.fromisoformat(to_iso(moment)) == moment
    for near in (microseconds, min(microseconds + 1, 253_402_300_799_999_999), microseconds // 1_000_000 * 1_000_000):
        assert iso_of(near) == to_iso(to_datetime(near)), "the second of one before is kept"


@settings(deadline=None, max_examples=200)
@given(st.lists(MICROSECONDS, max_size=10))
def test_texts_sort_like_the_moments(moments: list[int]) -> None:
    texts = {number: to_iso(to_datetime(number)) for number in moments}
    assert sorted(texts.values()) == [texts[number] for number in sorted(texts)]
