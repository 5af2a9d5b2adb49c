"""Waiting for what another thread or process does."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    ends = monotonic() + seconds
    while not true():
        assert monotonic() < ends, f"not within {seconds} s"
        sleep(0.02)
