"""Suggestions: a slip or two is understood, another word is not."""

from __future__ import annotations

import pytest

from postroom.model.definitions import nearest
from postroom.model.spelling import close, written


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("oders", "orders"),
        ("ORDERS", "orders"),
        ("orderss", "orders"),
        ("NYES", "NYSE"),
        ("aa", "a"),
        ("FE", "FEE"),
        ("jobs", "Jobs"),
        ("MASTER-QUEUE", "MASTER-QUE"),
        ("my qeue", "my queue"),
        ("Straße", "STRASSE"),
    ],
)
def test_one_or_two_letters_off_and_case_are_understood(name: str, meant: str) -> None:
    assert close(name, ["something", meant, "else"]) == [meant]


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("desk", "orders"),
        ("peek", "sphere"),
        ("status", "station"),
        ("start", "station"),
        ("replay", "explain"),
        ("version", "verify"),
        ("ls", "list"),
        ("x", "a"),
        ("ab", "cd"),
        ("", "a"),
    ],
)
def test_another_word_is_not(name: str, there: str) -> None:
    assert close(name, [there]) == []


def test_the_closest_come_first_and_then_those_that_were_there_first() -> None:
    assert close("order", ["ordre", "orders", "border", "order"], most=3) == ["order", "ordre", "orders"]


def test_a_hint_has_a_name_with_blanks_in_quotes() -> None:
    assert nearest("my qeue", ["my queue"]) == "; did you mean 'my queue'?"
    assert nearest("oders", ["orders"]) == "; did you mean orders?"
    assert nearest("desk", ["orders"]) == ""
    assert written("Aufträge") == "Aufträge"
