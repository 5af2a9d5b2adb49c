"""Durations, clocks and windows: what is printed reads back as the same, what is not in the language is refused."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.language.windows import Duration, Every, read_clock, read_duration, read_window
from postroom.flows.language.words import Words


@pytest.mark.parametrize("text", ["10 seconds", "1 day", "0 hours", "250 milliseconds", "3 microseconds", "2 minutes"])
def test_a_duration_reads_back(text: str) -> None:
    assert str(read_duration(Words(text, "d"))) == text


def test_one_and_several_are_the_same_unit() -> None:
    assert read_duration(Words("1 seconds", "d")) == read_duration(Words("1 second", "d")) == Duration(1, "seconds")
    assert Duration(2, "hours").micros == 7_200_000_000


@pytest.mark.parametrize(
    "text", ["every 5 minutes", "every 1 minute over 1 hour", "session 30 seconds", "until e", "over 10 events"]
)
def test_a_window_reads_back(text: str) -> None:
    window = read_window(Words(text, "w"))
    assert str(window) == text
    assert read_window(Words(str(window), "w")) == window


def test_a_window_over_its_own_step_is_written_short() -> None:
    window = read_window(Words("every 1 hour over 1 hour", "w"))
    assert isinstance(window, Every)
    assert str(window) == "every 1 hour"


def test_a_clock_reads_back_and_what_is_none_is_left_alone() -> None:
    assert str(read_clock(Words("at t late 10 seconds", "c"))) == "at t late 10 seconds"
    assert str(read_clock(Words("at t", "c"))) == "at t"
    assert read_clock(Words("every 1 hour", "c")) is None
    assert read_window(Words("=>", "c")) is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("every 0 seconds", "w:1:7"),
        ("every 10 fortnights", "w:1:10"),
        ("every 10 seconds over 5 seconds", "w:1:1"),
        ("every 1 second over 2 hours", "w:1:1"),
        ("session", "w:1:8"),
        ("every 1.5 seconds", "w:1:7"),
        ("every 99999999999 days", "w:1:7"),
        ("over 0 events", "w:1:1"),
        ("over 5 seconds", "w:1:8"),
        ("until 5", "w:1:7"),
    ],
)
def test_what_is_no_window_is_refused_where_it_stands(text: str, where: str) -> None:
    with pytest.raises(FlowInvalid, match=where):
        read_window(Words(text, "w"))
