"""Edits keep lines where they are, and each place in the new text knows where it comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.rules.language.edits import Edit, edited, line_column

TEXT = "one two\nthree four\nfive"


def test_edits_are_made_in_any_order_and_only_inside_the_piece() -> None:
    result = edited(TEXT, 4, 18, [Edit(8, 13, "3"), Edit(4, 7, "zwei"), Edit(18, 18, "!")])
    assert result.text == "zwei\n3 four!"


def test_insertions_at_one_place_keep_their_order_and_stand_before_what_is_replaced_there() -> None:
    result = edited("abc", 0, 3, [Edit(1, 2, "B"), Edit(1, 1, "1"), Edit(1, 1, "2"), Edit(2, 2, "3")])
    assert result.text == "a12B3c"


def test_the_origin_of_what_was_copied_is_exact_and_of_what_was_put_in_its_edit() -> None:
    result = edited(TEXT, 4, 23, [Edit(8, 13, "III"), Edit(14, 14, "+")])
    assert result.text == "two\nIII +four\nfive"
    for word in ("two", "four", "five"):
        assert result.origin(result.text.index(word)) == TEXT.index(word)
    assert [result.origin(at) for at in range(4, 8)] == [8, 8, 8, 13]
    assert result.origin(result.text.index("+")) == 14
    assert result.origin(len(result.text)) == 23


def test_an_edit_that_takes_line_ends_away_puts_them_back_behind() -> None:
    result = edited(TEXT, 0, len(TEXT), [Edit(4, 18, "x")])
    assert result.text == "one x\n\nfive"[: len("one x\n")] + "\nfive"
    assert line_column(result.text, result.text.index("five")) == line_column(TEXT, TEXT.index("five"))


@pytest.mark.parametrize(
    ("edits", "what"),
    [
        ([Edit(0, 3, "a"), Edit(2, 4, "b")], "overlaps"),
        ([Edit(0, 99, "a")], "overlaps another or leaves"),
        ([Edit(3, 2, "a")], "overlaps"),
        ([Edit(0, 1, "a\nb")], "line end"),
        ([Edit(0, 1, "a\rb")], "line end"),
    ],
)
def test_wrong_edits_are_refused(edits: list[Edit], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        edited(TEXT, 0, len(TEXT), edits)


def test_a_place_outside_the_new_text_has_no_origin() -> None:
    result = edited(TEXT, 0, 3, [])
    assert [result.origin(at) for at in range(4)] == [0, 1, 2, 3]
    for offset in (-1, 4):
        with pytest.raises(ValueError, match="no offset"):
            result.origin(offset)
    assert edited("", 0, 0, []).origin(0) == 0


@given(
    text=st.text(alphabet="ab\n", max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=8),
    put=st.text(alphabet="xy", max_size=3),
)
def test_lines_stay_where_they_are_and_origins_grow(text: str, cuts: list[int], put: str) -> None:
    places = sorted(min(place, len(text)) for place in cuts)
    edits = [Edit(start, end, put) for start, end in zip(places[::2], places[1::2], strict=False)]
    result = edited(text, 0, len(text), edits)
    origins = [result.origin(at) for at in range(len(result.text) + 1)]
    assert origins == sorted(origins)
    assert result.text.count("\n") == text.count("\n")
    for at, character in enumerate(result.text):
        if character in "ab":
            assert text[origins[at]] == character
            assert line_column(result.text, at)[0] == line_column(text, origins[at])[0]


@pytest.mark.parametrize(
    ("offset", "place"), [(0, (1, 1)), (7, (1, 8)), (8, (2, 1)), (12, (2, 5)), (19, (3, 1)), (23, (3, 5))]
)
def test_lines_and_columns_are_counted_from_one(offset: int, place: tuple[int, int]) -> None:
    assert line_column(TEXT, offset) == place
