"""Rate limits: a token bucket for each caller."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from postroom.errors import TooManyRequests
from postroom.limits import PACES_KNOWN_MAX


class Pace:
    """``rate`` requests a second for everyone, and ``burst`` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # who: how many are left, and when that was

    def take(self, who: str) -> None:
        """Count a request; raises with the time to wait if the bucket is empty."""
        left = self._now(who) - 1
        if left < 0:
            self._refuse(who, left)
        if len(self._left) >= PACES_KNOWN_MAX and who not in self._left:
            self._forget()
        self._left[who] = (left, self._clock())

    def check(self, who: str) -> None:
        """Raise if the bucket is empty; counts nothing."""
        left = self._now(who) - 1
        if left < 0:
            self._refuse(who, left)

    def _now(self, who: str) -> float:
        left, since = self._left.get(who, (self._burst, 0.0))
        return min(self._burst, left + (self._clock() - since) * self._rate)

    def _refuse(self, who: str, left: float) -> None:
        raise TooManyRequests(who=who, seconds=max(1, int(-left / self._rate + 0.999)))

    def _forget(self) -> None:
        """Remove full buckets; if all are in use, the oldest one."""
        self._left = {who: known for who, known in self._left.items() if self._now(who) < self._burst}
        if len(self._left) >= PACES_KNOWN_MAX:
            self._left.pop(next(iter(self._left)))
