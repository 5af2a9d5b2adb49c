"""Advice: one or two sentences for each error, which say what to do."""

from __future__ import annotations

import re

import pytest

from postroom.advice import ADVICE
from postroom.errors import every_error


def test_the_codes_are_sorted_and_are_those_of_errors() -> None:
    assert list(ADVICE) == sorted(ADVICE)
    assert ADVICE.keys() <= {kind.code for kind in every_error()}


@pytest.mark.parametrize("code", ADVICE)
def test_advice_is_short_whole_sentences(code: str) -> None:
    said = ADVICE[code]
    assert re.fullmatch(r"[A-Z].*\.", said), "it begins and ends as a sentence"
    assert len(said) <= 200
    assert said.count("`") % 2 == 0, "every command is in a pair of quotes"
