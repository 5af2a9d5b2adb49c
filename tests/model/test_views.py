"""The views of one message agree: JSON, XML and lines carry the same record."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyError, BodyMismatch, JsonMalformed, XmlForbidden, XmlMalformed
from postroom.limits import DECIMAL_EXPONENT_MAX
from postroom.model.body import Format, check_body, json_text
from postroom.model.key import key_text
from postroom.model.types import Field, FieldValue, Kind, MessageType, element_name, plain
from postroom.model.views import as_lines, as_tuple, as_xml, lines, record

Record = dict[str, FieldValue]

#: Every character that a field may hold: all that XML has.
FIELD_TEXT = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc"), include_characters="\t\n\r\x7f\x85", exclude_characters="\ufffe\uffff"
    )
    | st.sampled_from("\n\r :"),
    max_size=12,
)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=5, minutes=45))])
#: Decimals as every view writes them: digits and a point.
DECIMALS = (
    st.decimals(allow_nan=False, allow_infinity=False)
    .filter(lambda number: abs(number.adjusted()) <= DECIMAL_EXPONENT_MAX)
    .map(lambda number: Decimal(format(number, "f")))
)


def scalars(kind: Kind, strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return {
        Kind.STRING: strings,
        Kind.INT: st.integers(),
        Kind.DECIMAL: DECIMALS,
        Kind.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
        Kind.BOOLEAN: st.booleans(),
        Kind.DATE: st.dates(),
        Kind.TIME: st.times(timezones=ZONES),
        Kind.TIMESTAMP: st.datetimes(timezones=ZONES),
        Kind.KEY: st.integers(0, 10**12).map(key_text),
    }[kind]


NAMES = st.from_regex(r"[A-Za-z_]([A-Za-z0-9 ._-]{0,6}[A-Za-z0-9._-])?", fullmatch=True)
FIELDS = st.builds(Field, NAMES, st.sampled_from(Kind), st.booleans(), st.booleans())


@st.composite
def typed(draw: st.DrawFn, strings: st.SearchStrategy[str]) -> tuple[MessageType, Record]:
    fields = draw(st.lists(FIELDS, min_size=1, max_size=4, unique_by=lambda field: element_name(field.name)))
    values: Record = {}
    for field in fields:
        each = scalars(field.kind, strings)
        if field.many:
            some = st.lists(each, min_size=1, max_size=3).map(tuple)
        else:
            some = each.filter(lambda value: value != "") if field.required else each
        values[field.name] = draw(some if field.required else st.none() | some)
    return MessageType(draw(NAMES), tuple(fields)), values


def through_json(values: Record, type: MessageType) -> Record:
    body = json_text({name: plain(value) for name, value in values.items()})
    check_body(body, Format.JSON)
    return record(body, Format.JSON, type)


def through_elements(values: Record, type: MessageType) -> Record:
    """JSON by the names that XML has, as events of flows must."""
    body = json_text({field.element: plain(values[field.name]) for field in type.fields})
    return record(body, Format.JSON, type)


def through_xml(values: Record, type: MessageType) -> Record:
    body = as_xml(values, type)
    check_body(body, Format.XML)
    return record(body, Format.XML, type)


def through_lines(values: Record, type: MessageType) -> Record:
    return record("\n".join(as_lines(values)), Format.TEXT, type)


def assert_same(found: Record, values: Record) -> None:
    assert list(found.items()) == list(values.items())
    for one, other in zip(found.values(), values.values(), strict=True):
        # 1 == 1.0 == True and Decimal("1.0") == Decimal("1.00"), so look at more than equality.
        assert type(one) is type(other)
        assert repr(plain(one)) == repr(plain(other))


@settings(deadline=None, max_examples=250)
@given(typed(FIELD_TEXT))
def test_the_same_record_is_read_from_json_xml_and_lines(given_type: tuple[MessageType, Record]) -> None:
    type, values = given_type
    for form in (through_json, through_elements, through_xml, through_lines):
        assert_same(form(values, type), values)


def test_a_name_with_blanks_stands_once_however_it_is_written() -> None:
    type = MessageType("T", (Field("Loss Date"), Field("One")))
    assert record('{"Loss_Date": "a", "One": "b"}', Format.JSON, type) == {"Loss Date": "a", "One": "b"}
    with pytest.raises(BodyMismatch, match="'Loss Date' appears twice"):
        record('{"Loss_Date": "a", "Loss Date": "b"}', Format.JSON, type)


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1f", "\ufffe"])
def test_what_xml_cannot_hold_no_field_holds(character: str) -> None:
    type = MessageType("T", (Field("One"),))
    with pytest.raises(BodyMismatch):
        record(f"One: a{character}", Format.TEXT, type)


@pytest.mark.parametrize(
    "text", ["", " ", "  a  ", "\ta\t", ": a", "a: b", "<a>&amp;", "]]>", "null", "\u2028", "\x85"]
)
def test_awkward_text_is_the_same_in_every_view(text: str) -> None:
    type = MessageType("T", (Field("One"), Field("Many", many=True)))
    values: Record = {"One": text, "Many": (text, "x", text)}
    for form in (through_json, through_xml, through_lines):
        assert_same(form(values, type), values)


# --- examples ----------------------------------------------------------------------------------------------------

TYPE = MessageType(
    "Room Booking",
    (Field("Guest", required=True), Field("Nights", Kind.INT), Field("Extra Bed", Kind.DECIMAL, many=True)),
)
VALUES: Record = {"Guest": "Ann & <Bob>", "Nights": None, "Extra Bed": (Decimal("12.50"), Decimal("0"))}


def test_xml_has_no_element_for_an_empty_field_and_one_for_each_value_of_a_list() -> None:
    assert as_xml(VALUES, TYPE) == (
        "<Room_Booking><Guest>Ann &amp; &lt;Bob&gt;</Guest>"
        "<Extra_Bed>12.50</Extra_Bed><Extra_Bed>0</Extra_Bed></Room_Booking>"
    )


def test_lines_are_field_colon_value() -> None:
    assert as_lines(VALUES) == ["Guest: Ann & <Bob>", "Extra Bed: 12.50", "Extra Bed: 0"]


def test_a_tuple_has_the_values_in_the_order_of_the_fields() -> None:
    assert as_tuple(record('{"Nights": 2, "Guest": "Ann"}', Format.JSON, TYPE)) == ("Ann", 2, None)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("", [""]),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\nb", ["a", "b"]),
        ("\na", ["", "a"]),
        ("a\r\nb\x85\u2028c", ["a\r", "b\x85\u2028c"]),
    ],
)
def test_only_a_newline_ends_a_line_and_a_final_one_starts_no_other(body: str, found: list[str]) -> None:
    assert lines(body) == found


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12), min_size=1))
def test_lines_joined_by_newlines_are_the_same_lines(given_lines: list[str]) -> None:
    assert lines("\n".join(given_lines) + "\n") == given_lines


@pytest.mark.parametrize(
    ("body", "form", "why"),
    [
        ("[]", Format.JSON, "the JSON is not an object"),
        ('"Guest"', Format.JSON, "the JSON is not an object"),
        ('{"Guest": "A", "Room": 1}', Format.JSON, "it has no field 'Room'"),
        ('{"Nights": 1}', Format.JSON, "field 'Guest' is required"),
        ("<Booking/>", Format.XML, "the root element is <Booking>, not <Room_Booking>"),
        ("<Room_Booking xmlns='urn:x'/>", Format.XML, "the root element is <{urn:x}Room_Booking>"),
        ("<Room_Booking><Guest><b>A</b></Guest></Room_Booking>", Format.XML, "<Guest> has more than text inside"),
        ("<Room_Booking><Guest>A</Guest><Guest>B</Guest></Room_Booking>", Format.XML, "field 'Guest' appears twice"),
        ("<Room_Booking><Guest>A</Guest><Pet/></Room_Booking>", Format.XML, "it has no field 'Pet'"),
        ("<Room_Booking/>", Format.XML, "field 'Guest' is required"),
        ("Guest: A\nhello", Format.TEXT, "line 2 is not 'Field: value'"),
        ("Guest: A\nGuest: B", Format.TEXT, "field 'Guest' appears twice"),
        ("Guest: A\nNights: two", Format.TEXT, "field 'Nights' takes a whole number such as 42, not 'two'"),
        ("Guest: A\nExtra_Bed: 1", Format.TEXT, "it has no field 'Extra_Bed'"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_with_the_reason(body: str, form: Format, why: str) -> None:
    with pytest.raises(BodyMismatch) as caught:
        record(body, form, TYPE)
    assert why in str(caught.value)
    assert caught.value.facts["type"] == "Room Booking"


def test_a_body_that_is_not_even_of_its_format_is_refused_as_such() -> None:
    for body, form, error in (
        ("{", Format.JSON, JsonMalformed),
        ("<a>", Format.XML, XmlMalformed),
        ("<!DOCTYPE a><a/>", Format.XML, XmlForbidden),
    ):
        with pytest.raises(error):
            record(body, form, TYPE)


def test_xml_text_may_be_cut_by_comments_and_written_as_cdata() -> None:
    body = "<Room_Booking>\n <Guest>A<!-- c -->n<![CDATA[n<]]></Guest>\n</Room_Booking>\n"
    assert record(body, Format.XML, TYPE)["Guest"] == "Ann<"


# --- gaps --------------------------------------------------------------------------------------------------------

NOTE = MessageType("Note", (Field("Text"), Field("Other")))


def test_a_record_of_empty_fields_reads_back_from_its_lines() -> None:
    assert through_lines({"Text": None, "Other": None}, NOTE) == {"Text": None, "Other": None}


def test_a_carriage_return_reads_back_from_xml() -> None:
    assert_same(through_xml({"Text": "a\r\nb\rc", "Other": None}, NOTE), {"Text": "a\r\nb\rc", "Other": None})


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1f", "\ufffe", "\ud800"])
def test_a_character_that_xml_does_not_have_is_refused_by_the_xml_view(character: str) -> None:
    with pytest.raises(BodyError):
        as_xml({"Text": character, "Other": None}, NOTE)


def test_text_in_one_field_never_reads_back_as_another_field() -> None:
    assert through_lines({"Text": "a\nOther: b", "Other": None}, NOTE)["Other"] is None


def test_a_decimal_keeps_all_its_digits_as_a_json_number() -> None:
    digits = "0.12345678901234567890123"
    type = MessageType("T", (Field("A", Kind.DECIMAL),))
    from_json = record(f'{{"A": {digits}}}', Format.JSON, type)
    assert from_json == record(f"A: {digits}", Format.TEXT, type)
