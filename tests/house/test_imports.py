"""No circles: what a module imports never imports it, not even for the type checker or inside of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
FILES = {
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
    for file in (SOURCE / "postroom").rglob("*.py")
}


def imported(file: Path) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            for name in node.names:
                below = f"{node.module}.{name.name}"
                yield below if below in FILES else node.module


def circles(graph: Mapping[str, set[str]]) -> set[str]:
    """What comes back to itself: take away what imports nothing that is left, until nothing changes."""
    left = {module: set(others) for module, others in graph.items()}
    while ends := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in ends}
    used = set().union(*left.values())
    while tops := left.keys() - used:
        left = {module: others for module, others in left.items() if module not in tops}
        used = set().union(*left.values())
    return set(left)


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {"b", "c"}, "the check can fail"
    graph = {module: set(imported(file)) for module, file in FILES.items() if module != "postroom"}
    assert sum(map(len, graph.values())) > 3000
    assert circles(graph) == set(), "put what both need into a third module, below them"
