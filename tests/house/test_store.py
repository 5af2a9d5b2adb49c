"""House rules of the store, each with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom

ROOT = Path(__file__).parents[2]
STORE = Path(postroom.__file__).parent / "store"
MODULES = {
    ".".join(("postroom.store", *file.relative_to(STORE).with_suffix("").parts)).removesuffix(".__init__"): file
    for file in sorted(STORE.rglob("*.py"))
}
TESTED = [
    file.relative_to(STORE) for file in MODULES.values() if file.stem != "__init__" and file.parent.name != "migrations"
]


def imports(file: Path) -> set[str]:
    """The modules of the store that a file imports, anywhere in it and for the type checker alone, too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found & set(MODULES)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, by removing those that import none that is left."""
    left = dict(graph)
    while free := [name for name, needed in left.items() if not needed & set(left)]:
        for name in free:
            del left[name]
    while free := [name for name in left if not any(name in needed for needed in left.values())]:
        for name in free:
            del left[name]
    return sorted(left)


def test_modules_of_the_store_import_each_other_in_one_direction() -> None:
    """One that is in a circle cannot be read, tested or replaced alone. Packages may look at each other's modules."""
    graph = {name: imports(file) - {name} for name, file in MODULES.items()}
    graph.pop("postroom.store")  # where a URL leads to a driver, when it is opened
    assert circle(graph) == []


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set(), "e": {"a"}}) == ["b", "c"]


def written(table: str) -> Iterator[tuple[str, int]]:
    """Where the statements are that write to a table."""
    statement = re.compile(rf"\b(INSERT INTO|UPDATE|DELETE FROM) {table}\b")
    for file in MODULES.values():
        if file.parent.name != "migrations":
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if statement.search(line):
                    yield str(file.relative_to(STORE)), number


@pytest.mark.parametrize(
    ("table", "home"),
    [
        ("messages", "kernel/message_rows.py"),
        ("departed", "kernel/message_rows.py"),
        ("editions", "kernel/message_rows.py"),
        ("outbox", "kernel/outbox.py"),
        ("timers", "kernel/timers.py"),
        ("locks", "kernel/queues.py"),
    ],
)
def test_rows_of_a_table_are_written_in_one_file(table: str, home: str) -> None:
    assert {file for file, _ in written(table)} == {home}, "where a row is written must be found at once"


def test_a_message_is_inserted_by_one_statement() -> None:
    found = [
        (str(file.relative_to(STORE)), number)
        for file in MODULES.values()
        if file.parent.name != "migrations"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "INSERT INTO messages" in line
    ]
    assert [file for file, _ in found] == ["kernel/message_rows.py"], found


@pytest.mark.parametrize("file", MODULES.values(), ids=lambda file: str(file.relative_to(STORE)))
def test_statements_are_put_together_when_a_module_is_loaded(file: Path) -> None:
    """So all that goes into one is a constant. Functions that put statements together are named here."""
    makers = {
        "columns",
        "insertion",
        "processing",
        "deletion",
        "_statement",
        "_as_bytes",
        "leasing",
        "processing_leased",
        "addition",
    }
    makers |= {"insert", "select", "delete", "counted"}  # of a table that is copied, in our own schema
    statement = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")
    for function in ast.walk(ast.parse(file.read_text())):
        if isinstance(function, ast.FunctionDef) and function.name not in makers:
            for part in ast.walk(function):
                if isinstance(part, (ast.JoinedStr, ast.BinOp)):
                    texts = [str(each.value) for each in ast.walk(part) if isinstance(each, ast.Constant)]
                    assert not any(statement.search(text) for text in texts), f"{function.name}, line {part.lineno}"
