"""A room: its parts, one for each capability, and the common verbs that can be called on the room itself."""

from __future__ import annotations

import inspect
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import postroom
from postroom import Postroom
from postroom.errors import ArgumentInvalid, StoreCorrupt
from postroom.room.opening import Short, broker_name
from postroom.room.parts import RoomPart

NAMES = [
    "access", "consumers", "definitions", "engine", "flows", "gateways", "journal", "operations", "queues", "spheres",
    "stations",
]  # fmt: skip
SHORT = {
    "acknowledge", "backup", "client", "close", "count", "drain", "each", "frame", "load", "peek", "publish", "queue",
    "receive", "receive_many", "run", "run_until_idle", "seen_by", "send", "send_many", "show", "sphere", "station",
    "stop", "stream", "trace", "work", "worker",
}  # fmt: skip


@pytest.fixture
def room(tmp_path: Path) -> Postroom:
    return postroom.open(tmp_path / "room.db")


@pytest.mark.parametrize(
    ("name", "value"), [("clock", 5), ("actor", ""), ("actor", 5), ("broker", ""), ("url", 5), ("url", b"room.db")]
)
def test_what_a_room_is_opened_with_is_checked_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"url": str(tmp_path / "room.db")} | {name: value}
    with pytest.raises(ArgumentInvalid) as refused:
        postroom.open(**given)
    assert refused.value.facts["argument"] == name
    assert list(tmp_path.iterdir()) == []


def test_every_part_of_a_room_is_made_once_when_it_is_asked_for(room: Postroom) -> None:
    assert not set(NAMES) & set(vars(room))
    parts = [getattr(room, name) for name in NAMES]
    assert all(isinstance(part, RoomPart) for part in parts)
    assert {type(part) for part in parts} == set(RoomPart.__subclasses__())
    assert [getattr(room, name) for name in NAMES] == parts


def test_threads_that_ask_at_once_get_the_same_part(room: Postroom) -> None:
    barrier = Barrier(8)

    def asked(_: int) -> object:
        barrier.wait()
        return room._parts.monitor

    with ThreadPoolExecutor(8) as pool:
        assert len({id(monitor) for monitor in pool.map(asked, range(8))}) == 1


def test_the_verbs_of_the_room_itself_are_few_and_known() -> None:
    verbs = {name for name, member in vars(Postroom).items() if isinstance(member, Short) or inspect.isfunction(member)}
    known = {name for name in verbs if not name.startswith("_")}
    assert known == SHORT, "a new method belongs to a part; a common verb is listed here and in the reference"


def test_a_short_verb_is_the_method_of_its_part(room: Postroom) -> None:
    room.queues.create("q")
    key = room.send("q", "hello", properties={"n": 1}).key
    assert room.send == room.queues.send
    assert room.count("q") == room.queues.count("q")
    assert room.queues.receive("q").message.key == key  # type: ignore[union-attr]  # it is there
    assert [event.verb for event in room.trace(key)] == [event.verb for event in room.journal.trace(key)]
    assert room.trace(key, causes=True).as_dict() == room.journal.trace(key, causes=True).as_dict()


def test_every_method_says_what_it_does(room: Postroom) -> None:
    silent = [
        f"{name}.{method}"
        for name in NAMES
        for method, member in inspect.getmembers(type(getattr(room, name)), inspect.isfunction)
        if not method.startswith("_") and not inspect.getdoc(member)
    ]
    assert silent == []


def test_parts_know_what_they_share_and_no_other_part(room: Postroom) -> None:
    for name in NAMES:
        assert type(getattr(room, name)).__bases__ == (RoomPart,), f"{name}: what two parts need is in Parts"


def test_a_room_that_is_closed_twice_is_closed(room: Postroom) -> None:
    room.close()
    room.close()
    with pytest.raises(postroom.PostroomError):
        room.count()


def test_a_room_that_cannot_release_its_locks_is_closed_all_the_same(room: Postroom, tmp_path: Path) -> None:
    """Damage was told by ``close``, and the store, its nodes and its files were left open."""
    room.stations.add_node("north", str(tmp_path / "north.db"))
    north = room._parts.network.store("north")
    room.count()  # one that used no queue has no lock to release
    with closing(sqlite3.connect(tmp_path / "room.db")) as other, other:
        other.execute("ALTER TABLE queues RENAME COLUMN name TO lost")
    with pytest.raises(StoreCorrupt):
        room.close()
    assert room.store.stopped
    assert north.stopped, "nor are its nodes left open"


def test_the_broker_is_the_machine_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_BROKER", "north")
    assert broker_name() == "north"
    monkeypatch.delenv("POSTROOM_BROKER")
    assert broker_name()
