"""The type of error messages is a form like others."""

from __future__ import annotations

from postroom.stations.forms.reader import parse
from postroom.stations.procedures.errors import ERROR


def test_the_form_of_errors_passes_the_checks_and_reads_back_as_the_same() -> None:
    (form,) = parse(str(ERROR), "errors.form")
    assert form == ERROR
    assert [field.name for field in form.fields] == [
        "Procedure",
        "KEY",
        "Code",
        "DATE",
        "Description",
        "Messages",
    ]
