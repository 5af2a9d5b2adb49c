"""The language of procedures: what is read, what is printed, and what is refused by which rule."""

from __future__ import annotations

import pytest

from postroom.errors import FormInvalid
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import Office, read
from postroom.stations.procedures import checks
from postroom.stations.procedures.catalog import parsed
from postroom.stations.procedures.definitions import Call, Constant, Reference

from .office import TYPES

HOLIDAY = """\
procedure holiday at John
  precondition pre_holiday : ORDER
    Item: "a # in quotes" b*   # a comment
    Amount: > 10
    "type of thing": x
  origin org_holiday on pre_holiday not from Mary, me
  action act_holiday on pre_holiday
    Status: total(?pre_holiday.Amount, "x, y", 3, -2.50, other(), ?pre_holiday.Item')
    Team: Sorry, on holiday till Aug. 30
  create reply : BILL
    No: ?pre_holiday.No
  destination cp0 on pre_holiday copy 0 ship ?pre_holiday.Item after 14 days
  destination cp1 on pre_holiday copy 1 dossier missed
  destination cp2 on reply copy 0 leave
"""


def forms() -> dict[str, Form]:
    return {form.name: form for form in read(TYPES, "f").forms}


def office(text: str) -> Office:
    return read(text, "f")


def test_a_procedure_is_read_and_what_it_prints_is_read_to_the_same() -> None:
    (procedure,) = office(TYPES + HOLIDAY).procedures
    assert (procedure.name, procedure.station) == ("holiday", "John")
    (sketch,) = procedure.preconditions
    assert [(line.field, line.conditions) for line in sketch.lines] == [
        ("Item", '"a # in quotes" b*'),
        ("Amount", "> 10"),
        ("type of thing", "x"),
    ]
    (origin,) = procedure.origins
    assert (origin.stations, origin.refused) == (("Mary", "me"), True)
    first, second = procedure.actions[0].lines
    assert isinstance(first.value, Call)
    amount, text, three, minus, other, item = first.value.arguments
    assert (amount, item) == (Reference("pre_holiday", "Amount"), Reference("pre_holiday", "Item", updated=True))
    assert [text, three, str(minus), other] == [Constant("x, y"), Constant(3), "-2.50", Call("other", ())]
    assert second.value == Constant("Sorry, on holiday till Aug. 30")
    ship, dossier, leave = procedure.destinations
    assert (ship.where, ship.delay_seconds) == (Reference("pre_holiday", "Item"), 14 * 86_400)
    assert (dossier.copy, dossier.where, leave.where) == (1, Constant("missed"), None)
    assert str(sketch.position) == f"f:{TYPES.count(chr(10)) + 2}:3"
    assert parsed(str(procedure), "f") == [procedure]


def test_types_and_procedures_may_stand_in_any_order() -> None:
    both = office("procedure p at x\n precondition a : ORDER\n" + TYPES + "procedure q at x\n precondition a : BILL\n")
    assert [form.name for form in both.forms] == ["ORDER", "BILL"]
    assert [each.name for each in both.procedures] == ["p", "q"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("procedure p", "expected: procedure NAME at STATION"),
        ("precondition p ORDER", "expected: precondition NAME : TYPE"),
        ("action a of p", "expected: action NAME on SKETCH"),
        ("origin o on p Mary", "expected: origin NAME on SKETCH"),
        ("origin o on p from Mary,,me", "a station is missing between commas"),
        ("destination d on p copy x leave", "expected: destination"),
        ("destination d on p copy 0 leave it", "leave has no argument"),
        ("destination d on p copy 0 ship", "ship needs to know where"),
        ("Status: x", "or FIELD: VALUE below"),
    ],
)
def test_a_statement_that_is_none(row: str, why: str) -> None:
    with pytest.raises(FormInvalid, match="syntax") as caught:
        office(f"procedure p at x\n  origin o on p from y\n  {row}\n")
    assert why in str(caught.value)
    assert str(caught.value).startswith("f:3:3:")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("Status", "or FIELD: VALUE below"),
        ("Status:", "field Status is empty"),
        ('Status: "a" b', "nothing is expected behind"),
        ("Status: f(?a.No", "a comma or a closing bracket"),
        ("Status: f(a b, )", "a value is expected at"),
        ("Status: f(?No)", "a reference is ?SKETCH.FIELD"),
        ("Status: " + "f(" * 30 + ")" * 30, "calls inside one another"),
    ],
)
def test_a_value_that_is_none(row: str, why: str) -> None:
    with pytest.raises(FormInvalid) as caught:
        office(f"procedure p at x\n  precondition a : ORDER\n  action b on a\n   {row}\n")
    assert why in str(caught.value)
    assert str(caught.value).startswith("f:4:4:")


def test_a_precondition_compares_with_what_is_there_and_not_with_what_will_be() -> None:
    with pytest.raises(FormInvalid, match="compared with"):
        office("procedure p at x\n  precondition a : ORDER\n    No: ?b.No'\n")


def test_a_name_is_there_once() -> None:
    with pytest.raises(FormInvalid, match="procedure p is already at f:1:1"):
        office("procedure p at x\n precondition a : ORDER\nprocedure p at y\n precondition a : ORDER\n")


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
    (procedure,) = office("procedure p at x\n" + text).procedures
    found = checks.problems(procedure, forms())
    assert rule in {each.rule for each in found}
    assert any(why in each.what for each in found if each.rule == rule), found
    assert all(each.what.startswith("procedure p: ") for each in found)


def test_every_rule_is_broken_by_some_example() -> None:
    marks = test_a_rule_says_what_breaks_it.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {rule for rule, _, _ in marks} == {check.__name__.replace("_", "-") for check in checks.CHECKS}
