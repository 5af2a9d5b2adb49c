"""Definitions by version: only what differs is stored, and what is made of them is made once per version."""

from __future__ import annotations

from postroom.model.definitions import Definition, Position
from postroom.room import Postroom
from postroom.stations.versions import ByVersion, load
from postroom.store.kernel.transaction import Transaction

PLACE = Position("f", 1)


def definition(name: str, text: str) -> Definition:
    return Definition("thing", name, {"text": text}, PLACE)


def test_only_what_is_new_or_differs_is_stored(room: Postroom) -> None:
    begun: list[str] = []

    def work(tx: Transaction, *wanted: Definition) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        loaded = load(tx, "thing", wanted, ["f"], "thing ", lambda each: begun.append(each.name))
        return loaded.added, loaded.changed, loaded.kept

    first, second = definition("a", "1"), definition("b", "1")
    assert room.store.transact("load", lambda tx: work(tx, first, second)) == (("thing a", "thing b"), (), ())
    version = room.store.read(lambda tx: tx.definitions.version())
    assert room.store.transact("load", lambda tx: work(tx, first)) == ((), (), ("thing a",))
    assert room.store.read(lambda tx: tx.definitions.version()) == version
    assert room.store.transact("load", lambda tx: work(tx, definition("b", "2"))) == ((), ("thing b",), ())
    assert begun == ["a", "b", "b"]
    texts = room.store.read(lambda tx: {each.name: each.body["text"] for each in tx.definitions.of_kind("thing")})
    assert texts == {"a": "1", "b": "2"}, "what is not named stays"


def test_what_is_made_of_definitions_is_made_once_per_version(room: Postroom) -> None:
    made: list[int] = []

    def make(tx: Transaction) -> int:
        made.append(tx.definitions.version())
        return len(tx.definitions.of_kind("thing"))

    known = ByVersion(make)
    assert [room.store.read(known.now), room.store.read(known.now)] == [0, 0]

    def work(tx: Transaction) -> int:
        load(tx, "thing", [definition("a", "1")], ["f"])
        return known.now(tx)

    assert room.store.transact("load", work) == 1, "a change that is not committed is not remembered"
    assert [room.store.read(known.now), room.store.read(known.now)] == [1, 1]
    assert len(made) == 3
