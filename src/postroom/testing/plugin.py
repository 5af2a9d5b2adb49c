"""Fixtures of pytest: ``room``, and its ``clock``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroom.room import Postroom
from postroom.testing.rooms import HandClock, temporary_room


@pytest.fixture
def clock() -> HandClock:
    """The clock of ``room``; ``clock.turn(60)`` lets a minute pass."""
    return HandClock()


@pytest.fixture
def room(clock: HandClock) -> Iterator[Postroom]:
    """An empty room; ``room.drain()`` lets its workers work until nothing is left."""
    with temporary_room(clock) as opened:
        yield opened
