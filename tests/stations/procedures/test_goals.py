"""Where the messages of a working set go."""

from __future__ import annotations

from postroom.stations.procedures.definitions import Operation
from postroom.stations.procedures.goals import LEAVE, Goal, goals

from .office import procedures

TEXT = """\
procedure p at ann
  precondition a : ORDER
  destination d0 on a copy 0 ship bob
  destination d1 on a copy 1 ship cid after 2 hours
  destination d2 on a copy 2 dossier done
"""


def test_each_copy_has_its_goal_and_only_what_goes_at_once_is_shipped() -> None:
    (procedure,) = procedures(TEXT)
    assert goals(procedure, ["bob", "cid", "done"]) == {
        ("a", 0): Goal(Operation.SHIP, "bob", None, "bob"),
        ("a", 1): Goal(Operation.SHIP, "cid", 7_200, None),
        ("a", 2): Goal(Operation.DOSSIER, "done", None, None),
    }
    assert (LEAVE.operation, LEAVE.ships) == (Operation.LEAVE, None)
