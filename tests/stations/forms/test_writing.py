"""What is written into blanks is read as it was, in one row or several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.stations.forms.writing import Unreadable, joined, laid_out, listed, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_every_text_is_read_as_it_was_written(text: str) -> None:
    row = written(text)
    assert joined([row]).read() == text
    assert "\n" not in row
    assert row.strip(" _") == row


@given(TEXTS, st.integers(12, 40))
def test_rows_that_fit_a_blank_are_joined_to_the_same(text: str, width: int) -> None:
    rows = laid_out(written(text), width, width)
    assert rows is not None
    assert all(len(row) <= width for row in rows)
    assert joined(rows).read() == text


@given(st.lists(TEXTS, max_size=4))
def test_every_list_is_read_as_it_was_written(values: list[str]) -> None:
    assert joined([listed(values)]).read_list() == values


def test_a_word_that_is_longer_than_a_narrow_blank_does_not_fit() -> None:
    assert laid_out("incomprehensible", 5, 5) is None
    assert laid_out("", 5, 5) == []


@pytest.mark.parametrize(
    ("rows", "row", "offset"), [(["a \\x"], 0, 2), (["fine", "b \\q"], 1, 2), (["\\u{110000}"], 0, 0)]
)
def test_a_backslash_that_means_nothing_is_refused_with_its_place(rows: list[str], row: int, offset: int) -> None:
    with pytest.raises(Unreadable, match="a backslash is written") as caught:
        joined(rows).read()
    assert (caught.value.row, caught.value.offset) == (row, offset)
