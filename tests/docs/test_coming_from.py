"""The page for those who know another system: every part is there, and what it names can be typed."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import pytest
import typer.main

import postroom
from postroom.interfaces.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()
SECTIONS = dict(zip(*[iter(re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:])] * 2, strict=True))


@pytest.mark.parametrize("system", ["RabbitMQ", "Kafka", "Temporal", "Celery", "IBM MQ"])
def test_each_system_has_its_words_and_what_is_the_same_different_and_missing(system: str) -> None:
    text = SECTIONS[system]
    assert len(re.findall(r"^\| (?!---)", text, re.MULTILINE)) > 8
    for part in ("**The same.**", "**Different.**", "**Missing.**"):
        assert part in text


def test_what_is_named_is_there(tmp_path: Path) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
    for word in re.findall(r"`postroom ([a-z]+)", PAGE):
        assert word in commands
    with postroom.open(tmp_path / "room.db") as room:
        for name in re.findall(r"`room\.(\w+(?:\.\w+)*)", PAGE):
            assert callable(attrgetter(name)(room))


@pytest.mark.parametrize("page", ["README.md", "docs/README.md", "docs/tutorial.md", "docs/glossary.md"])
def test_the_page_is_found(page: str) -> None:
    assert "coming-from.md" in (ROOT / page).read_text()
