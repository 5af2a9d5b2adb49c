"""Flow files as a language of a room."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import FileUnreadable, FlowInvalid
from postroom.flows.loading import FlowLanguage

GRAPH = """domain d
space A : [n: int]
space B : [n: int]
table t : [n: int, s: string] from "t.csv"
arc ab : A -> B select [n: > 1]
"""


def written(folder: Path, text: str) -> Path:
    (folder / "t.csv").write_text("n,s\n1,one\n2,two\n")
    (folder / "g.flow").write_text(text)
    return folder / "g.flow"


def test_rows_of_tables_are_read_with_the_file(tmp_path: Path) -> None:
    read = FlowLanguage().read([written(tmp_path, GRAPH)])
    assert read.count == 5
    assert read.rows == {"table t": ((1, "one"), (2, "two"))}


def test_a_graph_is_checked_without_a_room(tmp_path: Path) -> None:
    FlowLanguage().read([written(tmp_path, GRAPH)]).check(None, alone=True)
    bad = FlowLanguage().read([written(tmp_path, GRAPH.replace("-> B", "-> Nowhere"))])
    with pytest.raises(FlowInvalid, match="there is no space Nowhere"):
        bad.check(None, alone=True)


def test_a_table_without_its_file_is_refused_when_it_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, GRAPH)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(FileUnreadable):
        FlowLanguage().read([file])
    with pytest.raises(FlowInvalid, match="table-rows"):
        FlowLanguage().read([written(tmp_path, GRAPH.replace("s: string", "s: {string}"))])


def test_what_came_at_run_time_is_not_printed(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.load(written(tmp_path, GRAPH))
        room.client("desk").subscribe("B")
        printed = room.store.read(FlowLanguage().printed)
    assert sorted(printed) == ["d-t.csv", "d.flow"]
    assert b"desk" not in printed["d.flow"]
    assert b'from "d-t.csv"' in printed["d.flow"]
