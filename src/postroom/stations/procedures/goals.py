"""The destinations of the messages of a working set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroom.stations.procedures.definitions import Operation, Procedure


class Goal(NamedTuple):
    """The destination of one message."""

    operation: Operation = Operation.LEAVE
    where: str = ""
    delay_seconds: int | None = None
    ships: str | None = None  # the station that it is shipped to at once


LEAVE = Goal()
Goals = dict[tuple[str, int], Goal]


def goals(procedure: Procedure, where: Sequence[str | None]) -> Goals:
    """The goals by sketch and copy; messages without a destination stay."""
    goals_by_copy = {}
    for destination, place in zip(procedure.destinations, where, strict=True):
        delay = destination.delay_seconds
        ships = place if destination.operation is Operation.SHIP and delay is None else None
        goals_by_copy[destination.sketch, destination.copy] = Goal(destination.operation, place or "", delay, ships)
    return goals_by_copy
