"""What every command shares: the room, settings of Spark, and where a password comes from."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid, PasswordWrong, PrincipalRefused, QueueUnknown
from postroom.interfaces.cli import context

from ..conftest import Run
from .conftest import TREE


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context.settings, "password_source", "")


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_settings_of_spark_are_pairs_and_a_value_may_have_an_equals_sign() -> None:
    assert context.spark_settings(None) == {}
    assert context.spark_settings(["a.b=1", "c=x=y", "d="]) == {"a.b": "1", "c": "x=y", "d": ""}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_what_is_no_pair_is_refused(word: str) -> None:
    with pytest.raises(ArgumentInvalid, match="KEY=VALUE"):
        context.spark_settings([word])


def test_a_password_is_a_line_of_standard_input_without_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, "pw with blanks \r\nnext\n")
    assert context.password_source("password")() == "pw with blanks "
    assert context.password_source("password")() == "next"
    with pytest.raises(ArgumentInvalid, match="set POSTROOM_PASSWORD"):
        context.password_source("password")()


def test_the_environment_comes_first_and_a_refusal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, "typed\n")
    monkeypatch.setenv("POSTROOM_PASSWORD", "exported")
    assert context.password_at_hand()
    assert context.password_source("password")() == context.new_password("password") == "exported"
    wrong = context.with_password_source(PasswordWrong(queue="q", source=""))
    assert "it came from $POSTROOM_PASSWORD" in str(wrong)
    refused = context.with_password_source(PrincipalRefused(principal="Ada", why="no"))
    assert "(the password came from $POSTROOM_PASSWORD" in str(refused)
    other = QueueUnknown(queue="q", nearest="")
    assert context.with_password_source(other) is other


def test_a_refusal_of_a_typed_password_says_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, "typed\n")
    assert not context.password_at_hand()
    context.password_source("password")()
    error = PrincipalRefused(principal="Ada", why="no")
    assert context.with_password_source(error) is error


def test_an_option_is_written_as_it_is_typed() -> None:
    named = context.option("-o --output FILE", "Where.")
    assert ([named.default, *named.param_decls], named.metavar, named.help) == (["-o", "--output"], "FILE", "Where.")
    flag = context.option("--free/--fixed", "How.", show_default=True)
    assert ([flag.default, *flag.param_decls], flag.metavar) == (["--free/--fixed"], None)
    assert (named.show_default, flag.show_default) == (False, True)
    words = context.argument("[WORDS]...")
    assert (words.metavar, words.help, words.show_default) == ("[WORDS]...", None, False)


def test_a_known_password_is_read_now_or_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, "pw\n")
    assert context.known_password("password") == "pw"
    later = context.known_password("password")
    assert callable(later)
    with pytest.raises(ArgumentInvalid):
        later()


def test_room_and_json_are_options_of_every_command(run: Run) -> None:
    assert run("--room", "one.db", "queue", "create", "q").code == 0
    assert run("count", "--room", "one.db", "--json").json["queues"][0]["queue"] == "q"
    assert run("--json", "--room", "one.db", "count").json["queues"][0]["queue"] == "q"
    assert run("count").err.startswith("postroom: room-missing:")


def test_completion_knows_the_queues_and_never_fails(run: Run) -> None:
    run("--room", "one.db", "queue", "create", "orders")
    run("--room", "one.db", "queue", "create", "out")
    assert context._known_queues("o") == ["orders", "out"]
    assert context._known_queues("or") == ["orders"]
    run("--room", "none.db", "count")
    assert context._known_queues("") == []


def test_a_token_is_for_a_server_wherever_it_stands(run: Run) -> None:
    run("queue", "create", "orders")
    for words in (("--token", "x", "count"), ("count", "--token", "x")):
        refused = run(*words)
        assert (refused.code, "only a server asks for one" in refused.err) == (1, True)
    assert run("count").code == 0  # it is not remembered


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("queue", "create", "q"), ""),
        (("load", "tree.qdl"), ""),
        (("user", "add", "ann"), "secret\n"),
        (("station", "add", "Ann"), "secret\n"),
        (("principal", "add", "desk"), "secret\n"),
        (("gateway", "add", "orders", "http", "path=/orders"), ""),
        (("node", "add", "north", "north.db"), ""),
        (("restore", "saved.db"), ""),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_whoever_makes_a_new_room_is_told_where_it_is(
    run: Run, tmp_path: Path, words: tuple[str, ...], stdin: str
) -> None:
    (tmp_path / "tree.qdl").write_text(TREE)
    run("--room", "first.db", "queue", "create", "first")
    run("--room", "first.db", "backup", "saved.db")
    made = run(*words, "--room", "typo.db", stdin=stdin)
    assert (made.code, made.err) == (0, f"made a new room: {tmp_path / 'typo.db'}\n")


def test_a_room_that_is_there_is_not_told_and_none_is_made_by_looking(run: Run, tmp_path: Path) -> None:
    made = run("queue", "create", "q", "--json")
    assert made.err == f"made a new room: {tmp_path / 'postroom.db'}\n"
    assert made.json == {"status": "00", "queue": "q"}, "what programs read is the answer alone"
    for words in (("queue", "create", "r"), ("count",), ("send", "q", "--body", "x")):
        assert run(*words).err == "", words
    looks = ("count", "peek q", "journal", "info q", "send q --body x", "run")
    for look in looks:
        assert run("--room", "typo.db", *look.split()).err.startswith("postroom: room-missing:"), look
    assert not (tmp_path / "typo.db").exists()
