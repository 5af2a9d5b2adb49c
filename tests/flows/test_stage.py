"""The flows' part in a step: which messages, and which graph they meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.engine.steps.stage import Share
from postroom.flows.graph.versions import RoomGraphs
from postroom.flows.stage import FlowStage
from postroom.room import Postroom

GRAPH = """domain d
allow * : disableArc, enableArc
space A : [n: int]
space B : [n: int]
arc ab : A -> B select [n: > 1]
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    (tmp_path / "g.flow").write_text(GRAPH)
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "g.flow")
        yield room


def share(room: Postroom, *waiting: str) -> Share | None:
    return room.store.read(lambda tx: FlowStage(RoomGraphs()).share(tx, waiting))


def test_there_is_no_share_where_nothing_can_flow(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "empty.db") as empty:
        assert share(empty) is None


def test_a_share_has_the_spaces_whose_events_wait(small: Postroom) -> None:
    small.publish("A", "[1]")
    found = share(small)
    assert found is not None
    assert found.version == small.flows.graph().version
    assert set(found.watched.queues) == {"A"}


def test_a_space_that_waits_for_another_or_is_on_hold_has_no_share(small: Postroom) -> None:
    small.queues.set_password("A", password="PW")
    small.publish("A", "[1]")
    assert share(small, "A") is None
    small.queues.disable("A", password="PW")
    assert share(small) is None
    small.queues.enable("A", password="PW")
    assert share(small) is not None
