"""Rooms on a clock that tests move, and what the doctor says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import postroom
from postroom.diagnosis.finding import Finding, Severity
from postroom.room import Postroom

SECOND = 1_000_000


class HandClock:
    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def timed(url: str, clock: HandClock) -> Iterator[Postroom]:
    with postroom.open(url, clock=clock, actor="tester") as room:
        yield room


Told = Callable[..., list[Finding]]


@pytest.fixture
def told() -> Told:
    """``told(room, "outbox")``: what one check says; nothing else may be a problem, unless it is named too."""

    def told(room: Postroom, check: str, *others: str, deep: bool = False) -> list[Finding]:
        before = _events(room)
        found = room.operations.diagnose(deep=deep)
        assert _events(room) == before, "it changes nothing"
        strange = [each for each in found if each.level.is_problem and each.check not in (check, *others)]
        assert strange == []
        return [each for each in found if each.check == check]

    return told


def _events(room: Postroom) -> list[int]:
    return [event.seq for event in room.journal.last(50) if event.verb != "beat"]


def fine(findings: list[Finding]) -> bool:
    return all(each.level is Severity.OK for each in findings)
