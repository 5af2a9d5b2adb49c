"""Listings of messages: what a person at a terminal sees, and what a pipe gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interfaces.cli.test_terminal import at_terminal
from tests.interfaces.conftest import Run

import postroom
from postroom.limits import SCREEN_MESSAGES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A room with more messages than a terminal is shown."""
    place = tmp_path_factory.mktemp("long")
    with postroom.open(place / "postroom.db") as room:
        room.queues.create("orders").send("a text " * 100)
        room.queues.send_many("orders", [{"id": number, "text": "word " * 30} for number in range(SCREEN_MESSAGES)])
        room.receive("orders")
    return place


def lines(screen: str) -> list[str]:
    return [line.rstrip() for line in screen.replace("\r", "").splitlines()]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("narrow")
def test_a_listing_fits_eighty_columns_and_keeps_its_keys(folder: Path) -> None:
    shown = lines(at_terminal(folder, "info", "orders", "--limit", "3"))
    assert max(map(len, shown)) <= 80
    rows = [line for line in shown if "00001.0" in line]
    assert [row.split()[0] for row in rows] == ["00001.00002", "00001.00003", "00001.00004"]
    assert all("…" in row for row in rows), "a long body is cut where one can see it"


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", [("history", "orders"), ("journal",)])
def test_other_listings_fit_too(folder: Path, words: tuple[str, ...]) -> None:
    shown = lines(at_terminal(folder, *words))
    assert max(map(len, shown)) <= 80
    assert any("00001.00001" in line for line in shown)


@pytest.mark.usefixtures("narrow")
def test_a_terminal_is_shown_so_many_and_told_that_there_are_more(folder: Path) -> None:
    with postroom.open(folder / "postroom.db") as room:
        room.send("orders", "one more")
    shown = lines(at_terminal(folder, "peek", "orders"))
    assert len([line for line in shown if "00001.0" in line]) == SCREEN_MESSAGES
    assert shown[-1] == f"the first {SCREEN_MESSAGES:,}; --limit N shows more, postroom count counts all"


def test_what_is_longer_than_a_screen_goes_to_the_pager(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "pager $1"\ncat > "$2"\n')
    pager.chmod(0o755)
    kept = tmp_path / "kept text"
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("PAGER", f"{pager} quick '{kept}'")
    assert "pager quick" in at_terminal(folder, "peek", "orders", "--limit", "50")
    assert kept.read_text().count("00001.0") == 50
    assert "pager" not in at_terminal(folder, "peek", "orders", "--limit", "5")
    monkeypatch.setenv("PAGER", "no-such-program")
    assert at_terminal(folder, "peek", "orders", "--limit", "50").count("00001.0") == 50


def test_a_pipe_gets_all_of_it(run: Run) -> None:
    with postroom.open("postroom.db") as room:
        room.queues.create("orders")
        room.queues.send_many("orders", ["a text"] * (SCREEN_MESSAGES + 2))
    printed = run("peek", "orders")
    assert len(printed.out.splitlines()) == SCREEN_MESSAGES + 3
    assert printed.out.splitlines()[0].split() == ["key", "queue", "created", "processed", "at", "message"]
