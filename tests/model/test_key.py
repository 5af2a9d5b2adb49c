"""Message keys: two forms of one number."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import KeyInvalid, MessageError
from postroom.limits import KEY_TAIL
from postroom.model.key import FIRST, KeyTexts, key_number, key_text

READABLE = 10**12 * KEY_TAIL  # a head has at most twelve digits


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (FIRST, "00001.00001"),
        (400_001, "00004.00001"),
        (KEY_TAIL - 1, "00000.99999"),
        (KEY_TAIL, "00001.00000"),
        (10**10 - 1, "99999.99999"),
        (10**10, "100000.00000"),
        (READABLE - 1, "999999999999.99999"),
    ],
)
def test_a_number_and_its_text_are_the_same_key(number: int, text: str) -> None:
    assert key_text(number) == text
    assert key_number(text) == number


@settings(deadline=None, max_examples=300)
@given(st.integers(0, READABLE - 1))
def test_every_key_reads_back_as_its_number(number: int) -> None:
    assert key_number(key_text(number)) == number


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 10**10 - 1), max_size=20))
def test_keys_of_eleven_characters_sort_as_text_like_their_numbers(numbers: list[int]) -> None:
    texts = [key_text(number) for number in numbers]
    assert {len(text) for text in texts} <= {11}
    assert [key_number(text) for text in sorted(texts)] == sorted(numbers)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "00001",
        "00001.",
        ".00001",
        "0001.00001",
        "00001.0001",
        "00001.000001",
        "00001,00001",
        "00001.00001.00001",
        "+0001.00001",
        "-0001.00001",
        "0_001.00001",
        "0x001.00001",
        " 0001.00001",
        "00001.00001\n",
        "00001.0000\N{FULLWIDTH DIGIT ONE}",
        "0000\N{SUPERSCRIPT TWO}.00001",
        "٠٠٠٠١.٠٠٠٠١",
        "0" * 13 + ".00001",
        "9" * 5000 + ".00001",
    ],
)
def test_what_does_not_look_like_a_key_is_refused_and_named(text: str) -> None:
    with pytest.raises(KeyInvalid) as caught:
        key_number(text)
    assert caught.value.code == "key-invalid"
    assert caught.value.facts == {"key": text}
    assert isinstance(caught.value, MessageError)
    assert repr(text) in str(caught.value)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=20) | st.from_regex(r"\A\d{3,7}[.,]\d{3,7}\Z") | st.from_regex(r"\A[0-9]{5,12}\.[0-9]{5}\Z"))
def test_any_text_is_a_key_or_key_invalid(text: str) -> None:
    try:
        number = key_number(text)
    except KeyInvalid:
        return
    # Extra zeros in front are the only freedom.
    assert text.endswith(key_text(number).lstrip("0"))
    assert set(text.removesuffix(key_text(number))) <= {"0"}


def test_key_invalid_survives_a_process_border() -> None:
    copy = pickle.loads(pickle.dumps(KeyInvalid(key="x")))
    assert (type(copy), copy.facts, str(copy)) == (KeyInvalid, {"key": "x"}, str(KeyInvalid(key="x")))


def test_key_texts_reads_like_the_list_of_texts() -> None:
    numbers = range(FIRST, FIRST + 5)
    texts = KeyTexts(numbers)
    plain = [key_text(number) for number in numbers]
    assert len(texts) == 5
    assert list(texts) == plain
    assert texts[0] == "00001.00001"
    assert texts[-1] == "00001.00005"
    assert "00001.00003" in texts
    assert "00001.00006" not in texts
    assert texts.index("00001.00004") == 3
    assert list(reversed(texts)) == plain[::-1]
    with pytest.raises(IndexError):
        texts[5]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 10**9), max_size=8), st.slices(8))
def test_a_slice_of_key_texts_is_key_texts_of_the_slice(numbers: list[int], part: slice) -> None:
    texts = KeyTexts(numbers)[part]
    assert isinstance(texts, KeyTexts)
    assert list(texts) == [key_text(number) for number in numbers[part]]


def test_key_texts_makes_a_text_only_when_looked_at() -> None:
    assert KeyTexts(range(10**12))[10**11] == "1000000.00000"
