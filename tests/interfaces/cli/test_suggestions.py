"""What is said to words that are no commands: those that people know from elsewhere, slips, and codes of errors."""

from __future__ import annotations

import pytest
import typer.main
from tests.interfaces.conftest import Run

from postroom.errors import every_error
from postroom.interfaces.cli.main import program
from postroom.interfaces.cli.suggestions import ELSEWHERE


@pytest.mark.parametrize("words", ELSEWHERE)
def test_a_word_from_elsewhere_is_answered_with_what_to_type(run: Run, words: str) -> None:
    told = run(*words.split())
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith(f"Error: No such command {words.split()[-1]!r}; {ELSEWHERE[words]}\n")


def test_what_is_to_be_typed_is_there(run: Run) -> None:
    commands = typer.main.get_command(program()).commands  # type: ignore[attr-defined]
    for words, answer in ELSEWHERE.items():
        assert words not in commands, "a command needs no answer"
        for named in answer.split("postroom ")[1:]:
            assert named.split()[0] in {*commands, "--version"}


@pytest.mark.parametrize("word", ["nonsense", "replays-it", "stat", "desk"])
def test_a_word_that_is_like_no_command_leads_to_no_guess(run: Run, word: str) -> None:
    told = run(word)
    assert told.code == 2
    assert told.err.endswith(f"Error: No such command {word!r}.\n")


def test_a_slip_is_understood_in_every_group(run: Run) -> None:
    assert "No such command 'sned'. Did you mean 'send'?" in run("sned").err
    assert "No such command 'crate'. Did you mean 'create'?" in run("queue", "crate").err
    assert "No such command 'shwo'. Did you mean 'show'?" in run("sphere", "shwo").err
    assert run("--bogus").code == 2


def test_help_is_a_word_too(run: Run) -> None:
    for words in ([], ["send"], ["queue"], ["queue", "create"], ["sphere", "show"]):
        wanted = run(*words, "--help").out
        told = run("help", *words)
        assert (told.code, told.out, told.err) == (0, wanted, "")
    assert run("queue", "help", "create").out == run("queue", "create", "--help").out
    assert run("queue", "help").out == run("queue", "--help").out
    assert run("help", "nonsense").code == 2


def test_help_explains_every_error_by_its_code(run: Run) -> None:
    commands = typer.main.get_command(program()).commands  # type: ignore[attr-defined]
    for kind in every_error():
        assert kind.code not in commands
        told = run("help", kind.code)
        assert (told.code, told.err) == (0, "")
        first, happened, advice = told.out.rstrip("\n").split("\n\n")
        assert first == f"{kind.code}: {kind.template}"
        assert happened.startswith({"no": "Nothing", "yes": "The change", "unknown": "It cannot"}[kind.happened])
        assert advice == kind.advice
    assert run("help", "queue-held", "again").code == run("queue", "help", "queue-held").code == 2


def test_queue_list_prints_what_count_prints(run: Run) -> None:
    run("queue", "create", "orders")
    assert run("queue", "list").out == run("count").out != ""
    assert run("queue", "list", "--json").json == run("count", "--json").json
    assert "as postroom count does" in run("help", "queue", "list").out


@pytest.mark.parametrize(("alias", "name"), [("accept", "count"), ("info", "peek")])
def test_an_alias_prints_what_the_command_prints_and_says_so(run: Run, alias: str, name: str) -> None:
    run("queue", "create", "orders")
    run("send", "orders", "--body", "order 17")
    assert "order" in run(name, "orders").out
    for options in ([], ["--json"]):
        assert run(alias, "orders", *options) == run(name, "orders", *options)
    assert f"The same as {name}: an alias" in run(alias, "--help").out
    assert f"Alias: {alias}." in run(name, "--help").out
