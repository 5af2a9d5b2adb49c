"""A place in a list of tokens: looking ahead, taking, and what is expected."""

from __future__ import annotations

import pytest

from postroom.rules.language.body import Span
from postroom.rules.language.cursor import Cursor
from postroom.rules.language.tokens import Unreadable, tokens

TEXT = "do enqueue ( $v , x:* )"


def cursor() -> Cursor:
    return Cursor(tokens(TEXT), len(TEXT))


def test_looking_ahead_takes_nothing_and_behind_the_end_is_the_end() -> None:
    at = cursor()
    assert at.word("do")
    assert at.word("enqueue", ahead=1)
    assert at.symbol("(", ahead=2)
    assert not at.symbol("do")
    assert at.peek(100).kind == "end"
    assert at.take().text == "do"


def test_what_is_there_is_skipped_and_what_is_not_is_left() -> None:
    at = cursor()
    assert not at.skip_word("enqueue")
    assert not at.skip_symbol("do")
    assert at.skip_word("do")
    assert at.need_word("enqueue").text == "enqueue"
    assert at.skip_symbol("(")
    assert at.need_variable() == "$v"
    assert at.since(2) == Span(TEXT.index("("), TEXT.index(" ,"))


def test_a_name_with_a_star_is_no_name_of_ours() -> None:
    at = cursor()
    for _ in range(5):
        at.take()
    with pytest.raises(Unreadable, match=r"a queue is expected here, not x:\*") as caught:
        at.need_name("a queue")
    assert caught.value.offset == TEXT.index("x:*")


def test_what_is_expected_is_told_at_its_place_and_at_the_end() -> None:
    at = cursor()
    with pytest.raises(Unreadable, match="a variable is expected here, not do"):
        at.need_variable()
    with pytest.raises(Unreadable, match="into is expected here, not do"):
        at.need_word("into")
    end = Cursor([], 7)
    with pytest.raises(Unreadable, match=r"\) is expected here, not the end") as caught:
        end.need_symbol(")")
    assert caught.value.offset == 7
