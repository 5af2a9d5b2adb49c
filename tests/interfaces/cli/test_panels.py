"""The help: every command stands in a panel and has examples, which are at least words that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from postroom.interfaces.cli.context import settings
from postroom.interfaces.cli.main import program
from postroom.interfaces.cli.panels import PANELS, Panels

ROOT: Any = typer.main.get_command(program())


def commands(group: Any = ROOT, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""
    for word, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, (*name, word))
        else:
            yield (*name, word), command


COMMANDS = dict(commands())


def examples(help: str) -> list[list[str]]:
    """The words of every example; what a shell does before and after the command is left out."""
    _, _, text = help.partition("Example")
    lines = re.findall(r"^ {2,}(.*\bpostroom .*)$", text, re.MULTILINE)
    return [_own(line) for line in lines]


def _own(line: str) -> list[str]:
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    words = words[words.index("postroom") + 1 :]
    ends = [place for place, word in enumerate(words) if word in ("|", "<", ">", "&&", ";")]
    return words[: ends[0]] if ends else words


def parsed(words: list[str]) -> tuple[str, ...]:
    """Which command these words call; raises if it does not take them. Nothing is run."""
    group, name = ROOT, []
    while isinstance(group, TyperGroup):
        context = group.make_context("postroom", words)
        words = [*context._protected_args, *context.args]
        name.append(words[0])
        group, words = group.commands[words[0]], words[1:]
    group.make_context(name[-1], words)
    return tuple(name)


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    settings.room, settings.json = None, False


def test_every_command_and_group_has_a_panel_and_every_panel_its_commands() -> None:
    placed = [name for names in PANELS.values() for name in names]
    assert len(placed) == len(set(placed)), "one place each"
    assert set(placed) == set(ROOT.commands)


def test_the_help_lists_every_command_under_its_panel() -> None:
    help = ROOT.get_help(ROOT.make_context("postroom", [], resilient_parsing=True))
    for panel, names in PANELS.items():
        section = help.split(f"\n{panel}:\n")[1].split("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == list(names)
    assert "Other commands" not in help


def test_no_summary_is_cut_on_a_terminal_of_80_columns() -> None:
    shown = CliRunner().invoke(program(), ["--help"], env={"COLUMNS": "80"}, terminal_width=80).output
    assert [line for line in shown.splitlines() if line.endswith("...") and "COMMAND" not in line] == []


def test_a_command_without_a_panel_is_still_shown() -> None:
    group = Panels(name="x", rich_markup_mode=None, commands={"strange": ROOT.commands["send"]})
    assert "Other commands:\n  strange" in group.get_help(group.make_context("x", [], resilient_parsing=True))


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_example_in_the_help_is_a_call_of_its_command(name: tuple[str, ...]) -> None:
    found = examples(COMMANDS[name].help)
    assert found, "show how it is called"
    for words in found:
        assert parsed(words) == name


def test_an_example_with_a_wrong_option_is_noticed() -> None:
    (words,) = examples("Says it.\n\nExample:\n  echo x | postroom send orders --colour red | cat")
    assert words == ["send", "orders", "--colour", "red"]
    with pytest.raises(Exception, match="--colour"):
        parsed(words)
    with pytest.raises(Exception, match="issing"):
        parsed(["send"])
    assert examples("Says it, and no more.") == []
