"""Rooms with a program in force, and an engine that evaluates rules in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.room import Postroom

Load = Callable[..., Postroom]


def without_spark(room: Postroom) -> Postroom:
    """A room whose steps are evaluated in this process, and which asks for no session."""
    run = evaluate_here(room)._parts.runner.run
    setattr(room._parts.runner, "run", lambda **options: run(**{**options, "spark": lambda: None}))  # noqa: B010
    return room


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """``load("create …")`` makes a room with the program; ``load("create …", room)`` loads it into one."""
    rooms: list[Postroom] = []

    def load(text: str, room: Postroom | None = None, *, module: str = "p", drop: bool = False) -> Postroom:
        file = tmp_path / f"{module}.demaq"
        file.write_text(text)
        if room is None:
            room = without_spark(postroom.open(tmp_path / f"room{len(rooms)}.db", actor="tester"))
            rooms.append(room)
        room.load(file, drop=drop)
        return room

    yield load
    for room in rooms:
        room.close()
