"""Admission to a queue: flows before rules, and neither where nobody asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import postroom
from postroom.errors import EntryRefused, EventInvalid
from postroom.flows.graph.by import By
from postroom.flows.graph.versions import RoomGraphs
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.room.admission import RoomAdmission
from postroom.rules.programs import Programs
from postroom.store.kernel.batch import Put
from postroom.store.kernel.transaction import Transaction

FLOW = "domain d space S : [n: int]"
PROGRAM = """create queue plain kind basic mode persistent
create queue a kind basic mode persistent create property n as xs:integer queue a value //n"""


def admitted(room: Postroom, queue: str, *bodies: object) -> Sequence[Put]:
    admission = RoomAdmission(Programs, RoomGraphs, lambda: By("ann", "here"))

    def work(tx: Transaction) -> Sequence[Put]:
        found = tx.queues.named_to_read(queue)
        assert found is not None
        return admission(tx, found, [Draft.of(body) for body in bodies])

    return room.store.read(work)


def test_each_capability_works_on_what_enters_its_queues(tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(FLOW)
    (tmp_path / "p.demaq").write_text(PROGRAM)
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow", tmp_path / "p.demaq")
        (plain,) = admitted(room, "plain", "as it is")
        assert (plain.draft.body, plain.draft.format) == ("as it is", "text")
        (event,) = admitted(room, "S", "[7]")
        assert (event.draft.body, event.draft.format) == ('{"n":7}', "json")
        with pytest.raises(EventInvalid):
            admitted(room, "S", "[7]", "seven")
        with pytest.raises(EntryRefused):
            admitted(room, "a", {"n": "seven"})
