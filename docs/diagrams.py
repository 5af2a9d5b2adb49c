"""Flowcharts of the pages as pictures: boxes in layers, with arrows."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Sequence

_NODE = re.compile(r'(\w+)(?:\["([^"]*)"\])?')
_WIDE, _HIGH, _GAP = 190, 46, 24


def drawn(text: str) -> str:
    """A flowchart of boxes and arrows as SVG, layer by layer; any other diagram stays text."""
    first, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    edges: list[tuple[str, str]] = []
    labels: dict[str, str] = {}
    for line in lines:
        ends = [_NODE.fullmatch(end.strip()) for end in line.split("-->")]
        if not first.startswith("flowchart") or None in ends or len(ends) < 2:
            return f'<pre class="mermaid"><code>{html.escape(text)}</code></pre>\n'
        names = [(end[1], end[2]) for end in ends if end]
        for name, label in names:
            labels[name] = label or labels.get(name, name)
        edges += [(one[0], two[0]) for one, two in itertools.pairwise(names)]
    return _picture(_layers(list(labels), edges), labels, edges)


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Each box one layer below the lowest that points to it. A circle ends where as many rounds as boxes are over."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for one, two in edges:
            depth[two] = min(max(depth[two], depth[one] + 1), len(names))
    return [[name for name in names if depth[name] == layer] for layer in sorted(set(depth.values()))]


def _picture(layers: list[list[str]], labels: dict[str, str], edges: Sequence[tuple[str, str]]) -> str:
    widest = max(map(len, layers)) * (_WIDE + _GAP)
    place = {}
    for row, layer in enumerate(layers):
        left = (widest - len(layer) * (_WIDE + _GAP)) / 2
        for column, name in enumerate(layer):
            place[name] = (left + column * (_WIDE + _GAP) + _GAP / 2, row * (_HIGH + 2 * _GAP) + 2)
    high = len(layers) * (_HIGH + 2 * _GAP)
    parts = [f'<svg class="diagram" viewBox="0 0 {widest:.0f} {high}" role="img" xmlns="http://www.w3.org/2000/svg">']
    parts.append(
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    )
    parts.append('<path d="M0 0L8 4L0 8z"/></marker></defs>')
    for one, two in edges:
        (x, y), (to_x, to_y) = place[one], place[two]
        parts.append(
            f'<path class="way" d="M{x + _WIDE / 2:.0f} {y + _HIGH:.0f}L{to_x + _WIDE / 2:.0f} {to_y - 1:.0f}"/>'
        )
    for name, (x, y) in place.items():
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="5"/>')
        lines = [html.escape(line) for line in re.split(r"<br ?/?>", labels[name])]
        for number, line in enumerate(lines):
            down = y + _HIGH / 2 + 4 + (number - (len(lines) - 1) / 2) * 15
            kind = "name" if number == 0 else "note"
            parts.append(f'<text class="{kind}" x="{x + _WIDE / 2:.0f}" y="{down:.0f}">{line}</text>')
    return "".join(parts) + "</svg>\n"
