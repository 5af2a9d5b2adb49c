"""Patterns: ``*`` and ``?``, and nothing that takes long."""

from __future__ import annotations

import pytest

from postroom.model.pattern import looks_like


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("off*", "office", True),
        ("*ice", "office", True),
        ("o*f*e", "office", True),
        ("o?f", "off", True),
        ("o?f", "of", False),
        ("", "", True),
        ("*", "", True),
        ("a.c", "abc", False),
        ("?\n", "x\n", True),
        ("ab*ba", "aba", False),
        ("*a" * 200 + "b", "a" * 4_000, False),
    ],
)
def test_stars_and_question_marks(pattern: str, value: str, fits: bool) -> None:
    assert looks_like(pattern, value) is fits
