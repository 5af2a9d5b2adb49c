"""Plots: bars against their bounds and curves of growth, as SVG that reads on light and dark, without a library.

An SVG in a page cannot see the page's colours; it asks for the reader's scheme itself. All words are text, and a title
and a description tell the picture to those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import count
from typing import NamedTuple

from curves import Curve
from lines import show

WIDTH = 950
LABELS, FIGURES = 390, 200  # room at the left and at the right of the bars
LETTERS = 58  # of a label that fit there
ROW, TOP, BOTTOM = 36, 44, 40
CURVE_HEIGHT, CURVE_LEFT, CURVE_RIGHT = 320, 70, 240
LOG_FROM = 8  # a span above which the small ones could no longer be seen

_STYLE = """
svg { color: #1f2328; background: #ffffff; font: 13px system-ui, sans-serif }
text { fill: currentColor } .quiet { opacity: .72; font-size: 12px } .head { font-weight: 600; font-size: 14px }
.axis { stroke: currentColor; opacity: .25 } .bound { stroke: currentColor; stroke-dasharray: 5 3; stroke-width: 1.5 }
.whisker { stroke: currentColor; stroke-width: 1.5 }
.met { fill: #4c8eda } .missed { fill: #d9772b } .free { fill: #9aa4af }
.s0 { stroke: #2f6fc0; fill: #2f6fc0 } .s1 { stroke: #b35a17; fill: #b35a17 } .s2 { stroke: #3c7d3c; fill: #3c7d3c }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
svg { color: #e6edf3; background: #0d1117 } .met { fill: #2f6db5 } .missed { fill: #c2651c } .free { fill: #59636e }
.s0 { stroke: #79b0f2; fill: #79b0f2 } .s1 { stroke: #f0a367; fill: #f0a367 } .s2 { stroke: #86c986; fill: #86c986 }
.line { fill: none }
}
"""


class Bar(NamedTuple):
    """How far a figure is from its bound: 1 is the bound, above it is better."""

    label: str
    against: str
    value: float
    lowest: float
    highest: float
    figure: str  # as it was measured
    kind: str  # met, missed, or free of a bound


class Scale(NamedTuple):
    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        if not self.log:
            step = _nice((self.high - self.low) / 5)
            return [self.low + step * each for each in range(int((self.high - self.low) / step + 1e-9) + 1)]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if self.high / self.low < 1_000 else (1,)
        found = (step * 10.0**decade for decade in decades for step in steps)
        return [each for each in found if self.low * 0.999 <= each <= self.high * 1.001]


def scale(values: Sequence[float], start: float, end: float, *, log: bool) -> Scale:
    """Room for all values, from a round number to a round number; from nothing, if it is not logarithmic."""
    lowest, highest = min(values), max(values)
    if log:
        return Scale(_nice(lowest, down=True), _nice(highest), start, end, True)
    step = _nice(highest / 5)
    return Scale(0, step * math.ceil(highest / step - 1e-9), start, end, False)


def _nice(value: float, *, down: bool = False) -> float:
    """The nearest of 1, 2, 5, 10, … above the value, or below it."""
    decade = 10.0 ** math.floor(math.log10(value))
    steps = [step * decade for step in (1.0, 2.0, 5.0, 10.0)]
    if down:
        return next(step for step in reversed(steps) if step <= value * 1.000001)
    return next(step for step in steps if step >= value * 0.999999)


def bars(title: str, rows: Sequence[Bar]) -> str:
    """One row for each, with a whisker from the lowest to the highest round, and one line for all their bounds.

    Bars begin at nothing. A logarithmic scale has none: there they begin at the bound, and what misses it goes left.
    """
    values = [1.0, *(each for row in rows for each in (row.lowest, row.highest))]
    log = max(values) / min(values) > LOG_FROM
    x = scale([*values, 0.5] if log else values, LABELS, WIDTH - FIGURES, log=log)
    base = x.at(1) if log else x.at(0)
    bottom = TOP + ROW * len(rows)
    about = "times better than asked; the dashed line is the bound"
    parts = [_grid(x, bottom), _text(LABELS, bottom + 32, about, "quiet")]
    for number, row in enumerate(rows):
        middle = TOP + ROW * number + ROW // 2
        parts += [
            *_label(row, middle),
            _rect(min(base, x.at(row.value)), middle - 8, abs(x.at(row.value) - base), 16, row.kind),
            _line(x.at(row.lowest), middle, x.at(row.highest), middle, "whisker"),
            *(_line(x.at(each), middle - 4, x.at(each), middle + 4, "whisker") for each in (row.lowest, row.highest)),
            _text(WIDTH - FIGURES + 10, middle + 4, row.figure, "quiet"),
        ]
    parts.append(_line(x.at(1), TOP - 6, x.at(1), bottom, "bound"))
    told = "; ".join(f"{row.label} {row.against}".strip() + f": {row.figure}" for row in rows)
    return _svg(title, told, bottom + BOTTOM, parts)


def _label(row: Bar, middle: float) -> Iterator[str]:
    yield _text(LABELS - 8, middle - 2 if row.against else middle + 4, _short(row.label), "", "end")
    if row.against:
        yield _text(LABELS - 8, middle + 13, _short(row.against), "quiet", "end")


def _short(label: str) -> str:
    return label if len(label) <= LETTERS else f"{label[: LETTERS - 1].rsplit(' ', 1)[0]} …"


def curves(title: str, some: Sequence[Curve]) -> str:
    """Costs from nothing upwards, sizes by powers of ten: what does not grow is flat."""
    points = [point for each in some for point in each.points]
    x = scale([point.at for point in points], CURVE_LEFT, WIDTH - CURVE_RIGHT, log=True)
    y = scale([point.highest for point in points], CURVE_HEIGHT - BOTTOM, TOP, log=False)
    unit, bottom = some[0].unit, CURVE_HEIGHT - BOTTOM
    parts = [_grid(x, bottom)]
    for tick in y.ticks():
        parts += [
            _line(CURVE_LEFT, y.at(tick), WIDTH - CURVE_RIGHT, y.at(tick), "axis"),
            _text(CURVE_LEFT - 8, y.at(tick) + 4, f"{tick:,.10g} {unit}", "quiet", "end"),
        ]
    parts.append(_text(CURVE_LEFT, CURVE_HEIGHT - 4, some[0].along, "quiet"))
    below = 0.0  # names stand by the ends of their curves, without covering each other
    for number, each in sorted(zip(count(), some), key=lambda pair: y.at(pair[1].points[-1].cost)):
        kind = f"s{number % 3}"
        way = " ".join(f"{x.at(point.at)},{y.at(point.cost)}" for point in each.points)
        parts.append(f'<polyline class="line {kind}" points="{way}"/>')
        for point in each.points:
            parts.append(_line(x.at(point.at), y.at(point.lowest), x.at(point.at), y.at(point.highest), "whisker"))
            parts.append(f'<circle class="{kind}" cx="{x.at(point.at)}" cy="{y.at(point.cost)}" r="3.5"/>')
        below = max(y.at(each.points[-1].cost) + 4, below + 17)
        parts.append(_text(WIDTH - CURVE_RIGHT + 12, below, each.name))
    return _svg(title, _told(some), CURVE_HEIGHT + 6, parts)


def _told(some: Sequence[Curve]) -> str:
    found = []
    for each in some:
        costs = (f"{show(point.cost, each.unit)} at {point.at:,.10g} {each.along}" for point in each.points)
        found.append(f"{each.name}: {', '.join(costs)}")
    return "; ".join(found)


def _grid(x: Scale, bottom: float) -> str:
    parts = []
    for tick in x.ticks():
        parts.append(_line(x.at(tick), TOP - 6, x.at(tick), bottom, "axis"))
        parts.append(_text(x.at(tick), bottom + 16, f"{tick:,.10g}", "quiet", "middle"))
    return "\n".join(parts)


def _svg(title: str, told: str, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="title desc">\n<title id="title">{escape(title)}</title>\n'
        f'<desc id="desc">{escape(told)}</desc>'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", _text(12, 20, title, "head"), *parts, "</svg>\n"])


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    about = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f'<text x="{x:g}" y="{y:g}"{about}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{max(width, 1):.1f}" height="{height:g}" rx="2"/>'
