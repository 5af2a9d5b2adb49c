"""Curves: what something costs as something else grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple


class Point(NamedTuple):
    at: float
    cost: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    along: str  # what grows
    unit: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Curve:
        return cls(**{**kept, "points": tuple(Point(*each) for each in kept["points"])})


def curve(name: str, along: str, unit: str, costs: Mapping[int, Sequence[float]]) -> Curve:
    """From the costs of all rounds at each size, in the unit given."""
    points = (Point(at, median(each), min(each), max(each)) for at, each in sorted(costs.items()))
    return Curve(name, along, unit, tuple(points))
