"""Rooms for the tests of counters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.counters.claims import furnished

import postroom
from postroom.room import Postroom


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    """North is on a node of its own, Archive on the control node."""
    with postroom.open(url) as room:
        room.stations.add_node("far", str(tmp_path / "far.db"))
        yield furnished(room, "far")


@pytest.fixture
def here(sqlite_url: str) -> Iterator[Postroom]:
    """All in one file, where the store is of no matter."""
    with postroom.open(sqlite_url) as room:
        yield furnished(room, "control")
