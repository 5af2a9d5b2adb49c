"""Words of the flow language, and the reader that takes them one by one."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.language.words import WORD, Words, string
from postroom.limits import FLOW_DEPTH_MAX


def test_words_are_taken_one_by_one_and_remarks_are_none() -> None:
    words = Words('arc a # a remark\n -> "b" 1.5e3 >=', "f")
    assert words.keyword("arc", "space").text == "arc"
    assert words.name("a name").text == "a"
    assert words.expect("->", "an arrow").text == "->"
    assert string(words.take()) == "b"
    assert words.take().text == "1.5e3"
    assert words.sign("<=") is None
    assert words.is_sign(">=", "<=")
    assert words.sign(">=") is not None
    words.end()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a b", "'->' an arrow is expected here, not 'b'"),
        ("a", "'->' an arrow is expected here, not the end"),
        ("a ->", "a name is expected here, not the end"),
        ("a -> b c", "the end is expected here, not 'c'"),
    ],
)
def test_what_is_expected_is_told_where_something_else_stands(text: str, what: str) -> None:
    words = Words(text, "f")

    def read() -> None:
        words.name("a name")
        words.expect("->", "an arrow")
        words.name("a name")
        words.end()

    with pytest.raises(FlowInvalid) as caught:
        read()
    assert what in str(caught.value)
    assert str(caught.value).startswith("f:1:")


@pytest.mark.parametrize("text", ['"open', "a ; b", "$"])
def test_what_is_no_word_is_refused_before_anything_is_read(text: str) -> None:
    with pytest.raises(FlowInvalid):
        Words(text, "f")


@pytest.mark.parametrize("text", ['"\\x"', '"\\ud800"', '"\\u0000"'])
def test_a_text_says_what_json_says_or_is_refused(text: str) -> None:
    with pytest.raises(FlowInvalid):
        string(Words(text, "f").take())
    assert string(Words('"\\u00e9\\n\\""', "f").take()) == 'é\n"'


def test_depth_is_bounded_and_given_back() -> None:
    words = Words("x", "f")
    for _ in range(FLOW_DEPTH_MAX):
        words.deeper()
    words.higher()
    words.deeper()
    with pytest.raises(FlowInvalid, match="inside one another"):
        words.deeper()


@pytest.mark.parametrize(("text", "is_name"), [("a", True), ("é_1", True), ("1a", False), ("a b", False), ("", False)])
def test_a_name_is_a_letter_and_what_follows(text: str, is_name: bool) -> None:
    assert bool(WORD.match(text)) is is_name
