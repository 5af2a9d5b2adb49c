"""Who does something in a graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class By:
    """On whose behalf something is done, and at which broker. ``proven``: they have shown their password."""

    principal: str
    broker: str
    proven: bool = False
