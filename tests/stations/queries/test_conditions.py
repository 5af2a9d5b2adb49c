"""Query by example: what may be written into a field, and which messages it finds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import pytest

from postroom.errors import FormInvalid
from postroom.model.body import json_text
from postroom.model.types import FieldValue, Kind, plain
from postroom.stations.forms.form import FormField, Rule
from postroom.stations.forms.reader import parse as forms
from postroom.stations.queries.conditions import Condition, Sketch, parse, sketch
from postroom.stations.queries.reading import Asked, Plan

FORM = """\
type MEETING ANNOUNCEMENT
| From: ______ Subject: ______ |
| Date: ______ Seats: ___ Fee: ___ |
| Guests: ________________ Open: __ |
field From string required
field Subject string required
field Date date once
field Seats int free
field Fee decimal free
field Guests list of string free
field Open boolean free
"""
MESSAGE: dict[str, FieldValue] = {
    "From": "Fausto",
    "Subject": "office automation",
    "Date": date(1981, 8, 21),
    "Seats": 9,
    "Fee": Decimal("12.50"),
    "Guests": ("Simon", "Dennis"),
    "Open": True,
}


def matches(conditions: Sketch, record: Mapping[str, FieldValue]) -> bool:
    """As a store's reader does it, with the body that a message of these values has."""
    fields = tuple(Asked(name, some[0].kind, False, some) for name, some in conditions.items())
    return Plan("T", fields).matches(json_text({name: plain(value) for name, value in record.items()}))


@pytest.mark.parametrize(
    ("field", "said", "found"),
    [
        ("From", "Fausto", True),
        ("From", '"Fausto"', True),
        ("From", "fausto", False),
        ("From", "<> Fausto", False),
        ("From", "F*o", True),
        ("From", "F?usto", True),
        ("From", '"F*o"', True),
        ("From", '"X*" "F*o"', True),
        ("From", '= "F*o"', False),
        ("From", '<> "F*o"', True),
        ("From", "> E", True),
        ("From", "A..G", True),
        ("Subject", "office automation", True),
        ("Subject", '"distributed database" "office automation"', True),
        ("Subject", '"distributed database" "office"', False),
        ("Subject", "*auto*", True),
        ("Date", ">= 1981-08-01", True),
        ("Date", "1981-08-01..1981-08-21", True),
        ("Date", "1981-08-22..1981-09-01", False),
        ("Seats", ">10", False),
        ("Seats", "9", True),
        ("Seats", "<5 >8", True),
        ("Seats", ">8 <5", True),
        ("Seats", "10..20", False),
        ("Fee", "12.5", True),
        ("Fee", "<12.51", True),
        ("Guests", "Dennis", True),
        ("Guests", "Oscar", False),
        ("Guests", "Si*", True),
        ("Open", "true", True),
        ("Open", "<> true", False),
    ],
)
def test_a_condition_finds_by_the_type_of_its_field(field: str, said: str, found: bool) -> None:
    (form,) = forms(FORM, "f")
    assert matches(sketch(form, {field: said}), MESSAGE) is found


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "ac", True),
        ("a*c", "a", False),
        ("*", "", True),
        ("**b**", "abc", True),
        ("?b?", "abc", True),
        ("?b", "abc", False),
        ("a?*?c", "abc", False),
        ("a*b*a", "aba", True),
        ("a*ba*a", "aba", False),
        ("a*" * 12 + "b", "a" * 60, False),
    ],
)
def test_patterns(pattern: str, value: str, found: bool) -> None:
    field = FormField("F", Kind.STRING, Rule.FREE)
    (condition,) = parse(field, pattern)
    assert condition.holds(value) is found


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("a" + " " * 20_000 + "b", "more than 2000 characters"),
        (" ".join(['"a"'] * 101), "more than 100 conditions"),
        ("hel...", "ends before it begins"),
        ("b..a", "ends before it begins"),
        ("a\0*", "a character that no field has"),
        ("\udcff*", "a character that no field has"),
    ],
)
def test_what_is_no_condition_of_a_text(said: str, what: str) -> None:
    with pytest.raises(FormInvalid, match=what):
        parse(FormField("F", Kind.STRING, Rule.FREE), said)


def test_values_of_python_are_conditions_too() -> None:
    (form,) = forms(FORM, "f")
    assert matches(sketch(form, {"Seats": 9, "Fee": Decimal("12.5"), "Open": True, "Date": date(1981, 8, 21)}), MESSAGE)


def test_several_fields_must_all_agree_and_an_empty_sketch_finds_everything() -> None:
    (form,) = forms(FORM, "f")
    assert matches(sketch(form, {}), MESSAGE)
    assert matches(sketch(form, {"From": " "}), MESSAGE)
    assert matches(sketch(form, {"From": "Fausto", "Seats": ">8"}), MESSAGE)
    assert not matches(sketch(form, {"From": "Fausto", "Seats": ">9"}), MESSAGE)
    assert not matches(sketch(form, {"Date": "<> 1981-01-01"}), {**MESSAGE, "Date": None}), "an empty field is nothing"


@pytest.mark.parametrize(
    ("field", "said", "where", "rule"),
    [
        ("Seats", "many", "field Seats", "condition-type"),
        ("Seats", ">8 < many", "field Seats, character 6", "condition-type"),
        ("Seats", "9*", "field Seats", "condition-type"),
        ("Date", "1981-08-01..", "field Date", "condition-type"),
        ("Date", "Aug. 21", "field Date", "condition-type"),
        ("Seats", ">", "field Seats", "syntax"),
        ("Seats", '"9', "field Seats", "syntax"),
        ("Nobody", "x", "field Nobody", "field-unknown"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(field: str, said: str, where: str, rule: str) -> None:
    (form,) = forms(FORM, "f")
    with pytest.raises(FormInvalid) as caught:
        sketch(form, {field: said})
    (problem,) = caught.value.facts["problems"]
    assert (str(problem.position), problem.rule) == (where, rule)


def test_a_condition_is_shown_as_it_could_be_written() -> None:
    number = FormField("n", Kind.INT, Rule.FREE)
    name = FormField("s", Kind.STRING, Rule.FREE)
    for field, said in ((number, ">= 3"), (number, "1..5"), (name, '<> "rm 211"'), (name, "a*"), (name, r'"6\" \\ 2"')):
        (condition,) = parse(field, said)
        assert parse(field, str(condition)) == (condition,)


@pytest.mark.parametrize("pattern", [f"*{'?' * 1_000}x*", "*a" * 900 + "*x*", f"*{'a' * 1_500}x*"])
def test_a_pattern_is_looked_for_in_a_long_text_at_once(pattern: str) -> None:
    began = time.process_time()
    assert not Condition("~", pattern).holds("a" * 500_000)
    assert time.process_time() - began < 10
