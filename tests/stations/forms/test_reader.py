"""The form language: what is read, and what each check refuses, with its place."""

from __future__ import annotations

import pytest

from postroom.errors import FormInvalid
from postroom.model.types import Kind
from postroom.stations.forms.form import Rule
from postroom.stations.forms.reader import CHECKS, parse, unfinished

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


def test_a_form_that_is_not_finished_is_drawn_as_far_as_it_goes() -> None:
    form = unfinished("type A B\n| No: ___ Odd: ____ |\n| half\nfield No int required\nfield Odd\ntype C\n", "x")
    assert form is not None
    assert (form.name, len(form.lines)) == ("A B", 1)
    assert [(field.name, field.kind, field.rule) for field in form.fields] == [
        ("No", Kind.INT, Rule.REQUIRED),
        ("Odd", Kind.STRING, Rule.FREE),
    ]
    assert unfinished("type A\nfield No int free\n", "x") is None


def test_a_line_that_is_very_long_is_refused_before_blanks_are_looked_for() -> None:
    with pytest.raises(FormInvalid, match="at most 200"):
        parse("type A\n|" + "x" * 500_000 + "|\nfield x string free\n", "x")
