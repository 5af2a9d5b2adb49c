"""A graph as a picture: layers from left to right, laid out by a library, written as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import wrap

from fast_sugiyama import from_edges

from postroom.flows.graph.inspection import GraphShown
from postroom.model.xmltext import escaped

_COLOURS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#ccfbf1")  # of domains, in turn
_CHARACTER, _LINE, _MARGIN, _GAP_X, _GAP_Y = 7.2, 16.0, 24.0, 56.0, 18.0
_WIDE, _LINES = 32, 4  # characters of a line, and lines, of what an arc says
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_UNIT = 100.0  # between two layers, for the library


@dataclass(frozen=True, slots=True)
class _Node:
    shape: str  # space, client, arc, table
    lines: tuple[str, ...]
    fill: str
    faint: bool = False
    title: str = ""

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * _CHARACTER + 20

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 10


@dataclass(frozen=True, slots=True)
class _Box:
    node: _Node
    x: float
    y: float


def svg(graph: GraphShown) -> str:
    """The picture of a graph."""
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(graph.domains)}
    nodes = dict(_nodes(graph, colours))
    edges = list(_edges(graph))
    boxes = _placed(nodes, edges)
    legend = _MARGIN + _LINE * (len(colours) + 1)
    width = max([box.x + box.node.width for box in boxes.values()], default=200.0) + _MARGIN
    height = max([box.y + box.node.height for box in boxes.values()], default=0.0) + _MARGIN + legend
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#475569"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    parts += [_line(boxes[start], boxes[end]) for start, end in edges]
    parts += [part for box in boxes.values() for part in _drawn(box)]
    for place, (name, colour) in enumerate(colours.items()):
        y = height - legend + _LINE * (place + 1)
        parts.append(f'<rect x="{_MARGIN}" y="{y - 10:.0f}" width="12" height="12" fill="{colour}" stroke="#475569"/>')
        parts.append(f'<text x="{_MARGIN + 20}" y="{y:.0f}">domain {escaped(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _nodes(graph: GraphShown, colours: Mapping[str, str]) -> Iterator[tuple[str, _Node]]:
    for space in graph.spaces:
        waiting = f"{space.waiting} waiting" if space.waiting else "retain" if space.retain else ""
        lines = tuple(line for line in (space.name, waiting) if line)
        shape = "client" if space.client else "space"
        yield f"space {space.name}", _Node(shape, lines, colours[space.domain], title=f"{space.name} : {space.type}")
    for arc in graph.arcs:
        said = f"{arc.does}{' durable' if arc.durable else ''}"
        state = () if arc.state == "enabled" else (f"({arc.state})",)
        lines = (arc.name, *wrap(said, _WIDE, max_lines=_LINES, placeholder=" …"), *state)
        yield f"arc {arc.key}", _Node("arc", lines, "white", faint=bool(state), title=said)
    for table in graph.tables:
        lines = (table.name, f"{table.rows} rows")
        yield f"table {table.name}", _Node("table", lines, colours[table.domain], title=f"{table.name} : {table.type}")


def _edges(graph: GraphShown) -> Iterator[tuple[str, str]]:
    for arc in graph.arcs:
        yield f"space {arc.source}", f"arc {arc.key}"
        yield f"arc {arc.key}", f"space {arc.target}"
    for table, name in graph.joins:
        yield f"table {table}", f"arc {name}"


def _placed(nodes: Mapping[str, _Node], edges: Iterable[tuple[str, str]]) -> dict[str, _Box]:
    """Where each node stands: parts that hang together one below another, the layers of each in columns."""
    boxes: dict[str, _Box] = {}
    top = _MARGIN
    drawn: set[str] = set()
    parts = from_edges(list(edges), minimum_length=1, vertex_spacing=_UNIT, dummy_vertices=True) if edges else []
    order = {name: place for place, name in enumerate(nodes)}
    placed = [{str(name): place for name, place in positions if str(name) in nodes} for positions, *_ in parts]
    for found in sorted(placed, key=lambda part: min(order[name] for name in part)):
        layers: dict[float, list[str]] = {}
        for name, (_, depth) in found.items():
            layers.setdefault(depth, []).append(name)
        left, bottom = _MARGIN, top
        tallest = max(nodes[name].height for name in found) + _GAP_Y
        lowest = min(across for across, _ in found.values())
        for depth in sorted(layers, reverse=True):
            widest = max(nodes[name].width for name in layers[depth])
            free = top
            for name in sorted(layers[depth], key=lambda each: found[each][0]):
                y = max(free, top + (found[name][0] - lowest) / _UNIT * tallest)
                boxes[name] = _Box(nodes[name], left + (widest - nodes[name].width) / 2, y)
                free = y + nodes[name].height + _GAP_Y
                bottom = max(bottom, free)
            left += widest + _GAP_X
        drawn |= found.keys()
        top = bottom + _GAP_Y
    left = _MARGIN
    for name, node in nodes.items():
        if name not in drawn:  # nothing leads to it or away
            boxes[name] = _Box(node, left, top)
            left += node.width + _GAP_Y
    return boxes


def _line(start: _Box, end: _Box) -> str:
    x1, y1 = start.x + start.node.width, start.y + start.node.height / 2
    x2, y2 = end.x, end.y + end.node.height / 2
    bend = max(20.0, (x2 - x1) / 2)
    dash = ' stroke-dasharray="4 3"' if start.node.faint or end.node.faint else ""
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
        f'fill="none" stroke="#475569"{dash} marker-end="url(#tip)"/>'
    )


def _drawn(box: _Box) -> Iterator[str]:
    node = box.node
    corner = {"space": 4, "client": 14, "table": 0}.get(node.shape, 0)
    if node.shape != "arc":
        double = ' stroke-width="2.5"' if node.shape == "table" else ""
        yield (
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{node.width:.0f}" height="{node.height:.0f}" rx="{corner}" '
            f'fill="{node.fill}" stroke="#475569"{double}><title>{escaped(node.title)}</title></rect>'
        )
    else:
        yield (
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{node.width:.0f}" height="{node.height:.0f}" '
            f'fill="white" stroke="#cbd5e1"><title>{escaped(node.title)}</title></rect>'
        )
    for place, line in enumerate(node.lines):
        weight = ' font-weight="bold"' if place == 0 else ' fill="#475569"'
        y = box.y + 5 + _LINE * (place + 0.75)
        yield f'<text x="{box.x + 10:.0f}" y="{y:.0f}"{weight}>{escaped(line)}</text>'
