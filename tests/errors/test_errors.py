"""The tree of errors: codes, places, tests, and what crosses process borders."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from postroom import errors

ROOT = Path(__file__).parents[2]


def test_every_error_has_a_code_a_place_in_the_tree_and_a_test() -> None:
    kinds = errors.every_error()
    codes = [kind.code for kind in kinds]
    assert codes == sorted(set(codes))
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    drawn = errors.__doc__ or ""
    for kind in kinds:
        assert re.search(rf"\b{kind.__name__}\s+{kind.code}\b", drawn), f"{kind.__name__} is not drawn in the tree"
        assert re.search(rf"\b{kind.__name__}\b|\b{kind.code}:", tests), f"no test raises {kind.__name__}"
        assert kind.happened in ("no", "yes", "unknown")
        assert re.fullmatch(r"\d\d", kind.status)


def test_errors_keep_their_facts_across_process_borders() -> None:
    original = errors.QueueUnknown(queue="q", nearest="")
    again = copy.copy(original)
    assert (type(again), str(again), again.facts) == (errors.QueueUnknown, str(original), original.facts)


@pytest.mark.parametrize("kind", errors.every_error(), ids=lambda kind: kind.code)
def test_advice_is_short_whole_sentences(kind: type[errors.PostroomError]) -> None:
    assert re.fullmatch(r"[A-Z].*\.", kind.advice), "it begins and ends as a sentence"
    assert len(kind.advice) <= 200
    assert kind.advice.count("`") % 2 == 0, "every command is in a pair of quotes"
    assert errors.advice_of(kind.code) == kind.advice


def test_there_is_no_advice_for_no_error() -> None:
    assert errors.advice_of("nothing") == ""
