"""Definitions are kept by version; a change is one transaction, and the old version can still be read."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import postroom
from postroom.model.definitions import Definition, Position
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import Definitions


def names(tx: Transaction, version: int | None = None) -> list[str]:
    return [definition.name for definition in tx.definitions.of_kind("thing", version)]


def replace(room: Postroom, *wanted: str) -> int:
    definitions = [Definition("thing", name, {"n": name}, Position("f.x", 1, 2)) for name in wanted]
    return room.store.transact("load", lambda tx: tx.definitions.replace("thing", definitions, {"files": ["f.x"]}))


def test_each_change_is_a_version_and_old_versions_stay_readable(room: Postroom) -> None:
    assert room.store.read(lambda tx: tx.definitions.version()) == 0
    assert replace(room, "a", "b") == 1
    assert replace(room, "b", "c") == 2
    assert room.store.read(names) == ["b", "c"]
    assert room.store.read(lambda tx: names(tx, 1)) == ["a", "b"]
    assert room.store.read(lambda tx: names(tx, 0)) == []


def test_loading_the_same_again_makes_no_new_version(room: Postroom) -> None:
    assert replace(room, "a") == 1
    assert replace(room, "a") == 1
    assert [event.verb for event in room.journal.last(10)].count("load") == 1


def test_a_definition_remembers_where_it_was_written(room: Postroom) -> None:
    replace(room, "a")
    (found,) = room.store.read(lambda tx: tx.definitions.of_kind("thing"))
    assert found.position == Position("f.x", 1, 2)
    assert (found.body, found.since) == ({"n": "a"}, 1)


def test_one_definition_can_be_added_or_replaced_alone(room: Postroom) -> None:
    replace(room, "a", "b")
    version = room.store.transact("load", lambda tx: tx.definitions.define(Definition("thing", "a", {"n": "new"}), {}))
    assert version == 2
    found = {one.name: one.body["n"] for one in room.store.read(lambda tx: tx.definitions.of_kind("thing"))}
    assert found == {"a": "new", "b": "b"}


def test_all_definitions_and_versions_are_told_in_their_order(url: str) -> None:
    with postroom.open(url, actor="first") as room:
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("x", "a"), {}))
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("y", "b"), {}))
    with postroom.open(url, actor="second") as room:
        room.store.transact("load", lambda tx: tx.definitions.define(Definition("x", "a", {"n": 1}), {}))
        found = room.store.read(lambda tx: tx.definitions.all())
        versions = room.store.read(lambda tx: tx.definitions.versions())
    assert [(each.kind, each.name, each.since) for each in found] == [("y", "b", 2), ("x", "a", 3)]
    assert [(number, actor) for number, _, actor in versions] == [(1, "first"), (2, "first"), (3, "second")]
    assert sorted(at for _, at, _ in versions) == [at for _, at, _ in versions]


def test_two_who_define_the_same_at_once_leave_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, others = Definitions._rows, list[threading.Thread]()

    def define(body: str) -> None:
        with postroom.open(url) as mine:
            mine.store.transact("load", lambda tx: tx.definitions.define(Definition("thing", "a", {"n": body}), {}))

    def late(definitions: Definitions, kind: str, version: int | None) -> Any:
        found = rows(definitions, kind, version)
        if not others:
            others.append(threading.Thread(target=define, args=("second",)))
            others[0].start()
            others[0].join(2)  # it waits for the first, so that time is over
        return found

    with postroom.open(url) as room:
        monkeypatch.setattr(Definitions, "_rows", late)
        define("first")
        others[0].join()
        now = room.store.read(lambda tx: tx.definitions.of_kind("thing"))
        assert [(definition.name, definition.body) for definition in now] == [("a", {"n": "second"})]
        assert room.store.read(lambda tx: tx.definitions.version()) == 2
