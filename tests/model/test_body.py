"""Bodies at the door: text, JSON, and their limits. XML has its own file."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyError, BodyTooLarge, JsonMalformed, TextInvalid, XmlMalformed
from postroom.limits import BODY_BYTES_MAX, BODY_DEPTH_MAX
from postroom.model.body import Format, check_body, json_text, parse_json, storable

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)
SAMPLE = '{"name": "Grüße", "sizes": [1, -2.5e3, null, true], "inner": {"deep": [[]]}}'


def why(text: str) -> str:
    with pytest.raises(JsonMalformed) as caught:
        check_body(text, Format.JSON)
    assert (caught.value.code, caught.value.status, caught.value.happened) == ("json-malformed", "50", "no")
    return str(caught.value.facts["why"])


def json_problem(text: str) -> str | None:
    """What Python's own reader finds."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    check_body(text, Format.JSON)
    return None


# --- text --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(VALUES, st.text(" \t\r\n", max_size=2), st.text(" \t\r\n", max_size=2), st.text(" ,]}1x", max_size=3))
def test_json_may_have_spaces_around_it_and_nothing_else(value: Any, before: str, after: str, more: str) -> None:
    text = f"{before}{json_text(value)}{after}"
    assert parse_json(text) == value
    if problem := json_problem(text + more):
        assert why(text + more) == problem


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_without_nul_is_taken(body: str) -> None:
    check_body(body, Format.TEXT)


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize("prefix", ["", "a", "é€\N{GRINNING FACE}"])
def test_nul_is_refused_in_every_format_and_its_character_counted(prefix: str, form: Format) -> None:
    with pytest.raises(TextInvalid, match=rf"character {len(prefix) + 1} is NUL") as caught:
        check_body(prefix + "\0 and more \0", form)
    assert (caught.value.code, caught.value.status) == ("text-invalid", "50")


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize("half", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_half_of_a_surrogate_pair_is_refused_in_every_format(half: int, form: Format) -> None:
    with pytest.raises(TextInvalid, match="character 3 is half of a surrogate pair"):
        check_body(f"ok{chr(half)}", form)


@pytest.mark.parametrize(
    ("form", "before", "after"), [(Format.TEXT, "", ""), (Format.JSON, '"', '"'), (Format.XML, "<a>", "</a>")]
)
def test_the_largest_body_is_taken_and_one_byte_more_is_refused(form: Format, before: str, after: str) -> None:
    room = BODY_BYTES_MAX - len(before) - len(after)
    check_body(before + "x" * room + after, form)
    with pytest.raises(BodyTooLarge) as caught:
        check_body(before + "x" * (room + 1) + after, form)
    assert caught.value.facts == {"size": BODY_BYTES_MAX + 1, "limit": BODY_BYTES_MAX}
    assert caught.value.code == "body-too-large"


def test_size_counts_bytes_and_not_characters() -> None:
    half = BODY_BYTES_MAX // 2
    check_body("é" * half, Format.TEXT)
    with pytest.raises(BodyTooLarge):
        check_body("é" * half + "x", Format.TEXT)


@pytest.mark.parametrize("form", [Format.JSON, Format.XML])
def test_a_body_that_is_too_large_is_not_parsed_first(form: Format) -> None:
    with pytest.raises(BodyTooLarge):
        check_body("<[{" * BODY_BYTES_MAX, form)


# --- JSON --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(VALUES)
def test_every_json_value_reads_back_as_it_was_written(value: Any) -> None:
    text = json_text(value)
    check_body(text, Format.JSON)
    assert json_text(parse_json(text)) == text
    assert repr(parse_json(text)) == repr(value)  # repr tells 1 from 1.0 and True, and -0.0 from 0.0


def test_json_is_written_without_blanks_and_without_escaping_letters() -> None:
    assert json_text({"a": [1, "Grüße\n"], "b": None}) == '{"a":[1,"Grüße\\n"],"b":null}'


@pytest.mark.parametrize("length", range(len(SAMPLE)))
def test_json_cut_short_anywhere_is_refused(length: int) -> None:
    assert why(SAMPLE[:length])
    assert parse_json(SAMPLE)["name"] == "Grüße"


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("shape", ["{}", "[{}]", '{{"a": {}}}'])
def test_numbers_that_json_does_not_have_are_refused(shape: str, name: str) -> None:
    assert why(shape.format(name)) == f"{name} is not a JSON number"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}, {b"x"}, b"x", object()])
