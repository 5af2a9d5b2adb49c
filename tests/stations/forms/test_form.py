"""Forms as they are drawn: Figs. 2 and 3 of the text, empty, filled in and read again."""

from __future__ import annotations

from datetime import date

from postroom.model.types import FieldValue, Kind
from postroom.stations.forms.form import Rule
from postroom.stations.forms.reader import parse

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


def test_what_is_shown_is_read_again_also_where_it_looks_like_a_label() -> None:
    (form,) = parse(
        "type FEE\n| Payer: ______________ Fee: ____ |\n| Paid: ______________________ |\n"
        "field Payer string required\nfield Fee int free\nfield Paid string free\n",
        "f",
    )
    values: dict[str, FieldValue] = {"Payer": "Fee: 3", "Fee": 12, "Paid": "Payer: no"}
    assert form.read(form.shown(values)) == {"Payer": "Fee: 3", "Fee": "12", "Paid": "Payer: no"}
    assert form.read("Payer: someone Fee: 3") == {"Payer": "someone", "Fee": "3"}
