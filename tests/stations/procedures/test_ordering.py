"""Actions are ordered by what they are made of."""

from __future__ import annotations

from postroom.stations.procedures.ordering import cycle, ordered

from .office import forms, procedures

TEXT = """\
procedure p at ann
  precondition a : ORDER
  precondition b : BILL
  action x on a
    Status: ?b.Note'
    Team: {team}
  action y on b
    Note: {note}
"""


def test_a_value_comes_after_what_it_is_made_of() -> None:
    (procedure,) = procedures(TEXT.format(team="first", note="?a.Team'"))
    assert [(sketch, line.field) for sketch, line in ordered(procedure, forms())] == [
        ("a", "Team"),
        ("b", "Note"),
        ("a", "Status"),
    ]
    assert cycle(procedure, forms()) is None


def test_where_nothing_else_is_asked_the_order_is_as_written() -> None:
    (procedure,) = procedures(TEXT.format(team="?a.Status", note="x"))
    assert [line.field for _, line in ordered(procedure, forms())] == ["Team", "Note", "Status"]


def test_values_that_are_made_of_one_another_are_named_with_their_place() -> None:
    (procedure,) = procedures(TEXT.format(team="?a.Status'", note="?a.Team'"))
    found = cycle(procedure, forms())
    assert found is not None
    position, way = found
    assert (position.line, way) == (5, "?a.Status' is made of ?b.Note' is made of ?a.Team' is made of ?a.Status'")
