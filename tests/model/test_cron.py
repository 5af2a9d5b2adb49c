"""Cron lines: every next time, in the time of a place; and lines that say nothing."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from postroom.errors import ArgumentInvalid
from postroom.model.cron import Cron
from postroom.model.moment import to_datetime, to_microseconds


@pytest.mark.parametrize(
    ("text", "zone", "begin", "expected"),
    [
        ("0 7 * * 1-5", "UTC", "2026-01-02 06:59", "2026-01-02 07:00"),
        ("0 7 * * 1-5", "UTC", "2026-01-02 07:00", "2026-01-05 07:00"),
        ("*/15 * * * *", "UTC", "2026-01-01 23:50", "2026-01-02 00:00"),
        ("5,35 8-9 * * *", "UTC", "2026-01-01 09:05", "2026-01-01 09:35"),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "2028-02-29 00:00"),
        ("0 12 13 * 5", "UTC", "2026-01-01 00:00", "2026-01-02 12:00"),
        ("0 12 * * 0", "UTC", "2026-01-01 00:00", "2026-01-04 12:00"),
        ("0 12 * * 7", "UTC", "2026-01-01 00:00", "2026-01-04 12:00"),
        ("10/20 * * * *", "UTC", "2026-01-01 00:11", "2026-01-01 00:30"),
        ("0 7 * * *", "Europe/Oslo", "2026-07-01 07:00", "2026-07-02 07:00"),
        ("0 7 * * *", "Europe/Oslo", "2026-03-28 08:00", "2026-03-29 07:00"),
        # names, in any case, short and long; 2026-01-02 is a Friday
        ("0 7 * * mon-fri", "UTC", "2026-01-02 07:00", "2026-01-05 07:00"),
        ("0 7 * * MON", "UTC", "2026-01-01 00:00", "2026-01-05 07:00"),
        ("0 7 * * Tuesday,THU", "UTC", "2026-01-02 00:00", "2026-01-06 07:00"),
        ("0 7 * * fri-sun", "UTC", "2026-01-03 08:00", "2026-01-04 07:00"),
        ("0 7 * * sun-tue", "UTC", "2026-01-02 08:00", "2026-01-04 07:00"),
        ("0 7 * * sun", "UTC", "2026-01-02 08:00", "2026-01-04 07:00"),
        ("0 7 * * mon-fri/2", "UTC", "2026-01-05 08:00", "2026-01-07 07:00"),
        ("0 7 1 feb *", "UTC", "2026-01-02 08:00", "2026-02-01 07:00"),
        ("0 7 1 Oct-DECEMBER *", "UTC", "2026-01-02 08:00", "2026-10-01 07:00"),
        ("0 7 1 may,nov *", "UTC", "2026-06-02 08:00", "2026-11-01 07:00"),
        # words for whole lines
        ("@yearly", "UTC", "2026-01-01 00:00", "2027-01-01 00:00"),
        ("@annually", "UTC", "2026-06-01 00:00", "2027-01-01 00:00"),
        ("@monthly", "UTC", "2026-01-01 00:00", "2026-02-01 00:00"),
        ("@weekly", "UTC", "2026-01-01 00:00", "2026-01-04 00:00"),
        ("@daily", "UTC", "2026-01-01 00:00", "2026-01-02 00:00"),
        ("@midnight", "Europe/Oslo", "2026-01-01 13:00", "2026-01-02 00:00"),
        (" @Hourly ", "UTC", "2026-01-01 23:10", "2026-01-02 00:00"),
    ],
)
def test_the_next_time(text: str, zone: str, begin: str, expected: str) -> None:
    place = ZoneInfo(zone)
    moment = to_microseconds(datetime.fromisoformat(begin).replace(tzinfo=place))
    found = Cron.of(text, zone).after(moment)
    assert found is not None
    assert to_datetime(found).astimezone(place).strftime("%Y-%m-%d %H:%M") == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "* * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "x * * * *",
        ),
        *("*/0 * * * *", "0 0 31 2 *", "-1 * * * *"),
        *(
            "0 0 * * fri-mon",
            "0 0 * mon *",
            "0 0 * * jan",
            "mon * * * *",
            "0 0 * * mond",
            "@reboot",
            "@daily *",
            "0 0 * * @daily",
        ),
    ],
)
def test_a_line_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ArgumentInvalid, match="cron"):
        Cron.of(text)


def test_a_place_must_be_known() -> None:
    with pytest.raises(ArgumentInvalid, match="zone"):
        Cron.of("* * * * *", "Nowhere/Land")
