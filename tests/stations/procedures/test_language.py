"""The language of procedures: what is read, what is printed, and what is refused."""

from __future__ import annotations

import pytest

from postroom.errors import FormInvalid
from postroom.stations.office import Office, read
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
