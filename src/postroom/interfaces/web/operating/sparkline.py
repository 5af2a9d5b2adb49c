"""Arrivals and departures of a queue in the last hour, as small bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.interfaces.web.operating.history import Moved
from postroom.limits import SPARK_BARS

HALF = 9  # how high a bar may be, above and below the line
STEP = 3


@dataclass(frozen=True)
class Bar:
    """One interval: ``up`` for arrivals, ``down`` for departures, as fractions of the largest."""

    x: int
    up: int
    down: int


@dataclass(frozen=True)
class Sparkline:
    """A row of bars, with a text alternative."""

    bars: tuple[Bar, ...]
    came: int
    left: int
    seconds: float

    @property
    def width(self) -> int:
        return SPARK_BARS * STEP


def sparkline(seconds: float, intervals: Sequence[Moved]) -> Sparkline | None:
    """The bars up to now, at the right; None if nothing has moved."""
    most = max((max(pair) for pair in intervals), default=0)
    if most <= 0:
        return None
    begin = SPARK_BARS - len(intervals)
    bars = [
        Bar((begin + place) * STEP, _part(came, most), _part(left, most))
        for place, (came, left) in enumerate(intervals)
    ]
    came, left = (sum(pair[side] for pair in intervals) for side in (0, 1))
    return Sparkline(tuple(bars), came, left, seconds)


def _part(count: int, most: int) -> int:
    """A fraction for a bar; anything above zero stays visible."""
    return 0 if count <= 0 else max(1, round(HALF * count / most))
