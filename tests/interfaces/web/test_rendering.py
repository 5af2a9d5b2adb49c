"""How counts and lists of names are written on pages."""

from __future__ import annotations

import pytest

from postroom.interfaces.web.rendering import counted, listed
from postroom.limits import NAMES_SHOWN


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("message", "messages"),
        ("entry", "entries"),
        ("error message", "error messages"),
        ("day", "days"),
        ("key", "keys"),
        ("process", "processes"),
        ("box", "boxes"),
        ("branch", "branches"),
        ("hash", "hashes"),
    ],
)
def test_a_number_has_its_noun(noun: str, several: str) -> None:
    assert counted(0, noun) == f"0 {several}"
    assert counted(1, noun) == f"1 {noun}"
    assert counted(2, noun) == f"2 {several}"
    assert counted(1204, noun) == f"1,204 {several}"


def test_of_many_names_the_first_are_said_and_how_many_others() -> None:
    names = [f"q{number}" for number in range(1, NAMES_SHOWN + 3)]
    assert listed([]) == ""
    assert listed(names[:1]) == "q1"
    assert listed(names[:NAMES_SHOWN]) == ", ".join(names[:NAMES_SHOWN])
    assert listed(names[: NAMES_SHOWN + 1]).endswith(f"q{NAMES_SHOWN} and 1 other")
    assert listed(names).endswith(f"q{NAMES_SHOWN} and 2 others")
