"""Dates and times as people write them: read if there is one way to read them, and refused otherwise."""

from __future__ import annotations

import pytest

from postroom.model.types import Kind
from postroom.stations.forms.dates import exact


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("Aug. 21, 1981", "1981-08-21"),
        ("August 21 1981", "1981-08-21"),
        ("21 August 1981", "1981-08-21"),
        ("21. Aug. 1981", "1981-08-21"),
        (" AUG 21, 1981 ", "1981-08-21"),
        ("Sept. 3, 2026", "2026-09-03"),
        ("3rd Nov, 2026", "2026-11-03"),
        ("May 1st, 2026", "2026-05-01"),
    ],
)
def test_a_date_is_read(said: str, date: str) -> None:
    assert exact(Kind.DATE, said) == date


@pytest.mark.parametrize(
    "said",
    [
        *("Marble 3, 2026", "Augusta 3, 2026", "Decimal 3 2026", "Monday 3 2026", "3 2026", "at 3 2026", "Aug 21"),
        *("March", "3/4/2026", "Aug 21, 81", "21 2026 Aug", "1981-08-21", ""),
    ],
)
def test_what_is_no_date_is_left_for_the_field_to_refuse(said: str) -> None:
    assert exact(Kind.DATE, said) == said


def test_a_time_is_read() -> None:
    assert [exact(Kind.TIME, said) for said in ("10 am", "12:05 PM", "12 a.m.", "13 pm")] == [
        *("10:00", "12:05", "00:00"),
        "13 pm",
    ]
    assert exact(Kind.STRING, "Aug. 21, 1981") == "Aug. 21, 1981"
