"""Procedures as they are written print themselves, and tell what they are made of."""

from __future__ import annotations

from decimal import Decimal

import pytest

from postroom.stations.procedures.definitions import (
    Call,
    Constant,
    Destination,
    Expression,
    Operation,
    Reference,
    Wanted,
    calls,
    references,
)

from .office import procedures

TEXT = """\
procedure p at ann
  precondition a : ORDER
    "type of thing": x
  action act on a
    Status: f(?a.No, g(?a.Item'))
  create b : BILL
    No: ?a.No
  destination d on a copy 0 ship ?a.Item after 2 hours
"""


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Reference("a", "Item", updated=True), "?a.Item'"),
        (Constant('6" nails'), '"6\\" nails"'),
        (Constant(Decimal("1E-7")), "0.0000001"),
        (Call("f", (Constant(1), Reference("a", "No"))), "f(1, ?a.No)"),
    ],
)
def test_a_value_prints_as_it_is_written(expression: Expression, text: str) -> None:
    assert str(expression) == text


def test_a_value_tells_its_fields_and_functions() -> None:
    inner = Call("g", (Reference("a", "Item", updated=True),))
    value = Call("f", (Reference("a", "No"), inner))
    assert references(value) == [Reference("a", "No"), Reference("a", "Item", updated=True)]
    assert (calls(value), calls(Constant(1))) == (["f", "g"], [])


def test_a_procedure_prints_what_reads_to_the_same() -> None:
    (procedure,) = procedures(TEXT)
    assert procedures(str(procedure)) == (procedure,)
    assert [procedure.type_of(name) for name in "abc"] == ["ORDER", "BILL", None]
    assert [(sketch, line.field) for sketch, line in procedure.writings()] == [("a", "Status"), ("b", "No")]
    assert len(procedure.expressions()) == 3
    assert str(Wanted("type of thing", "x")) == '"type of thing": x'


def test_a_delay_is_counted_in_seconds() -> None:
    assert Destination("d", "a", 0, Operation.SHIP, Constant("bob"), (14, "day")).delay_seconds == 14 * 86_400
    assert Destination("d", "a", 0, Operation.LEAVE).delay_seconds is None
