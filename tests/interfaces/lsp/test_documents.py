"""Files in an editor, read by the readers that load them."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.interfaces.lsp.documents import Document

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(file for suffix in ("qdl", "demaq", "flow", "form") for file in EXAMPLES.rglob(f"*.{suffix}"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_an_example_has_no_problem_and_its_names_are_known(file: Path) -> None:
    document = Document(file, file.read_text())
    assert {problem.rule for problem in document.problems()} <= {"function-unknown"}, "functions are in Python"
    assert document.symbols
    for symbol in document.symbols:
        line = document.text.split("\n")[symbol.position.line - 1]
        assert symbol.name.split()[0] in line or symbol.what == "module", symbol


def test_a_problem_is_where_the_reader_says(tmp_path: Path) -> None:
    good = "domain t\nspace A : [n: int]\n"
    document = Document(tmp_path / "t.flow", good)
    assert document.problems() == []
    document.text = good + "space B : [n: number]\n"
    (problem,) = document.problems()
    assert (problem.position.line, problem.rule) == (3, problem.rule)
    assert [each.name for each in document.symbols] == ["t", "A"], "what was known before stays known"


def test_a_file_may_need_the_others_of_its_folder(tmp_path: Path) -> None:
    program = "create rule pay for intake if (/claim) then do enqueue <pay/> into paid\n"
    document = Document(tmp_path / "b.demaq", program)
    assert document.problems(), "nobody defines the queues"
    assert document.word(0, 21) == "intake"
    assert document.word(9, 0) is None
    assert document.defined("intake") == []
    (tmp_path / "a.demaq").write_text(
        "create queue intake kind basic mode persistent\ncreate queue paid kind basic mode persistent\n"
    )
    assert document.problems() == []
    assert [(each.what, Path(each.position.file).name) for each in document.defined("intake")] == [("queue", "a.demaq")]


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("t.flow", "domain t\nspace A : [n: int]\nspace B : [n: number]\nspace C : [n: int]\n", {"A", "C"}),
        ("t.demaq", "create queue a kind basic mode persistent\ncreate rule\n", {"a"}),
        ("t.demaq", "create rule r for a if ( then 1\ncreate queue b kind basic mode persistent\n", {"b"}),
        ("t.qdl", "01 INPUT-QUEUE (CLAIMS)\n   02 SUB-QUEUE-1 NORTH)\n99\n", {"CLAIMS"}),
    ],
)
def test_names_of_a_file_that_never_could_be_read_are_known(
    tmp_path: Path, name: str, text: str, names: set[str]
) -> None:
    document = Document(tmp_path / name, text)
    problems = document.problems()
    assert problems
    assert names <= {each.name for each in document.symbols}
    assert [each.what for each in document.problems()] == [each.what for each in problems]