def test_what_json_cannot_say_is_not_written(value: object) -> None:
    with pytest.raises(JsonMalformed):
        json_text(value)


def test_a_value_that_holds_itself_is_not_written() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(JsonMalformed, match="Circular"):
        json_text(endless)


@pytest.mark.parametrize(
    ("text", "double"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('[{"x": {"b": 1, "c": 2, "b": 3}}]', "b"),
        ('{"": 0, "": 0}', ""),
        ('{"\\u0061": 1, "a": 2}', "a"),
    ],
)
def test_a_name_that_stands_twice_in_one_object_is_refused(text: str, double: str) -> None:
    assert why(text) == f"the name {double!r} appears twice in one object"


def test_a_name_may_stand_once_in_each_object() -> None:
    assert parse_json('[{"a": {"a": 1}}, {"a": 2}]') == [{"a": {"a": 1}}, {"a": 2}]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_is_bounded_exactly(opening: str, closing: str) -> None:
    per_round = opening.count("[") + opening.count("{")
    rounds = BODY_DEPTH_MAX // per_round
    assert parse_json(opening * (rounds - 1) + "[" * per_round + "]" * per_round + closing * (rounds - 1))
    deeper = opening * rounds + "[]" + closing * rounds
    assert why(deeper) == f"values nest deeper than {BODY_DEPTH_MAX}"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("closed", [True, False])
def test_bottomless_nesting_is_refused_quickly(opening: str, closed: bool) -> None:
    text = opening * 100_000 + ("0" + {"[": "]", "{": "}"}[opening[0]] * 100_000 if closed else "")
    started = time.process_time()
    assert why(text) == f"values nest deeper than {BODY_DEPTH_MAX}"
    assert time.process_time() - started < 1


def test_a_number_of_very_many_digits_is_refused_quickly_and_not_worked_out() -> None:
    assert parse_json("1" * 4_300) == int("1" * 4_300)
    started = time.process_time()
    assert "4300 digits" in why("1" * 1_000_000)
    assert time.process_time() - started < 1


def test_an_error_tells_line_and_column() -> None:
    assert why('{"a": 1,\n "b": x}').endswith("at line 2, column 7")


@pytest.mark.parametrize(
    "text", ["", " ", "{'a': 1}", "[1,]", "01", "+1", ".5", "'", "tru", "1 2", "\ufeff1", "<a/>", "\x07"]
)
def test_garbage_is_not_json(text: str) -> None:
    assert why(text)


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=30) | st.text('[]{}",:0123456789.eE-+truefalsnN \\u', max_size=30), st.sampled_from(Format))
def test_any_text_in_any_format_is_taken_or_refused_as_a_body(text: str, form: Format) -> None:
    with contextlib.suppress(BodyError):
        check_body(text, form)
        assert "\0" not in text
        assert text.encode().decode() == text


def test_text_is_not_parsed_and_json_is_not_xml() -> None:
    check_body("{<", Format.TEXT)
    with pytest.raises(XmlMalformed):
        check_body("{}", Format.XML)


def test_a_number_too_large_for_a_float_is_refused() -> None:
    why("[1e999]")


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}', '"\\u0000"'])
def test_an_escape_does_not_smuggle_in_what_plain_text_may_not_hold(text: str) -> None:
    with pytest.raises(BodyError):
        check_body(text, Format.JSON)


def test_what_no_store_can_hold_is_replaced() -> None:
    assert storable("a\x00b\udcffc é") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c é"
    assert storable("as it is") == "as it is"
