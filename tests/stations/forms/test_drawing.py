"""What is read from a form is what was drawn, or it is refused with its place: for every form, value and hand."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from postroom.errors import FieldRefused, FormInvalid
from postroom.model.types import FieldValue, Kind
from postroom.model.xmltext import in_xml
from postroom.stations.forms import filling
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.drawing import Line
from postroom.stations.forms.filling import created, values
from postroom.stations.forms.form import Form, FormField, Rule
from postroom.stations.forms.reader import parse

REPORT = """\
type REPORT
| Title: __________  Day: __________ |
| Body: ____________________________ |
field Title string required
field Day   date   free
field Body  string free
"""
(FORM,) = parse(REPORT, "report.form")
DRAWN = """\
+------------------------------------+
|               REPORT               |
+------------------------------------+
| Title: report____  Day: __________ |
| Body: please call back____________ |
+------------------------------------+
"""


def refusal(drawn: str, form: Form = FORM) -> str:
    with pytest.raises(FormInvalid) as caught:
        form.read(drawn, "input")
    return str(caught.value)


def test_a_wrong_label_is_refused_with_its_place() -> None:
    assert FORM.read(DRAWN) == {"Title": "report", "Body": "please call back"}
    assert "input:5:3: this is no line of the form REPORT, nor below a blank of one; did you mean Body:?" in refusal(
        DRAWN.replace("Body:", "Bdy:")
    )


def test_the_heading_of_another_form_is_refused() -> None:
    assert refusal(DRAWN.replace(" REPORT ", " ORDERS ")).startswith("input:2:17: this is the form 'ORDERS'")


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("| Body: again_____________________ |", "input:7:2: Body appears twice"),
        ("| Body: ____________________________ |", "input:7:2: Body appears twice"),
        ("Body: again", "input:7:7: Body appears twice"),
        ("Title: other", "input:7:8: Title appears twice"),
    ],
)
def test_a_field_that_is_given_twice_is_refused(more: str, where: str) -> None:
    assert refusal(DRAWN + more).startswith(where)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("| Body: please", "| Body please"), "input:5:3"),
        (("back____________ |", "back____________"), "input:5:37: a row of a form ends with a bar"),
        (
            ("+------------------------------------+\n| Title", "+------------------------------------+\nTo| Title"),
            "input:4",
        ),
        (("  Day: __________ |", "  Dag: __________ |"), "input:4:3"),
        (("call back", r"call \x back"), "input:5:21: Body: a backslash is written"),
        (("\n| Body", "\n|  out of place                     |\n| Body"), "input:5:"),
        (("\n| Body", "\n|                         tomorrow   |\n| Body"), "input:5:27: the blank Day is empty above"),
    ],
)
def test_what_is_no_row_of_the_form_is_refused(change: tuple[str, str], where: str) -> None:
    assert DRAWN.count(change[0]) >= 1
    assert refusal(DRAWN.replace(*change, 1)).startswith(where)


def test_a_row_that_an_editor_has_moved_is_read_if_there_is_one_way_to() -> None:
    assert FORM.read("| Title: a long report on rain__________  Day: 2026-01-02 |") == {
        "Title": "a long report on rain",
        "Day": "2026-01-02",
    }
    assert "is this the label Body:" in refusal("| Title: a long report on rain and  Body: x __  Day: 2026-01-02 |")
    assert "is this the label Body:" in refusal("Title: rain Body: wet")


def test_what_stands_beside_a_blank_is_no_part_of_its_value() -> None:
    (form,) = parse("type T\n| Amount: ______ EUR |\n| -- paid -- |\nfield Amount int required", "f")
    drawn = form.shown({"Amount": 12})
    assert "| Amount: 12____ EUR |\n| -- paid -- |" in drawn
    assert form.read(drawn) == {"Amount": "12"}


def test_wrapped_words_dates_and_line_ends_come_back_as_they_were() -> None:
    (form,) = parse(
        "type N\n| Link: ______________ On: ____ |\n| Text: ____________________ |\n"
        "field Link string free\nfield On date free\nfield Text string free",
        "f",
    )
    said: dict[str, FieldValue] = {
        "Link": "https://example.org/a/long/path",
        "On": date(2026, 1, 2),
        "Text": "first line\nsecond\n\nlast  one_",
    }
    drawn = form.shown(said)
    assert form.read(drawn) == {**said, "On": "2026-01-02"}
    assert r"| Text: first line\n________ |" in drawn
    assert drawn.endswith("On: 2026-01-02\n")


# --- all forms and values ---

_NAMES = some.text(string.ascii_letters + " .-_0", min_size=1, max_size=8).filter(
    lambda name: re.fullmatch(r"[A-Za-z]([A-Za-z0-9 .-]*[A-Za-z0-9.-])?", name) is not None and "  " not in name
)
_TEXTS = some.one_of(
    some.text(some.characters().filter(in_xml), max_size=60),
    some.text(" _\\|:+-n,u{}ab\n\t\u00a0\u2028", max_size=40),
    some.lists(some.sampled_from(["A:", "Title:", "a", "bb", "x" * 30, "|", "\\", "+--+"]), max_size=8).map(" ".join),
)
_VALUES: dict[Kind, Any] = {
    Kind.STRING: _TEXTS,
    Kind.INT: some.integers(-(2**63), 2**63 - 1),
    Kind.DECIMAL: some.decimals(allow_nan=False, allow_infinity=False, places=3),
    Kind.FLOAT: some.floats(allow_nan=False, allow_infinity=False),
    Kind.BOOLEAN: some.booleans(),
    Kind.DATE: some.dates(),
    Kind.TIME: some.times(),
    Kind.TIMESTAMP: some.datetimes(),
    Kind.KEY: some.sampled_from(["00001.00001", "12345.54321"]),
}


@some.composite
def filled_forms(draw: Any) -> tuple[Form, dict[str, FieldValue]]:
    names = draw(some.lists(_NAMES, min_size=1, max_size=6, unique_by=lambda name: name.replace(" ", "_")))
    fields, drawn, row = [], [], " "
    said: dict[str, FieldValue] = {}
    for name in names:
        kind, many = draw(some.sampled_from(list(Kind))), draw(some.booleans())
        rule, function = draw(some.sampled_from(list(Rule))), None
        if rule is Rule.AUTOMATIC:
            many, kind = False, draw(some.sampled_from([Kind.KEY, Kind.DATE, Kind.TIME, Kind.STRING]))
            function = "signature" if kind is Kind.STRING else None
        row += f"{name}:{' ' * draw(some.integers(0, 2))}{'_' * draw(some.integers(1, 30))}" + " " * draw(
            some.integers(1, 3)
        )
        if draw(some.booleans()):
            row += draw(some.sampled_from(["", "EUR ", "(all) "]))
            drawn.append(row)
            row = " "
        values = _VALUES[kind]
        value = draw(some.one_of(some.none(), some.lists(values, max_size=4).map(tuple) if many else values))
        if rule is Rule.REQUIRED and is_blank(value):
            rule = Rule.ONCE
        if value not in (None, "", ()) and rule is not Rule.AUTOMATIC:
            said[name] = value
        fields.append(FormField(name, kind, rule, function, many))
    drawn.append(row)
    if draw(some.booleans()):
        drawn.insert(draw(some.integers(0, len(drawn))), draw(some.sampled_from([" -- ", "", " a note: ", " A: x "])))
    return Form("T", tuple(map(Line.of, drawn)), tuple(fields)), said


def is_blank(value: Any) -> bool:
    """Whether a value is none for a field that is required."""
    return all(map(is_blank, value)) if isinstance(value, tuple) else value is None or not str(value).strip()


def automatic(form: Form) -> list[str]:
    return [field.name for field in form.fields if field.rule is Rule.AUTOMATIC]


def _made(form: Form, given: Mapping[str, Any]) -> dict[str, FieldValue]:
    """All that a new message says."""
    body = created(Edition(form, 1), given, 1, "Ann", 0)
    return {name: value for name, value in values(form, body).items() if value not in (None, "", ())}


def _told(form: Form, drawn: str) -> dict[str, FieldValue]:
    """What a message says that is made of a drawing, besides what the system writes."""
    given, _ = filling.drawn(form, drawn, "input")
    made = _made(form, given)
    return {name: value for name, value in made.items() if name not in automatic(form)}


def place(drawn: str, error: FormInvalid) -> str:
    """What stands at the place that a refusal names."""
    match = re.match(r"input:([0-9]+):([0-9]+): ", str(error))
    assert match is not None, error
    return drawn.split("\n")[int(match[1]) - 1][int(match[2]) - 1 :]


def _check_round_trip(pair: tuple[Form, dict[str, FieldValue]]) -> None:
    form, said = pair
    assert _told(form, form.shown(said)) == said
    made = _made(form, said)
    assert made == said | {name: made[name] for name in automatic(form)}
    if automatic(form):
        whole = form.shown(made)
        with pytest.raises(FormInvalid, match="leave it empty") as caught:
            filling.drawn(form, whole, "input")
        assert place(whole, caught.value).startswith(tuple(str(made[name])[0] for name in automatic(form)))


def _check_refusal(pair: tuple[Form, dict[str, FieldValue]]) -> None:
    """A value of another kind, and a required one that is missing, are refused with their places."""
    form, said = pair
    for field in form.fields:
        if field.kind is not Kind.STRING and field.rule is not Rule.AUTOMATIC:
            drawn = form.shown({**said, field.name: "ZZ"})
            with pytest.raises(FormInvalid, match=re.escape(f": {field.name}: ")) as caught:
                filling.drawn(form, drawn, "input")
            assert place(drawn, caught.value).startswith("ZZ")
        if field.rule is Rule.REQUIRED:
            drawn = form.shown({name: value for name, value in said.items() if name != field.name})
            with pytest.raises(FormInvalid, match=re.escape(f": {field.name}: it is required")) as caught:
                filling.drawn(form, drawn, "input")
            assert place(drawn, caught.value).startswith("_")


def _check_mutation(pair: tuple[Form, dict[str, FieldValue]], data: Any) -> None:
    """A drawing with one character changed, left out or put in is refused, or says what it then shows."""
    form, said = pair
    drawn = form.shown(said)
    at = data.draw(some.integers(0, len(drawn) - 1))
    new = data.draw(some.sampled_from([*"aA:_ |+-\\\n", ""]))
    changed = drawn[:at] + new + drawn[at + data.draw(some.integers(0, 1)) :]
    try:
        found = _told(form, changed)
    except (FormInvalid, FieldRefused):
        return
    others = [name for name in {**said, **found} if found.get(name) != said.get(name)]
    assert len(others) <= 1, f"one slip, and {others} say something else"
    assert _told(form, form.shown(found)) == found


QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(filled_forms())
def test_every_form_and_value_is_read_as_it_was_drawn(pair: tuple[Form, dict[str, FieldValue]]) -> None:
    _check_round_trip(pair)


@QUICK
@given(filled_forms())
def test_a_value_that_cannot_stand_in_its_blank_is_refused_with_its_place(pair: tuple[Form, Any]) -> None:
    _check_refusal(pair)


@QUICK
@given(filled_forms(), some.data())
def test_a_drawing_with_one_slip_is_refused_or_read_as_it_is(pair: tuple[Form, Any], data: Any) -> None:
    _check_mutation(pair, data)


@pytest.mark.slow
@LONG
@given(filled_forms())
def test_very_many_forms_and_values_are_read_as_they_were_drawn(pair: tuple[Form, dict[str, FieldValue]]) -> None:
    _check_round_trip(pair)


@pytest.mark.slow
@LONG
@given(filled_forms())
def test_very_many_values_that_cannot_stand_in_their_blanks_are_refused(pair: tuple[Form, Any]) -> None:
    _check_refusal(pair)


@pytest.mark.slow
@LONG
@given(filled_forms(), some.data())
def test_very_many_drawings_with_one_slip_are_refused_or_read_as_they_are(pair: tuple[Form, Any], data: Any) -> None:
    _check_mutation(pair, data)


def test_a_line_without_a_blank_may_be_longer_by_blanks() -> None:
    (form,) = parse("type T\n| please fill in |\n| A: ____ |\nfield A string free", "f")
    drawn = form.shown({"A": "x"})
    assert "please fill in |" in drawn
    assert _told(form, drawn.replace("please fill in |", "please fill in   |")) == {"A": "x"}


def test_moments_keep_their_zone_in_a_drawing() -> None:
    (form,) = parse("type T\n| At: ______________ |\n| When: __ |\nfield At timestamp free\nfield When time free", "f")
    said: dict[str, FieldValue] = {
        "At": datetime.fromisoformat("2026-01-02T03:04:05+02:00"),
        "When": time(1, 2, 3),
    }
    assert _told(form, form.shown(said)) == said
    assert _told(form, form.shown({"At": None})) == {}
