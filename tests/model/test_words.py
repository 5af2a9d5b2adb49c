"""Words of definition texts: where each stands, and what is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import FlowInvalid
from postroom.model.words import END, Lexicon, WordReader

LEXICON = Lexicon(
    re.compile(r"(?P<blank>[ \n]+|#[^\n]*)|(?P<name>[a-z]+)|(?P<string>'[^'\n]*')"),
    FlowInvalid,
    {"'": "a text has no closing quote"},
)


def test_every_word_has_its_kind_and_place() -> None:
    found = [(word.kind, word.text, str(word.position)) for word in LEXICON.words("ab # c\n  'd e'\nf", "x")]
    assert found == [("name", "ab", "x:1:1"), ("string", "'d e'", "x:2:3"), ("name", "f", "x:3:1"), (END, "", "x:3:2")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n  7", "x:2:3: the character '7' is not in the language [syntax]"),
        ("a 'b\n'", "x:1:3: a text has no closing quote [syntax]"),
    ],
)
def test_what_is_not_in_the_language_is_refused_where_it_stands(text: str, told: str) -> None:
    with pytest.raises(FlowInvalid, match=re.escape(told)):
        list(LEXICON.words(text, "x"))


def test_a_reader_looks_at_nothing_that_it_need_not() -> None:
    reader = WordReader(LEXICON.words("a b 7", "x"))
    assert reader.take().text == "a"
    assert reader.next.text == "b"
    with pytest.raises(FlowInvalid):
        reader.take()


def test_behind_the_end_is_the_end() -> None:
    reader = WordReader(LEXICON.words("a", "x"))
    assert (reader.after_next.kind, reader.done) == (END, False)
    assert [reader.take().kind for _ in range(3)] == ["name", END, END]
    assert str(reader.next) == "the end"


@given(st.text(alphabet="ab \n#'"))
def test_places_are_those_of_the_text(text: str) -> None:
    try:
        words = list(LEXICON.words(text, "x"))
    except FlowInvalid:
        return
    lines = text.split("\n")
    for word in words[:-1]:
        line = lines[word.position.line - 1]
        assert line[word.position.column - 1 :].startswith(word.text)
    assert words[-1].position.line == len(lines)
