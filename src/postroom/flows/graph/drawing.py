"""A graph as a Mermaid flowchart, a text that Markdown pages, wikis and code hosts show as a picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from postroom.flows.graph.inspection import GraphShown

_WIDE, _LINES = 32, 4  # characters of a line, and lines, of what an arc says


def mermaid(graph: GraphShown) -> str:
    """A flowchart with a box for each domain; disabled arcs are faint."""
    lines = ["flowchart LR"]
    for name in graph.domains:
        lines += [f'  subgraph {_id("domain", name)}["domain {_text(name)}"]', *_domain(graph, name), "  end"]
    for arc in graph.arcs:
        state = () if arc.state == "enabled" else (f"({arc.state})",)
        does = wrap(f"{arc.does}{' durable' if arc.durable else ''}", _WIDE, max_lines=_LINES, placeholder=" …")
        id = _id("arc", arc.key)
        lines.append(f"  {id}[{_label(arc.name, *does, *state)}]{':::faint' if state else ''}")
        arrow = "-.->" if state else "-->"
        lines.append(f"  {_id('space', arc.source)} {arrow} {id} {arrow} {_id('space', arc.target)}")
    lines += [f"  {_id('table', table)} --> {_id('arc', arc)}" for table, arc in graph.joins]
    lines += [f"  {_id('space', space)} --> {_id('arc', arc)}" for space, arc in graph.meets]
    return "\n".join([*lines, "  classDef faint stroke-dasharray: 4 3", ""])


def _domain(graph: GraphShown, domain: str) -> Iterator[str]:
    for space in graph.spaces:
        if space.domain == domain:
            state = f"{space.waiting} waiting" if space.waiting else "retain" if space.retain else ""
            label = _label(*(line for line in (space.name, state) if line))
            yield f"    {_id('space', space.name)}{'([' if space.client else '('}{label}{'])' if space.client else ')'}"
    for table in graph.tables:
        if table.domain == domain:
            yield f"    {_id('table', table.name)}[({_label(table.name, f'{table.rows} rows')})]"


def _id(kind: str, name: str) -> str:
    """A valid Mermaid identifier; different names stay different."""
    return f"{kind}_" + re.sub(r"[^a-zA-Z0-9]", lambda match: f"_{ord(match[0]):x}_", name)


def _label(*lines: str) -> str:
    return '"' + "<br>".join(map(_text, lines)) + '"'


def _text(text: str) -> str:
    """Text with the characters escaped that are special in Mermaid or HTML."""
    return re.sub(r'["#&<>`]', lambda match: f"#{ord(match[0])};", text)
