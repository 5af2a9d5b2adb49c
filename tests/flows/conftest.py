"""Rooms with graphs, and engines that evaluate arcs in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

from postroom.model.definitions import Loaded
from postroom.room import Postroom

Load = Callable[..., Loaded]


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Load:
    """Load a graph from its text."""

    def load(text: str, name: str = "graph.flow", *, drop: bool = False) -> Loaded:
        file = tmp_path / name
        file.write_text(text)
        return room.load(file, drop=drop)

    return load


@pytest.fixture
def run(room: Postroom) -> Callable[..., int]:
    """Work off what waits, each arc by its plain meaning."""
    evaluate_here(room)
    return room.run_until_idle
