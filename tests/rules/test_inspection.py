"""Looking at what is defined: the catalog, and what a rule became."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.conftest import Load

from postroom.errors import DefinitionUnknown
from postroom.model.types import Field, Kind, MessageType

PROGRAM = """create queue a kind basic mode persistent errorqueue e
create queue b kind basic mode persistent create queue e kind basic mode persistent
create property p as xs:string queue a, b value //p
create slicing s on p
create collection c
create rule one for a if (qs:queue("b")[x = qs:message()/y] and qs:queue("e")) then
  (do enqueue <y/> into b, do enqueue <z/> into b, do enqueue . into e)
create rule two for s errorqueue b if (qs:slice()) then (do reset, do enqueue <y/> into e)
"""


def test_the_catalog_tells_what_is_defined_where_and_since_when(load: Load, tmp_path: Path) -> None:
    room = load(PROGRAM)
    entries = {(each.what, each.name): each for each in room.definitions.catalog()}
    assert [f"{each.what} {each.name}" for each in room.definitions.catalog()] == [
        "module p", "queue a", "queue b", "queue e", "property p", "slicing s", "collection c", "rule one", "rule two",
    ]  # fmt: skip
    rule = entries["rule", "one"]
    assert rule.where == "p.demaq:6:1"
    assert (rule.version, rule.by) == (1, "tester")
    assert rule.since.endswith("Z")
    assert rule.definition["target"] == "a"
    assert rule.definition["body"]["line"] == 6
    assert entries["queue", "a"].definition == {
        "what": "queue", "name": "a", "kind": "basic", "mode": "persistent", "module": "p", "errorqueue": "e",
    } | {key: value for key, value in entries["queue", "a"].definition.items() if key == "priority"}  # fmt: skip
    assert rule.as_dict()["definition"] is rule.definition


def test_other_kinds_of_definitions_are_in_the_catalog_too(load: Load, tmp_path: Path) -> None:
    room = load(PROGRAM)
    room.definitions.define_type(MessageType("order", (Field("n", Kind.INT),)))
    (tmp_path / "t.qdl").write_text("01 INPUT-QUEUE (TREE)\n99")
    room.load(tmp_path / "t.qdl")
    (tmp_path / "c.xml").write_text("<c/>")
    room.definitions.load_collection("c", tmp_path / "c.xml")
    found = {(each.what, each.name): each for each in room.definitions.catalog()}
    assert ("type", "order") in found
    assert ("queue level", "TREE") in found
    master = [each for each in room.definitions.catalog() if each.name == "c" and "documents" in each.definition]
    assert [each.definition for each in master] == [{"files": ["c.xml"], "documents": 1}]


def test_a_changed_definition_has_a_new_version(load: Load) -> None:
    room = load(PROGRAM)
    load(PROGRAM.replace("<z/>", "<zz/>"), room)
    versions = {f"{each.what} {each.name}": each.version for each in room.definitions.catalog()}
    assert versions["rule one"] == 2
    assert set(versions.values()) <= {1, 2}
    assert load("", room, module="other").definitions.catalog()[-1].version == 3


def test_an_explanation_tells_what_a_rule_watches_reads_and_writes(load: Load, tmp_path: Path) -> None:
    room = load(PROGRAM)
    told = room.definitions.explain("one")
    assert (told.rule, told.where, told.target) == ("one", "p.demaq:6:1", "queue a")
    assert told.watches == ("a",)
    assert told.reads == ("index b x by probe a ./y", "the whole queue e")
    assert told.writes == ("b", "e")
    assert told.resets == ()
    assert told.error_queues == ("e", "postroom-errors")
    assert list(told.queries) == ["a"]
    assert "<z/>" in told.queries["a"]


def test_an_explanation_of_a_rule_on_a_slicing_names_all_its_queues(load: Load) -> None:
    told = load(PROGRAM).definitions.explain("two")
    assert told.target == "slicing s"
    assert told.watches == ("a", "b")
    assert told.reads == ("slice s by property p",)
    assert (told.writes, told.resets) == (("e",), ("s",))
    assert told.error_queues[0] == "b"
    assert set(told.as_dict()) == {
        "rule", "where", "target", "watches", "reads", "writes", "resets", "error_queues", "queries", "as_written",
    }  # fmt: skip


def test_a_rule_that_is_not_there_is_told_with_the_nearest(load: Load) -> None:
    with pytest.raises(DefinitionUnknown, match=r"there is no rule onee .*; did you mean one"):
        load(PROGRAM).definitions.explain("onee")


def test_an_empty_room_has_an_empty_catalog(load: Load) -> None:
    assert [each.what for each in load("").definitions.catalog()] == ["module"]


def test_an_explanation_quotes_the_rule_as_it_was_written(load: Load) -> None:
    """Only the query that it became was shown."""
    body = "if (//p   =  (5,\n   6)) then\n    do enqueue <y>{ string( //p ) }</y> into b"
    room = load(
        "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
        f"create rule one for a\n{body}\n"
    )
    told = room.definitions.explain("one")
    assert told.definition == f"create rule one for a\n{body}"
    assert told.as_dict()["as_written"] == told.definition
