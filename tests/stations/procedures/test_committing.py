"""The end of a step: what is written in one commit, what the journal says of it, and what is left where."""

from __future__ import annotations

import json
from pathlib import Path

from tests.stations.world import desk

from postroom.stations.procedures import committing
from postroom.stations.procedures.errors import DOSSIER, ERROR

from .office import about, office, run, stored

TEXT = """\
procedure pair at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
  action act on order
    Status: paid
  destination d0 on order copy 0 ship bob
  destination d1 on order copy 1 dossier copies
  destination d2 on bill copy 0 leave
"""


def test_one_commit_writes_moves_and_makes(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, TEXT) as room:
        ann, bob = desk(room, "ann"), desk(room, "bob")
        order, bill = ann.create("ORDER", No=1, Item="x"), ann.create("BILL", No=1)
        run(room)
        assert bob.get() == [order]
        assert bob.show(order).fields["Status"] == "paid"
        (copy,) = [image.key for image in ann.dossier("copies")]
        shipped = next(event for event in room.trace(order) if event.verb == "ship")
        assert (shipped.by, shipped.detail) == (
            "procedure pair",
            {"procedure": "pair", "with": [bill], "fields": ["Status"], "made": [copy], "from": "ann", "to": "bob"},
        )
        (left,) = [event for event in room.trace(bill) if event.verb == "leave"]
        assert left.detail == {"procedure": "pair", "with": [order], "made": [copy]}
        assert (about(room, bill).handled, about(room, bill).depth) == (("pair",), about(room, order).depth)
        assert stored(room, copy).cause == int(bill.replace(".", "")), "the message that has completed the set"
        assert room.journal.verify().differences == ()


def test_an_error_is_a_message_in_a_dossier_of_its_station(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, TEXT) as room:
        ann = desk(room, "ann")
        order = ann.create("ORDER", No=1)

        def work(tx: object) -> int:
            form = room._parts.network.forms.now(tx).get(ERROR.name)  # type: ignore[arg-type]
            return committing.tell(tx, "ann", "pair", "PP0001", "x" * 3_000, [order], form, 4)  # type: ignore[arg-type]

        room.store.transact("procedure", work)
        (image,) = ann.dossier(DOSSIER)
        fields = image.fields
        assert (fields["Procedure"], fields["Code"], fields["Messages"]) == ("pair", "PP0001", (order,))
        assert len(str(fields["Description"])) == 2_000
        assert about(room, image.key).depth == 4
        assert room.show(image.key).cause == order
        assert json.loads(stored(room, image.key).body)["KEY"] == image.key
