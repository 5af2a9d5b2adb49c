"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from postroom.rules.language.lazy import lazy


def test_it_matches_as_a_compiled_one_does() -> None:
    late, early = lazy(r"(?P<word>[a-z]+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)", re.IGNORECASE)
    for text in ("Ab1", "", "1", "x y z"):
        assert [each.groupdict() for each in late.finditer(text)] == [each.groupdict() for each in early.finditer(text)]
        assert bool(late.fullmatch(text)) == bool(early.fullmatch(text))
    assert (late.pattern, late.flags) == (early.pattern, early.flags)


def test_nothing_is_compiled_before_it_is_used() -> None:
    broken = lazy("(")
    with pytest.raises(re.error):
        broken.match("x")
