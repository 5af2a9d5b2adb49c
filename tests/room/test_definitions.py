"""Definitions of a room: loaded, checked, explained and tried out without changing anything by looking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    CollectionUnknown,
    DefinitionUnknown,
    FileUnreadable,
    QueueUnknown,
    XmlMalformed,
)
from postroom.model.definitions import Loaded
from postroom.model.types import Field, MessageType
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_check_counts_and_loads_nothing(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text("01 INPUT-QUEUE (A)\n99\n")
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    assert small.definitions.check(tmp_path / "t.qdl", tmp_path / "g.flow") == 3
    assert small.definitions.catalog() == []
    assert small.definitions.hierarchy() == ""
    small.load(tmp_path / "t.qdl")
    assert [level.name for level in small.definitions.levels()] == ["A"]
    assert list(small.definitions.files()) == ["queues.qdl"]


def test_nothing_is_no_file(small: Postroom, tmp_path: Path) -> None:
    for call in (small.load, small.definitions.check):
        with pytest.raises(ArgumentInvalid, match="give at least one file"):
            call()
    with pytest.raises(FileUnreadable):
        small.definitions.check(tmp_path / "none.flow")


def test_a_type_gets_a_version(small: Postroom) -> None:
    first = small.definitions.define_type(MessageType("ORDER", (Field("Buyer"),)))
    assert small.definitions.define_type(MessageType("ORDER", (Field("Buyer"),))) == first
    assert small.definitions.define_type(MessageType("ORDER", (Field("Buyer"), Field("Price")))) == first + 1


def test_documents_of_a_collection_are_checked_before_they_replace_others(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text("create collection prices")
    small.load(tmp_path / "p.demaq")
    (tmp_path / "good.xml").write_text("<price>1</price>")
    (tmp_path / "bad.xml").write_text("<price>")
    with pytest.raises(XmlMalformed):
        small.definitions.load_collection("prices", tmp_path / "good.xml", tmp_path / "bad.xml")
    version = small.definitions.load_collection("prices", tmp_path / "good.xml")
    assert small.definitions.load_collection("prices", tmp_path / "good.xml") == version
    with pytest.raises(CollectionUnknown):
        small.definitions.load_collection("price", tmp_path / "good.xml")


def test_what_is_not_defined_is_not_explained(small: Postroom) -> None:
    for explain in (small.definitions.explain, small.definitions.explain_arc, small.definitions.explain_procedure):
        with pytest.raises(DefinitionUnknown):
            explain("nothing")


def test_a_dry_run_over_nothing_starts_no_spark(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text("domain d space A : [n: int] space B : [n: int] arc a : A -> B merge")
    assert list(small.definitions.try_out(tmp_path / "g.flow")) == []
    assert small.definitions.catalog() == []


def test_definitions_of_earlier_versions_are_shown_as_files(room: Postroom, tmp_path: Path) -> None:
    """In every language, at every version; what is in force now does not show there."""
    texts = {
        "shop.demaq": "create queue a kind basic mode persistent\n",
        "trading.flow": "domain trading\nspace Trades : [issue: string]\n",
        "memo.form": "type MEMO\n| To: ______ |\nfield To string required\n",
        "tree.qdl": "01 INPUT-QUEUE (CLAIMS)\n99\n",
    }
    more = {
        "shop.demaq": "create queue b kind basic mode persistent\n",
        "trading.flow": "space Other : [issue: string]\n",
        "memo.form": "field Cc string free\n",
        "tree.qdl": "01 INPUT-QUEUE (LETTERS)\n",
    }
    assert room.definitions.versions() == []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    room.stations.add("Jane", "secret")
    room.load(*(tmp_path / name for name in texts))
    before, first = room.definitions.files(), room.definitions.versions(1)[0].version
    for name, text in texts.items():
        added = {"memo.form": text.replace("To: ______", "To: ______ Cc: ______") + more[name]}
        (tmp_path / name).write_text(added.get(name, more[name] + text if name == "tree.qdl" else text + more[name]))
    room.load(*(tmp_path / name for name in texts))
    after = room.definitions.files()
    assert all(before[name] != after[name] for name in before)
    assert room.definitions.files(first) == before
    versions = room.definitions.versions()
    assert [each.version for each in versions] == list(range(versions[0].version, 0, -1))
    assert room.definitions.files(versions[0].version) == after
    assert {"shop.demaq", "memo.form"} <= {Path(file).name for each in versions for file in each.files}
    assert room.definitions.versions(2) == versions[:2]
    for wrong in (-1, versions[0].version + 1):
        with pytest.raises(ArgumentInvalid, match="version"):
            room.definitions.files(wrong)
    with pytest.raises(ArgumentInvalid):
        room.definitions.versions(0)


def test_what_would_change_may_be_refused_before_it_does(url: str, tmp_path: Path) -> None:
    """``agree`` is told all of it; whatever it raises comes out, and the room is as it was."""
    file = tmp_path / "shop.demaq"
    queue = "create queue a kind basic mode persistent\n"
    file.write_text(queue + "create rule r for a if (/x) then do enqueue <y/> into a\n")
    told: list[Loaded] = []

    def refuse(loaded: Loaded) -> None:
        told.append(loaded)
        raise Refused

    with postroom.open(url) as room:
        room.load(file)
        version = room.definitions.versions(1)[0].version
        file.write_text(queue + "create queue b kind basic mode persistent\n")
        with pytest.raises(Refused):
            room.load(file, agree=refuse)
        assert (told[0].removed, told[0].added) == (("rule r",), ("queue b",))
        assert room.definitions.versions(1)[0].version == version
        assert "create rule r" in room.definitions.files()["shop.demaq"].decode()
        with pytest.raises(QueueUnknown):
            room.send("b", "x")
        loaded = room.load(file, agree=told.append)
        assert loaded == told[1]
        assert "create rule r" not in room.definitions.files()["shop.demaq"].decode()


class Refused(Exception):
    """By whoever is asked."""
