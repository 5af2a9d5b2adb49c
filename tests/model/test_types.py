"""Message types: names, fields, and the typed values of plain ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyMismatch, TypeInvalid
from postroom.model.types import Field, FieldValue, Kind, MessageType, element_name, plain, text


def one(kind: Kind, *, many: bool = False, required: bool = False) -> MessageType:
    return MessageType("Order", (Field("Value", kind, many, required),))


def read(kind: Kind, given_value: Any, *, many: bool = False, required: bool = False) -> FieldValue:
    return one(kind, many=many, required=required).record({"Value": given_value})["Value"]


def why(kind: Kind, given_value: Any, *, many: bool = False, required: bool = False) -> str:
    with pytest.raises(BodyMismatch) as caught:
        read(kind, given_value, many=many, required=required)
    assert (caught.value.code, caught.value.status, caught.value.facts["type"]) == ("body-mismatch", "50", "Order")
    return str(caught.value.facts["why"])


# --- the type itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "_", "Meeting Date", "a.b-c_d", "x1", "A  B"])
def test_a_name_of_letters_digits_and_inner_blanks_is_taken_and_has_an_xml_name(name: str) -> None:
    type = MessageType(name, (Field(name),))
    assert type.element == type.fields[0].element == element_name(name) == name.replace(" ", "_")


@pytest.mark.parametrize(
    "name", ["", " ", "1a", "-a", ".a", " a", "a ", "a\n", "a:b", "a/b", "a\tb", "é", "<a>", "a\0"]
)
def test_a_name_that_xml_or_lines_could_not_carry_is_refused(name: str) -> None:
    with pytest.raises(TypeInvalid, match="is not a name") as caught:
        MessageType(name, (Field("A"),))
    assert caught.value.code == "type-invalid"
    with pytest.raises(TypeInvalid, match="is not a name"):
        MessageType("T", (Field("A"), Field(name)))


def test_a_type_needs_a_field() -> None:
    with pytest.raises(TypeInvalid, match="at least one field"):
        MessageType("T", ())


@pytest.mark.parametrize("other", ["Meeting Date", "Meeting_Date"])
def test_fields_that_look_alike_in_xml_are_refused(other: str) -> None:
    with pytest.raises(TypeInvalid, match=f"'Meeting Date' and '{other}' are alike"):
        MessageType("T", (Field("Meeting Date"), Field("A"), Field(other)))


def test_a_field_is_an_optional_single_string_unless_said_otherwise() -> None:
    assert Field("A") == Field("A", Kind.STRING, many=False, required=False)


# --- records -----------------------------------------------------------------------------------------------------

TYPE = MessageType("Order", (Field("Number", Kind.INT), Field("Lines", many=True), Field("Note")))


def test_a_record_has_every_field_in_the_order_of_the_type() -> None:
    given_values = {"Note": "quick", "Lines": ["a", "b"]}
    assert list(TYPE.record(given_values).items()) == [("Number", None), ("Lines", ("a", "b")), ("Note", "quick")]


def test_an_unknown_name_is_refused_and_the_known_ones_are_told() -> None:
    with pytest.raises(BodyMismatch, match="it has no field 'Total'; fields are: Lines, Note, Number"):
        TYPE.record({"Number": 1, "Total": 2})


ACCEPTED: list[tuple[Kind, Any, FieldValue]] = [
    (Kind.STRING, " a ", " a "),
    (Kind.INT, 42, 42),
    (Kind.INT, "-42", -42),
    (Kind.INT, 10**30, 10**30),
    (Kind.DECIMAL, "12.50", Decimal("12.50")),
    (Kind.DECIMAL, 12, Decimal(12)),
    (Kind.DECIMAL, 0.1, Decimal("0.1")),
    (Kind.FLOAT, 2, 2.0),
    (Kind.FLOAT, 2.5, 2.5),
    (Kind.FLOAT, "2.5e3", 2500.0),
    (Kind.BOOLEAN, True, True),
    (Kind.BOOLEAN, "false", False),
    (Kind.DATE, "2026-11-30", date(2026, 11, 30)),
    (Kind.TIME, "14:30:00", time(14, 30)),
    (Kind.TIMESTAMP, "2026-11-30T14:30:00Z", datetime(2026, 11, 30, 14, 30, tzinfo=UTC)),
    (Kind.TIMESTAMP, "2026-11-30T16:30:00+02:00", datetime(2026, 11, 30, 14, 30, tzinfo=UTC)),
    (Kind.KEY, "00004.00001", "00004.00001"),
]


@pytest.mark.parametrize(("kind", "given_value", "value"), ACCEPTED)
def test_a_plain_value_becomes_a_typed_one(kind: Kind, given_value: Any, value: FieldValue) -> None:
    for required in (False, True):
        found = read(kind, given_value, required=required)
        assert (found, type(found)) == (value, type(value))
    assert read(kind, [given_value, given_value], many=True) == (value, value)
    assert read(kind, given_value, many=True) == (value,)


REFUSED: dict[Kind, list[Any]] = {
    Kind.STRING: [1, True, 1.5, ["a"], {"a": 1}],
    Kind.INT: ["x", "1.0", 1.0, True, "0x10", [1], {}, "9" * 5000],
    Kind.DECIMAL: ["x", "NaN", "Infinity", "sNaN", "1e", True, float("inf"), [1], {}, "1e9999999999999999999"],
    Kind.FLOAT: ["x", "nan", "inf", "-infinity", "1e999", True, float("nan"), [1.0], {}],
    Kind.BOOLEAN: ["yes", "True", "TRUE", "1", 1, 0, [True], {}],
    Kind.DATE: ["x", "2026-02-30", "30.11.2026", "2026-11-30T00:00", 20261130, [], "\ud800"],
    Kind.TIME: ["x", "25:00", "14:61", 14, "14:30:00 ", {}],
    Kind.TIMESTAMP: ["x", "2026-13-01T00:00:00Z", "tomorrow", 0, {}],
    Kind.KEY: [1, 4.00001, True, ["00004.00001"], {}],
}


@pytest.mark.parametrize(
    ("kind", "bad"), [(kind, bad) for kind, values in REFUSED.items() for bad in values if bad != []]
)
def test_a_value_of_another_kind_is_refused_with_an_example(kind: Kind, bad: Any) -> None:
    said = why(kind, bad)
    assert said.startswith("field 'Value' takes ")
    assert said.endswith(f", not {bad!r}")
    if not isinstance(bad, list):
        assert why(kind, [bad], many=True) == said


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("many", [False, True])
def test_an_empty_field_is_none_and_only_a_single_string_can_be_empty_text(kind: Kind, many: bool) -> None:
    assert read(kind, None, many=many) is None
    assert read(kind, [], many=many) is None
    assert read(kind, "", many=many) == ("" if kind is Kind.STRING and not many else None)
    assert one(kind, many=many).record({}) == {"Value": None}


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("empty", [None, "", []])
def test_a_required_field_may_not_be_empty(kind: Kind, many: bool, empty: Any) -> None:
    assert why(kind, empty, many=many, required=True) == "field 'Value' is required"


def test_null_is_no_element_of_a_list() -> None:
    assert why(Kind.STRING, ["a", None], many=True) == "field 'Value' takes text, not None"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=250)
@given(st.sampled_from(Kind), st.booleans(), st.booleans(), JSON)
def test_any_plain_value_fits_or_is_a_mismatch(kind: Kind, many: bool, required: bool, given_value: Any) -> None:
    type = one(kind, many=many, required=required)
    try:
        record = type.record({"Value": given_value})
    except BodyMismatch:
        return
    assert type.record({"Value": plain(record["Value"])}) == record


# --- plain and text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "in_json", "in_text"),
    [
        (None, None, ""),
        ("a", "a", "a"),
        (True, True, "true"),
        (False, False, "false"),
        (7, 7, "7"),
        (2.5, 2.5, "2.5"),
        (Decimal("12.50"), "12.50", "12.50"),
        (date(2026, 11, 30), "2026-11-30", "2026-11-30"),
        (time(14, 30), "14:30:00", "14:30:00"),
        (datetime(2026, 11, 30, 14, 30, tzinfo=UTC), "2026-11-30T14:30:00+00:00", "2026-11-30T14:30:00+00:00"),
    ],
)
def test_json_says_what_it_can_and_text_says_the_rest(value: FieldValue, in_json: Any, in_text: str) -> None:
    assert (plain(value), type(plain(value))) == (in_json, type(in_json))
    assert text(value) == in_text


def test_a_list_is_plain_when_each_of_its_values_is() -> None:
    assert plain((Decimal("1.0"), Decimal("2"))) == ["1.0", "2"]


def test_a_whole_number_beyond_the_floats_is_a_mismatch() -> None:
    assert why(Kind.FLOAT, 10**400)


def test_a_key_field_takes_only_message_keys() -> None:
    assert why(Kind.KEY, "hello")
