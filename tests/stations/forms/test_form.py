"""Forms as they are drawn: Figs. 2 and 3 of the text, empty, filled in and read again."""

from __future__ import annotations

from datetime import date

import pytest

from postroom.errors import FormInvalid
from postroom.model.types import FieldValue, Kind
from postroom.stations.forms.form import Rule
from postroom.stations.forms.reader import CHECKS, parse

MEETING = """\
type MEETING ANNOUNCEMENT
| To: ______________  KEY: ___________ |
| From: ____________  DATE: __________ |
| Subject: ___________________________ |
| Remarks: ___________________________ |
| Meeting Date: ______________________ |
| Response: __________________________ |
field To           string required        # must be entered at creation, then fixed
field From         string automatic signature
field KEY          key    automatic
field DATE         date   automatic
field Subject      string required
field Remarks      string once            # may be empty; fixed once entered
field Meeting Date date   once
field Response     string free
index To
"""
EMPTY = """\
+--------------------------------------+
|         MEETING ANNOUNCEMENT         |
+--------------------------------------+
| To: ______________  KEY: ___________ |
| From: ____________  DATE: __________ |
| Subject: ___________________________ |
| Remarks: ___________________________ |
| Meeting Date: ______________________ |
| Response: __________________________ |
+--------------------------------------+
"""
FILLED = """\
+--------------------------------------+
|         MEETING ANNOUNCEMENT         |
+--------------------------------------+
| To: Simon_________  KEY: 00004.00001 |
| From: Dennis______  DATE: 1981-08-19 |
| Subject: office automation project__ |
| Remarks: there are a few new________ |
|          features I would like to___ |
|          add to the system__________ |
| Meeting Date: 1981-08-21____________ |
| Response: __________________________ |
+--------------------------------------+
"""
VALUES: dict[str, FieldValue] = {
    "To": "Simon",
    "From": "Dennis",
    "KEY": "00004.00001",
    "DATE": date(1981, 8, 19),
    "Subject": "office automation project",
    "Remarks": "there are a few new features I would like to add to the system",
    "Meeting Date": date(1981, 8, 21),
}


def test_the_template_of_figure_2_is_read_and_drawn_again() -> None:
    (form,) = parse(MEETING, "meeting.form")
    assert form.shown() == EMPTY
    assert [(each.name, each.kind, each.rule, each.function) for each in form.fields][:3] == [
        ("To", Kind.STRING, Rule.REQUIRED, None),
        ("From", Kind.STRING, Rule.AUTOMATIC, "signature"),
        ("KEY", Kind.KEY, Rule.AUTOMATIC, None),
    ]
    assert form.indexes == ("To",)
    assert [field.name for field in form.type.fields if field.required] == ["To", "Subject"]


def test_the_instance_of_figure_3_is_laid_out_as_it_was_drawn() -> None:
    (form,) = parse(MEETING, "meeting.form")
    assert form.shown(VALUES) == FILLED


def test_a_filled_template_is_read_as_it_was_filled_in() -> None:
    (form,) = parse(MEETING, "meeting.form")
    assert form.read(FILLED) == {name: str(value) for name, value in VALUES.items()}
    assert form.read(EMPTY) == {}
    assert form.read('To: Oscar\nSubject: "a" "b"') == {"To": "Oscar", "Subject": '"a" "b"'}


def test_a_form_is_printed_as_text_that_reads_back_as_the_same() -> None:
    (form,) = parse(MEETING, "meeting.form")
    assert parse(str(form), "again") == (form,)


def test_a_field_may_be_a_list() -> None:
    (form,) = parse("type T\n| Names: ____ |\nfield Names list of string free", "f")
    assert form.fields[0].many
    assert form.shown({"Names": ("ann", "bob")}).splitlines()[3:5] == ["| Names: ann, |", "|        bob_ |"]


HEAD = "type T\n| To: __ |\nfield To string required\n"
BROKEN = [
    ("field-twice", "field To string free", "4:1: type T: field To is already defined"),
    ("blank-fields", "| Who: __ |", "1:1: type T: the template has a blank Who, and there is no such field"),
    ("blank-fields", "| To: __ |", "1:1: type T: the blank To is drawn 2 times"),
    ("field-blanks", "field Who string free", "4:1: type T: field Who has no blank in the template"),
    ("automatic-kind", "| A: _ |\nfield A string automatic", "5:1: type T: field A is automatic: say what it is"),
    ("automatic-kind", "| A: _ |\nfield A date automatic signature", "5:1: type T: field A: signature is a string"),
    ("automatic-kind", "| A: _ |\nfield A string free now", "5:1: type T: field A is free, so it has no function now"),
    ("form-size", f"| {'-' * 200} |", "1:1: type T: a line of the template has 202 characters; at most 200"),
    ("index-fields", "index Who", "1:1: type T: there is no field Who to index"),
    ("syntax", "field To", "4:1: field NAME KIND RULE"),
    (
        "syntax",
        "fields To string free",
        "4:1: type, field, index, procedure, counter or a line of a template, not 'fields'",
    ),
    ("syntax", "| To: __", "4:1: a line of a template stands between two bars"),
    ("syntax", "type", "4:1: a type has a name"),
    ("name-twice", "type T\n| To: __ |\nfield To string free", "4:1: type T is already at f:1:1"),
]


@pytest.mark.parametrize(("rule", "more", "why"), BROKEN)
def test_a_check_tells_what_breaks_it_and_where(rule: str, more: str, why: str) -> None:
    with pytest.raises(FormInvalid) as caught:
        parse(HEAD + more, "f")
    (problem,) = caught.value.facts["problems"]
    assert problem.rule == rule
    assert f"{problem.position}: {problem.what}".startswith(f"f:{why}")


def test_a_line_without_a_type_is_refused() -> None:
    for line in ("| A: _ |", "field A string free", "index A"):
        with pytest.raises(FormInvalid, match="begin with type NAME"):
            parse(line, "f")


def test_every_check_has_a_failing_example() -> None:
    assert {check.__name__.replace("_", "-") for check in CHECKS} <= {rule for rule, _, _ in BROKEN}


def test_what_is_shown_is_read_again_also_where_it_looks_like_a_label() -> None:
    (form,) = parse(
        "type FEE\n| Payer: ______________ Fee: ____ |\n| Paid: ______________________ |\n"
        "field Payer string required\nfield Fee int free\nfield Paid string free\n",
        "f",
    )
    values: dict[str, FieldValue] = {"Payer": "Fee: 3", "Fee": 12, "Paid": "Payer: no"}
    assert form.read(form.shown(values)) == {"Payer": "Fee: 3", "Fee": "12", "Paid": "Payer: no"}
    assert form.read("Payer: someone Fee: 3") == {"Payer": "someone", "Fee": "3"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("type A\n", "a type has fields"),
        (
            "type A\n|" + "".join(f" F{n}: _" for n in range(30)) + " |\n" + "field F0 int free\n",
            "characters; at most 200",
        ),
        (
            "type A\n" + "".join(f"| F{n}: _ |\nfield F{n} int free\n" for n in range(201)),
            "201 fields; at most 200",
        ),
    ],
)
def test_a_form_has_a_size(text: str, what: str) -> None:
    with pytest.raises(FormInvalid) as caught:
        parse(text, "f")
    assert [
        problem for problem in caught.value.facts["problems"] if problem.rule == "form-size" and what in problem.what
    ]
