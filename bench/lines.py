"""Lines: one measurement each, with its bound and whether the bound is met."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_RELATIONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_UNITS = {"/s": "{:,.0f} /s", "µs": "{:,.1f} µs", "s": "{:.3f} s"}
_HEADINGS = ("measure", "measured", "against", "", "result", "lowest", "highest", "bound", "")


@dataclass(frozen=True, slots=True)
class Line:
    measure: str
    measured: float
    unit: str
    result: float
    lowest: float
    highest: float
    relation: str
    bound: float
    against: str | None = None
    other: float | None = None

    @property
    def met(self) -> bool:
        """By the unrounded figure: 0.496 does not meet a bound of 0.5, whatever the table shows."""
        return bool(_RELATIONS[self.relation](self.result, self.bound))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}

    def cells(self) -> tuple[str, ...]:
        show = _UNITS[self.unit].format
        return (
            self.measure,
            show(self.measured),
            self.against or "",
            "" if self.other is None else show(self.other),
            f"{self.result:.3f}",
            f"{self.lowest:.3f}",
            f"{self.highest:.3f}",
            f"{self.relation} {self.bound:g}",
            "met" if self.met else "MISSED",
        )


def table(lines: Sequence[Line]) -> str:
    rows = [_HEADINGS, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (0, 2, 8)  # figures stand at the right of their column, words at the left
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
