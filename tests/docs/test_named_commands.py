"""Commands that the pages name within their sentences: each is one that the program takes.

Those in the examples are run; a sentence could name any.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from postroom.errors import every_error
from postroom.interfaces.cli.main import program

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for place in (
        "*.md",
        "docs/*.md",
        "docs/guide/*.md",
        "docs/coming-from/*.md",
        "docs/reference/*.md",
        "examples/**/*.md",
    )
    for page in ROOT.glob(place)
    if page.name != "CHANGELOG.md"
)
CODES = {"CODE", *(kind.code for kind in every_error())}


@pytest.fixture(scope="module")
def root() -> Any:
    return typer.main.get_command(program())


def named(text: str) -> list[str]:
    """The commands that a page names, without those that are examples."""
    sentences = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [" " + " ".join(words.split()) for words in re.findall(r"`postroom(\s[^`]+)`", sentences)]


def fault(root: Any, said: str) -> str | None:
    """Why the program would not take it; None if it would, or if it stops before that can be told."""
    words = [word for word in shlex.split(said) if word != "…"]
    command, context = root, root.context_class(root, info_name="postroom")
    while words and hasattr(command, "commands"):
        word = words.pop(0)
        if word in ("--room", "--token"):
            words.pop(0)
        elif word == "help" and words and words[0] in CODES:
            return None
        elif word not in ("--json", "--version", "--help", "COMMAND", "help"):
            command = command.get_command(context, word)
            if command is None:
                return f"there is no {word}"
            context = command.context_class(command, info_name=word, parent=context)
    if not words or hasattr(command, "commands"):
        return None
    if words[-1].startswith("--"):
        words.append("1")  # the sentence leaves out what an option takes
        taken = fault_of(command, context, words[:-1])
        return taken and fault_of(command, context, words)
    return fault_of(command, context, words)


def fault_of(command: Any, context: Any, words: list[str]) -> str | None:
    try:
        _, left, _ = command.make_parser(context).parse_args(list(words))
    except Exception as error:  # of a module that typer keeps to itself
        return getattr(error, "message", str(error))
    return f"nothing takes {' '.join(left)}" if left else None


def test_what_pages_name_is_a_command_with_its_words(root: Any) -> None:
    found = [(page, said) for page in PAGES for said in named(page.read_text())]
    assert len(found) > 250, "the search still works"
    faults = [f"{page.relative_to(ROOT)}: postroom{said}: {why}" for page, said in found if (why := fault(root, said))]
    assert faults == []


def test_the_search_finds_what_is_no_command(root: Any) -> None:
    (said,) = named("Say `postroom\ntoken list ann ben`, as in\n```\n$ `postroom nothing`\n```\n")
    assert fault(root, said) == "nothing takes ben"
    assert fault(root, " nothing") == "there is no nothing"
    assert fault(root, " help queue-hold") == "there is no queue-hold"
    assert fault(root, " help queue-held") is None
    assert fault(root, " receive --nothing") is not None
    assert fault(root, " --room x.db receive orders --lease") is None
