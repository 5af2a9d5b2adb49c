"""The place of an error: the beginning of what a processor points at."""

from __future__ import annotations

import pytest

from postroom.rules.language.positions import begin_of


@pytest.mark.parametrize(
    ("text", "offset", "begin"),
    [
        ("1 + xs:date('x')", 15, 4),
        ("1 + abcd", 6, 4),
        ("(1, 2) ", 5, 0),
        ("f(g(1), h(2))", 11, 8),
        ("f(g(1), h(2))", 12, 0),
        ("a", 99, 0),
        ("", 3, 3),
    ],
)
def test_a_place_is_the_beginning_of_a_word_or_of_a_call(text: str, offset: int, begin: int) -> None:
    assert begin_of(text, offset) == begin
