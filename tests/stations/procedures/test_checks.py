"""The checks of procedures: what breaks each rule."""

from __future__ import annotations

import pytest

from postroom.stations.procedures import checks

from .office import forms, procedures

A = "precondition a : ORDER\n"


AB = A + "precondition b : BILL\n"


@pytest.mark.parametrize(
    ("rule", "text", "why"),
    [
        ("procedure-size", "create a : BILL\nNo: 1\n", "it has no precondition"),
        ("procedure-size", "".join(f"precondition a{n} : ORDER\n" for n in range(21)), "21 messages; at most 20"),
        ("sketch-names", A + A, "there are two sketches a"),
        ("sketch-types", "precondition a : ORDRE\n", "there is no type ORDRE; did you mean ORDER?"),
        ("sketch-fields", A + "Itme: x\n", "has no field Itme; did you mean Item?"),
        ("sketch-fields", A + "action x on a\nState: x\n", "has no field State"),
        ("sketch-bound", A + "action x on b\n", "there is no precondition b"),
        ("sketch-bound", A + "origin o on b from x\n", "there is no precondition b"),
        ("sketch-bound", A + "destination d on b copy 0 leave\n", "there is no precondition or create b"),
        ("sketch-bound", A + "action x on a\nStatus: x\naction y on a\nTeam: y\n", "a has an action already"),
        ("sketch-bound", A + "origin x on a from u\norigin y on a from v\n", "a has an origin already"),
        ("reference-bound", A + "No: ?b.No\n", "?b.No: there is no precondition b"),
        ("reference-bound", AB + "No: ?a.Number\n", "type ORDER has no field Number"),
        ("reference-bound", A + "destination d on a copy 0 ship ?a.Where\n", "type ORDER has no field Where"),
        ("condition-value", A + "No: many\n", "takes a whole number"),
        ("join-kind", AB + "No: ?a.Item\n", "No is a int, ?a.Item a string"),
        ("join-kind", AB + "Tags: ?a.Item\n", "a list is not compared"),
        ("origin-stations", A + "origin o on a from x, x\n", "a station is named twice"),
        ("field-fixed", A + "action x on a\nNo: 3\n", "field No is fixed since the message was made"),
        ("field-fixed", A + "action x on a\nKEY: 00001.00001\n", "field KEY is automatic"),
        ("field-fixed", A + "create b : BILL\nNo: 1\nKEY: 00001.00001\n", "field KEY is automatic"),
        ("field-written", A + "action x on a\nTeam: a\nTeam: b\n", "field Team is written 2 times"),
        ("field-written", A + "create b : BILL\nNote: x\n", "field No of b is required"),
        ("value-kind", A + "action x on a\nAmount: much\n", "takes a number"),
        ("value-kind", A + "action x on a\nAmount: ?a.Item\n", "?a.Item is a string, field Amount takes a decimal"),
        ("value-kind", AB + "action x on a\nTeam: ?b.Tags\n", "?b.Tags is a list of string"),
        ("destination-copies", A + "destination d on a copy 2 leave\n", "there is no copy 1"),
        (
            "destination-copies",
            A + "destination d on a copy 0 leave\ndestination e on a copy 0 leave\n",
            "copy 0 of a has a destination already",
        ),
        ("destination-copies", A + "destination d on a copy 101 leave\n", "at most 100 are made"),
        ("destination-value", AB + "destination d on a copy 0 ship ?b.Tags\n", "?b.Tags is a list"),
        ("destination-value", A + f"destination d on a copy 0 dossier {'x' * 201}\n", "at most 200 characters"),
        (
            "action-order",
            AB + "action x on a\nStatus: ?b.Note'\nTeam: ?a.Status'\naction y on b\nNote: ?a.Team'\n",
            "no order of actions: ?a.Status' is made of ?b.Note' is made of ?a.Team' is made of ?a.Status'",
        ),
        ("action-order", A + "action x on a\nStatus: ?a.Status'\n", "?a.Status' is made of ?a.Status'"),
    ],
)
def test_a_rule_says_what_breaks_it(rule: str, text: str, why: str) -> None:
    (procedure,) = procedures("procedure p at x\n" + text)
    found = checks.problems(procedure, forms())
    assert rule in {each.rule for each in found}
    assert any(why in each.what for each in found if each.rule == rule), found
    assert all(each.what.startswith("procedure p: ") for each in found)


def test_every_rule_is_broken_by_some_example() -> None:
    marks = test_a_rule_says_what_breaks_it.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {rule for rule, _, _ in marks} == {check.__name__.replace("_", "-") for check in checks.CHECKS}
