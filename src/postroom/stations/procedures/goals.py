"""Where the messages of a working set go, once its destinations are worked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroom.stations.procedures.definitions import Operation, Procedure


class Goal(NamedTuple):
    """Where one message goes."""

    operation: Operation = Operation.LEAVE
    where: str = ""
    delay_seconds: int | None = None

    @property
    def ships(self) -> str | None:
        """The station that it is shipped to at once."""
        return self.where if self.operation is Operation.SHIP and self.delay_seconds is None else None


LEAVE = Goal()


def goals(procedure: Procedure, where: Sequence[str | None]) -> dict[tuple[str, int], Goal]:
    """By sketch and copy; what has no destination stays."""
    return {
        (each.sketch, each.copy): Goal(each.operation, place or "", each.delay_seconds)
        for each, place in zip(procedure.destinations, where, strict=True)
    }
