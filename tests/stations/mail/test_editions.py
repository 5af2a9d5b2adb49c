"""What a message said before it was written on can be read again, on whichever nodes it was written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.stations.world import desk, network

from postroom.errors import ArgumentInvalid, MessageUnknown, NodeDown

HOMES = {"ann": "north", "cid": "control"}


def test_earlier_editions_are_shown_and_traced_over_nodes(url: str, tmp_path: Path) -> None:
    with network(url, tmp_path, {"north": str(tmp_path / "north.db")}, HOMES) as room:
        ann, cid = desk(room, "ann"), desk(room, "cid")
        key = ann.create("NOTE", To="cid", Count=1, Text="first")
        ann.modify(key, Text="second")
        ann.ship(key, "cid")
        cid.get()
        cid.modify(key, Text="third", Count="")
        said = [json.loads(room.show(key, edition).body) for edition in (1, 2, 3)]
        assert [each["Text"] for each in said] == ["first", "second", "third"]
        assert [each.get("Count") for each in said] == [1, 1, None]
        assert room.show(key, 3).body == room.show(key).body
        assert all(not room.show(key, edition).corrupt for edition in (1, 2, 3))
        for edition in (0, 4, -1):
            with pytest.raises(ArgumentInvalid, match=f"{key} has editions 1 to 3"):
                room.show(key, edition)
        told = room.journal.trace_values(key)
        assert [event.event for event in told] == room.trace(key)
        written = [(each.event.verb, each.event.by, each.edition, each.values) for each in told if each.edition]
        assert written == [
            ("create", "ann", 1, {"Count": 1, "KEY": key, "Text": "first", "To": "cid"}),
            ("modify", "ann", 2, {"Text": "second"}),
            ("modify", "cid", 3, {"Text": "third", "Count": None}),
        ]
        with pytest.raises(MessageUnknown):
            room.show("99999.00001", 1)
        with pytest.raises(ArgumentInvalid, match="has edition 1 alone"):
            room.show(cid.create("NOTE", To="x"), 2)
        (tmp_path / "north.db").exists()
    shutil.move(tmp_path / "north.db", tmp_path / "away.db")
    import postroom

    with postroom.open(url) as again, pytest.raises(NodeDown):
        again.show(key, 1)
