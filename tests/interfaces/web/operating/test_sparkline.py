"""Bars of a queue: what came above the line, what left below it, one scale a row."""

from __future__ import annotations

from postroom.interfaces.web.operating.sparkline import HALF, Bar, sparkline
from postroom.limits import SPARK_BARS


def test_bars_are_what_came_and_left_and_end_at_the_right() -> None:
    line = sparkline(240, [(4, 1), (0, 2)])
    assert line is not None
    assert (line.came, line.left, line.seconds) == (4, 3, 240)
    assert line.bars == (Bar((SPARK_BARS - 2) * 3, HALF, 2), Bar((SPARK_BARS - 1) * 3, 0, 4))


def test_what_is_more_than_nothing_is_seen() -> None:
    line = sparkline(120, [(1000, 1)])
    assert line is not None
    assert line.bars[0].down == 1


def test_nothing_that_moves_is_no_line() -> None:
    assert sparkline(0, []) is None
    assert sparkline(120, [(0, 0)] * SPARK_BARS) is None


def test_a_full_row_begins_at_the_left() -> None:
    line = sparkline(3600, [(1, 0)] * SPARK_BARS)
    assert line is not None
    assert line.bars[0].x == 0
