"""The pages for those who know another system: every part is there, what they name can be typed, and our half runs."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import pytest
import typer.main

import postroom
from postroom.interfaces.cli.main import program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "coming-from").glob("*.md"))
BLOCK = re.compile(r"^```(py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_is_a_page_for_each_system() -> None:
    text = (DOCS / "coming-from.md").read_text()
    for system, page in zip(["Celery", "IBM MQ", "Kafka", "RabbitMQ", "Temporal"], PAGES, strict=True):
        assert page.read_text().startswith(f"# Coming from {system}\n")
        assert f"[Coming from {system}](coming-from/{page.name})" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_words_and_what_is_the_same_better_and_missing(page: Path) -> None:
    text = page.read_text()
    assert len(re.findall(r"^\| (?!---)", text, re.MULTILINE)) > 8
    places = [text.index(part) for part in ("## The same job in both", "**The same.**", "**Better.**", "**Missing.**")]
    assert places == sorted(places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_our_half_of_the_job_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (theirs, other), (ours, text) = BLOCK.findall(page.read_text())
    assert (theirs, ours) == ("py", "python")
    compile(other, page.name, "exec")
    assert "assert" in text
    monkeypatch.chdir(tmp_path)
    exec(compile(text, page.name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [DOCS / "coming-from.md", *PAGES], ids=lambda page: page.stem)
def test_what_is_named_is_there(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    commands = typer.main.get_command(program()).commands  # type: ignore[attr-defined]  # a group
    for word in re.findall(r"`postroom ([a-z]+)", text):
        assert word in commands
    with postroom.open(tmp_path / "room.db") as room:
        for name in re.findall(r"`room\.(\w+(?:\.\w+)*)", text):
            assert callable(attrgetter(name)(room))


@pytest.mark.parametrize("page", ["README.md", "docs/README.md", "docs/tutorial.md", "docs/glossary.md"])
def test_the_page_is_found(page: str) -> None:
    assert "coming-from.md" in (ROOT / page).read_text()
