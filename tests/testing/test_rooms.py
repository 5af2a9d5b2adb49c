"""Rooms of tests: empty, gone afterwards, and by a clock that the test turns."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.errors import ArgumentInvalid
from postroom.testing import HandClock, temporary_room


def test_a_room_is_gone_after_its_block() -> None:
    with temporary_room() as room:
        room.queues.create("q")
        room.send("q", "x")
        folder = Path(room.url).parent
        assert folder.is_dir()
    assert not folder.exists()


def test_the_clock_is_turned_by_hand() -> None:
    clock = HandClock()
    with temporary_room(clock) as room:
        room.queues.create("q")
        room.send("q", "x", delay=3_600)
        assert room.receive("q").message is None
        clock.turn(3_601)
        message = room.receive("q", lease=60).message
        assert message is not None
        assert room.receive("q", lease=60).message is None
        clock.turn(61)
        again = room.receive("q", lease=60).message
        assert again is not None
        assert again.attempts == 2


@pytest.mark.parametrize("seconds", ["x", -1, timedelta(seconds=1), float("nan"), float("inf"), None, True])
def test_a_clock_is_turned_by_seconds_and_never_back(seconds: Any) -> None:
    clock = HandClock(1_000)
    with pytest.raises(ArgumentInvalid, match="seconds"):
        clock.turn(seconds)
    assert clock() == 1_001
    with pytest.raises(ArgumentInvalid, match="microseconds"):
        HandClock(timedelta(seconds=1))  # type: ignore[arg-type]  # as a program may
