"""Callbacks for the progress of long work."""

from __future__ import annotations

from collections.abc import Callable

#: Is called with how much is done, and of how much. It may raise to end the work.
OnProgress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """A callback that ignores progress."""
