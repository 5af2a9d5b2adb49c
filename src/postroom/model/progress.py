"""How long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

#: Is called with how much is done, and of how much. It may raise to end the work.
OnProgress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """For callers who do not ask how much is done."""
