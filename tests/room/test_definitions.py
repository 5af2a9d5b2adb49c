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
    XmlMalformed,
)
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
