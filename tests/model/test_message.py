"""Drafts and messages: what is said, how it is hashed, and the one JSON shape."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyTooLarge, JsonMalformed, PropertyInvalid, TextInvalid, XmlForbidden, XmlMalformed
from postroom.limits import BODY_BYTES_MAX, PROPERTIES_MAX, PROPERTY_BYTES_MAX
from postroom.model.body import Format
from postroom.model.message import (
    NO_PROPERTIES,
    Draft,
    Stored,
    check_properties,
    message_hash,
    message_hashes,
)

NAMES = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PROPERTIES = st.dictionaries(
    NAMES, st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FINITE | TEXT, max_size=5
)


@pytest.mark.parametrize(
    ("given_body", "format", "body", "stored"),
    [
        ("hello", None, "hello", "text"),
        ("", None, "", "text"),
        ('{"a": 1}', None, '{"a": 1}', "text"),
        ('{"a": 1}', "json", '{"a": 1}', "json"),
        ("<a/>", Format.XML, "<a/>", "xml"),
        ({"a": [1, None]}, None, '{"a":[1,null]}', "json"),
        ([], None, "[]", "json"),
        (None, None, "null", "json"),
        (7, None, "7", "json"),
        ("Grüße".encode(), None, "Grüße", "text"),
        (bytearray(b"<a/>"), "xml", "<a/>", "xml"),
        ({"a": 1}, "text", '{"a":1}', "text"),
    ],
)
def test_a_draft_takes_strings_as_text_bytes_as_utf8_and_values_as_json(
    given_body: Any, format: str | None, body: str, stored: str
) -> None:
    draft = Draft.of(given_body, format)
    assert (draft.body, draft.format, draft.type, draft.properties) == (body, stored, None, NO_PROPERTIES)
    assert type(draft.format) is str


@pytest.mark.parametrize(
    ("body", "format", "error"),
    [
        ("x", "yaml", TextInvalid),
        ({}, "yaml", TextInvalid),
        (b"\xff", None, TextInvalid),
        ("Grüße".encode("latin-1"), "xml", TextInvalid),
        ("<a/>".encode("utf-16"), "xml", TextInvalid),
        ("\ud800", None, TextInvalid),
        ({"a": "\ud800"}, None, TextInvalid),
        ("a\0", None, TextInvalid),
        ("{", "json", JsonMalformed),
        ({"a": float("nan")}, None, JsonMalformed),
        ({"a": object()}, None, JsonMalformed),
        ({1: "a", "1": "b"}, None, JsonMalformed),
        ({"a": 1}, "xml", XmlMalformed),
        ("<!DOCTYPE a><a/>", "xml", XmlForbidden),
        ("x" * (BODY_BYTES_MAX + 1), None, BodyTooLarge),
        (b"x" * (BODY_BYTES_MAX + 1), None, BodyTooLarge),
    ],
)
def test_a_body_that_may_not_enter_makes_no_draft(body: Any, format: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        Draft.of(body, format)
    with pytest.raises(error):
        Draft.many(["fine" if format is None else body, body], format)


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    with pytest.raises(TextInvalid, match="byte 3 is not UTF-8"):
        Draft.of(b"ab\xff")


@settings(deadline=None, max_examples=80)
@given(st.lists(TEXT | st.lists(st.integers(), max_size=3), max_size=5), st.none() | NAMES, PROPERTIES)
def test_many_drafts_are_the_drafts_of_each(bodies: list[Any], type: str | None, properties: dict[str, Any]) -> None:
    assert Draft.many(bodies, None, type, properties) == [Draft.of(body, None, type, properties) for body in bodies]


# --- hashes ------------------------------------------------------------------------------------------------------

DRAFTS = st.builds(
    Draft.of,
    NAMES.map(json.dumps),
    st.sampled_from(["text", "json"]),
    st.none() | NAMES,
    PROPERTIES,
)
SMALL = st.integers(0, 12)
FACTS = st.tuples(SMALL, SMALL, st.none() | SMALL, DRAFTS)


@settings(deadline=None, max_examples=100)
@given(FACTS, FACTS)
def test_two_messages_have_one_hash_only_if_they_are_alike_in_everything(
    one: tuple[int, int, int | None, Draft], other: tuple[int, int, int | None, Draft]
) -> None:
    def hash(facts: tuple[int, int, int | None, Draft]) -> bytes:
        key, created, cause, draft = facts
        return message_hash(key, created, cause, *draft)

    assert len(hash(one)) == 16
    assert hash(one) == hash(one)
    assert (hash(one) == hash(other)) == (one == other)


def test_the_hash_covers_key_time_cause_format_type_properties_and_body() -> None:
    draft = Draft.of("1")
    hashes = [
        message_hash(1, 2, None, *draft),
        message_hash(2, 2, None, *draft),
        message_hash(1, 1, None, *draft),
        message_hash(1, 2, 0, *draft),
        message_hash(12, 2, None, *draft),
        message_hash(1, 22, None, *draft),
        message_hash(1, 2, None, *Draft.of("2")),
        message_hash(1, 2, None, *Draft.of("1", "json")),
        message_hash(1, 2, None, *Draft.of("1", type="T")),
        message_hash(1, 2, None, *Draft.of("1", properties={"a": 1})),
        message_hash(1, 2, None, *Draft.of("1", properties={"a": "1"})),
        message_hash(1, 2, None, *Draft.of("1", properties={"a": True})),
    ]
    assert len(set(hashes)) == len(hashes)


# --- properties --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(PROPERTIES, st.randoms(use_true_random=False))
def test_properties_have_one_canonical_text_in_whatever_order_they_came(
    properties: dict[str, Any], chance: Any
) -> None:
    shuffled = list(properties.items())
    chance.shuffle(shuffled)
    text = check_properties(properties)
    assert check_properties(dict(shuffled)) == text
    assert repr(json.loads(text)) == repr(dict(sorted(properties.items())))


def test_the_canonical_text_is_sorted_tight_and_unescaped() -> None:
    assert check_properties({"b": "é", "a": None, "C d": 1.5}) == '{"C d":1.5,"a":null,"b":"é"}'


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\tb", "a\n", "a\0", "\x7f", "\ud800", "\N{ZERO WIDTH SPACE}", 7, None]
)
def test_a_name_is_printable_text_without_blanks_around_it(name: Any) -> None:
    with pytest.raises(PropertyInvalid, match="a name is printable text") as caught:
        check_properties({"fine": 1, name: 1})
    assert (caught.value.code, caught.value.facts["name"]) == ("property-invalid", name)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "a string, a number"),
        ({}, "a string, a number"),
        (b"x", "a string, a number"),
        (1j, "a string, a number"),
        (datetime(2026, 1, 1, tzinfo=UTC), "a string, a number"),
        ("a\0", "not text"),
        ("\udfff", "not text"),
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        (float("-inf"), "not a finite number"),
    ],
)
def test_a_value_is_one_plain_value_of_json(value: Any, why: str) -> None:
    with pytest.raises(PropertyInvalid, match=why) as caught:
        Draft.of("x", properties={"fine": 1, "bad": value})
    assert caught.value.facts["name"] == "bad"


def test_properties_are_bounded_in_number() -> None:
    most: dict[str, Any] = {f"p{number}": number for number in range(PROPERTIES_MAX)}
    assert len(json.loads(check_properties(most))) == PROPERTIES_MAX
    with pytest.raises(PropertyInvalid, match=f"more than {PROPERTIES_MAX}"):
        check_properties({**most, "more": 0})


def test_a_property_is_bounded_in_size() -> None:
    assert check_properties({"name": "x" * (PROPERTY_BYTES_MAX - 4)})
    with pytest.raises(PropertyInvalid, match=f"more than {PROPERTY_BYTES_MAX} bytes"):
        check_properties({"name": "x" * (PROPERTY_BYTES_MAX - 3)})


# --- messages ----------------------------------------------------------------------------------------------------

CREATED = 1_795_962_600_000_000  # 2026-11-29T14:30:00Z


def stored(body: str = "x", **changes: Any) -> Stored:
    """A sound row, as a store would keep it."""
    row = Stored(100_001, "ORDERS", CREATED, None, None, "text", body, b"", NO_PROPERTIES, None, 1, 1, 1)
    row = row._replace(**changes)
    said = (row.body, row.format, row.type, row.properties)
    return row._replace(hash=message_hash(row.key, row.created, row.cause, *said))


def test_a_message_has_one_json_shape() -> None:
    message = stored("{}", format="json", type="Order", properties='{"vip":true}').message()
    assert json.loads(json.dumps(message.as_dict())) == {
        "key": "00001.00001",
        "queue": "ORDERS",
        "type": "Order",
        "format": "json",
        "body": {},
        "properties": {"vip": True},
        "created": "2026-11-29T14:30:00.000000Z",
        "processed": None,
        "cause": None,
    }
    assert repr(message) == "<message 00001.00001 in ORDERS>"


def test_the_shape_tells_when_a_message_was_processed_and_why_it_exists() -> None:
    shape = stored(cause=100_002, processed=CREATED + 1).message().as_dict()
    assert (shape["processed"], shape["cause"]) == ("2026-11-29T14:30:00.000001Z", "00001.00002")
    assert "corrupt" not in shape


def test_a_damaged_row_shows_where_it_is_and_nothing_that_it_says() -> None:
    row = stored("secret")._replace(body="forged")
    assert not row.sound
    shape = row.image().as_dict()
    assert (shape["key"], shape["queue"], shape["body"], shape["corrupt"]) == ("00001.00001", "ORDERS", "", True)
    assert stored("secret").image().as_dict() == stored("secret").message().as_dict()
    with pytest.raises(TextInvalid, match=r"00001.00001 does not match its hash"):
        Draft.of(row.image())


@pytest.mark.parametrize(
    "change",
    [
        {"key": 100_009},
        {"created": CREATED + 1},
        {"cause": 7},
        {"type": "T"},
        {"format": "json"},
        {"body": "y"},
        {"properties": '{"a":1}'},
        {"hash": b""},
        {"hash": None},
        {"body": "\ud800"},
    ],
)
def test_every_part_of_what_a_message_says_is_hashed(change: dict[str, Any]) -> None:
    assert stored().sound
    assert not stored()._replace(**change).sound


def test_a_segment_stands_in_for_the_body() -> None:
    message = stored("a\nb").message(body="a")
    assert (message.body, message.processed) == ("a", None)
    assert stored("a\nb").message(processed=CREATED, body="b").processed is not None


def test_the_hashes_of_a_batch_are_those_of_its_messages() -> None:
    drafts = [Draft.of("a"), Draft.of({"b": 1}), Draft.of("c", type="T"), Draft.of("d", properties={"e": 1})]
    keys = range(5, 9)
    single = [message_hash(key, 17, 3, *draft) for key, draft in zip(keys, drafts, strict=True)]
    assert list(message_hashes(keys, 17, 3, drafts)) == single
    assert len(set(single)) == 4


def test_the_shape_is_a_copy() -> None:
    message = stored(properties='{"a":1}').message()
    message.as_dict()["properties"]["a"] = 2
    assert message.properties == {"a": 1}


def test_a_message_cannot_be_changed() -> None:
    message = stored().message()
    with pytest.raises(AttributeError):
        message.body = "y"  # type: ignore[misc]  # what mypy refuses must also fail at run time


def test_messages_are_equal_when_they_say_the_same() -> None:
    assert stored().message() == stored().message()
    assert stored().message() != stored("y").message()
    assert stored().message() != "x"
    assert len({stored().message(), stored().message()}) == 1


def test_a_whole_number_of_too_many_digits_is_an_invalid_property() -> None:
    with pytest.raises(PropertyInvalid):
        check_properties({"a": 10**5000})


def test_the_size_of_a_property_counts_bytes() -> None:
    with pytest.raises(PropertyInvalid):
        check_properties({"a": "é" * (PROPERTY_BYTES_MAX - 1)})


def test_processed_is_a_time_and_nothing_else() -> None:
    processed = stored("a").message(processed=CREATED).processed
    assert type(processed) is datetime
    assert not callable(processed)
