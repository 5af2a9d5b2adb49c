"""A procedure explains itself, and working sets that wait tell for what."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import desk

from postroom.errors import DefinitionUnknown

from .office import office, run

TEXT = """\
procedure pair at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
    Amount: >= ?order.Amount
  action act on order
    Status: ?bill.Note
  destination d on order copy 0 ship bob
"""


def test_explain_tells_the_join_graph_and_the_searches(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, TEXT) as room:
        told = room.definitions.explain_procedure("pair").as_dict()
        assert (told["procedure"], told["station"], told["state"]) == ("pair", "ann", "enabled")
        assert told["joins"] == ["bill.No = order.No", "bill.Amount >= order.Amount"]
        assert told["searches"] == [
            "when order comes: bill by No, if Amount >= ?order.Amount",
            "when bill comes: order by No, if Amount <= ?bill.Amount",
        ]
        assert told["order"] == ["?order.Status' is ?bill.Note"]


def test_a_set_that_waits_tells_what_it_has_and_wants(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, TEXT) as room:
        key = desk(room, "ann").create("ORDER", No=7, Amount=3)
        assert room.stations.waiting() == [], "nobody has looked yet"
        run(room)
        (waiting,) = room.stations.waiting()
        assert (waiting.procedure, waiting.has) == ("pair", {"order": key})
        assert waiting.wants == {"bill": "BILL with No = 7, Amount >= 3"}
        assert waiting.lacks == {"bill": ("BILL", {"No": "= 7", "Amount": ">= 3"})}
        assert "lacks" not in waiting.as_dict()
        assert room.stations.waiting("pair").as_dict()["missing"] == []
        with pytest.raises(DefinitionUnknown, match="there is no procedure pear"):
            room.stations.waiting("pear")
