"""The catalog of a room: one entry for each definition, whatever its language."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.model.types import Field, MessageType


def test_every_language_has_its_entries_with_place_version_and_author(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n\n1\n2\n")
    (tmp_path / "g.flow").write_text('domain d space S : [n: int] table t : [n: int] from "t.csv"')
    (tmp_path / "p.demaq").write_text("create queue a kind basic mode persistent")
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        room.definitions.define_type(MessageType("ORDER", (Field("Buyer"),)))
        room.load(tmp_path / "p.demaq", tmp_path / "g.flow")
        entries = {f"{entry.what} {entry.name}": entry for entry in room.definitions.catalog()}
    assert {"queue a", "module p", "domain d", "space S", "table t"} <= entries.keys()
    queue = entries["queue a"].as_dict()
    assert (queue["by"], queue["where"]) == ("ann", "p.demaq:1:1")
    assert queue["version"] == entries["module p"].version > 1
    assert queue["definition"]["mode"] == "persistent"
    assert entries["table t"].definition["rows"] == 2, "rows are told by their number"


def test_what_is_empty_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text("create collection c create queue a kind basic mode persistent")
    (tmp_path / "c.xml").write_text("<c/>")
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "p.demaq")
        room.definitions.load_collection("c", tmp_path / "c.xml")
        found = {(entry.what, entry.name): entry.definition for entry in room.definitions.catalog()}
    assert "schema" not in found["queue", "a"]
    assert any(body == {"files": ["c.xml"], "documents": 1} for body in found.values())
