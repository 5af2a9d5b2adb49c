"""Lines: one measurement each, and whether it meets the bound that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bounds import Bound

_UNITS = {"/s": "{:,.0f} /s", "µs": "{:,.1f} µs", "s": "{:.3f} s", "ms": "{:.2f} ms"}
_HEADINGS = ("measure", "measured", "against", "", "result", "lowest", "highest", "bound", "")


@dataclass(frozen=True, slots=True)
class Line:
    """With somebody to compare with, the result is a ratio; alone, it is the measured figure itself."""

    measure: str
    measured: float | None  # None where only the ratio was kept
    unit: str
    result: float
    lowest: float
    highest: float
    bound: str | None = None  # its name in the part's bounds
    against: str | None = None
    other: float | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        assert self.unit in _UNITS, self.unit
        assert self.lowest <= self.result <= self.highest, self

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Line:
        return cls(**kept)

    def shown(self) -> str:
        return show(self.measured, self.unit)

    def shown_other(self) -> str:
        return show(self.other, self.unit)

    def shown_result(self) -> str:
        """The middle one, then the lowest and the highest of the rounds."""
        one, low, high = (self._figure(each) for each in (self.result, self.lowest, self.highest))
        return one if low == high else f"{one} ({low}–{high})"

    def _figure(self, value: float) -> str:
        return ratio(value) if self.against is not None else show(value, self.unit).partition(" ")[0]


def show(value: float | None, unit: str) -> str:
    return "" if value is None else _UNITS[unit].format(value)


def ratio(value: float) -> str:
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def verdict(line: Line, bound: Bound | None) -> str:
    return "" if bound is None else "met" if bound.met(line.result) else "not met"


def table(lines: Sequence[Line], bounds: Mapping[str, Bound]) -> str:
    rows = [_HEADINGS, *(_cells(line, bounds) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (0, 2, 8)  # figures stand at the right of their column, words at the left
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _cells(line: Line, bounds: Mapping[str, Bound]) -> tuple[str, ...]:
    bound = None if line.bound is None else bounds[line.bound]
    figures = (f"{each:.3f}" for each in (line.result, line.lowest, line.highest))
    asked = "" if bound is None else str(bound)
    about = (line.measure, line.shown(), line.against or "", line.shown_other())
    said = verdict(line, bound)
    return (*about, *figures, asked, said if said == "met" else said.upper())
