"""A room: its parts, one for each capability, and the common verbs that can be called on the room itself."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import postroom
from postroom import Postroom
from postroom.room.parts import RoomPart

PARTS = RoomPart.__subclasses__()
KINDS: list[type] = [Postroom, *PARTS]
SHORT = {
    "acknowledge", "backup", "client", "close", "count", "load", "peek", "publish", "queue", "receive", "run",
    "run_until_idle", "send", "send_many", "show", "sphere", "station", "stop", "trace",
}  # fmt: skip


@pytest.fixture
def room(tmp_path: Path) -> Postroom:
    return postroom.open(tmp_path / "room.db")


def test_every_part_of_a_room_is_an_attribute(room: Postroom) -> None:
    attributes = {type(value): name for name, value in vars(room).items() if isinstance(value, RoomPart)}
    assert set(attributes) == set(PARTS)
    assert sorted(attributes.values()) == [
        "definitions", "engine", "flows", "journal", "operations", "queues", "spheres", "stations",
    ]  # fmt: skip


def test_the_verbs_of_the_room_itself_are_few_and_known() -> None:
    verbs = {name for name, member in inspect.getmembers(Postroom, inspect.isfunction) if not name.startswith("_")}
    assert verbs == SHORT, "a new method belongs to a part; a common verb is listed here and in the reference"


def test_a_short_verb_is_the_method_of_its_part(room: Postroom) -> None:
    room.queues.create("q")
    key = room.send("q", "hello", properties={"n": 1}).key
    assert inspect.signature(Postroom.send) == inspect.signature(type(room.queues).send)
    assert room.count("q") == room.queues.count("q")
    assert room.queues.receive("q").message.key == key  # type: ignore[union-attr]  # it is there
    assert [event.verb for event in room.trace(key)] == [event.verb for event in room.journal.trace(key)]
    assert room.trace(key, causes=True).as_dict() == room.journal.trace(key, causes=True).as_dict()


def test_every_method_says_what_it_does() -> None:
    silent = [
        f"{kind.__name__}.{name}"
        for kind in KINDS
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not inspect.getdoc(method)
    ]
    assert silent == []


def test_parts_know_what_they_share_and_no_other_part() -> None:
    for part in PARTS:
        assert part.__bases__ == (RoomPart,), f"{part.__name__}: what two parts need is in Parts"


def test_a_room_that_is_closed_twice_is_closed(room: Postroom) -> None:
    room.close()
    room.close()
    with pytest.raises(postroom.PostroomError):
        room.count()
