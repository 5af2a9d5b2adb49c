"""How fast someone may ask: a bucket of requests for each of them, which fills again with time."""

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
        """One more request; raises if it is one too many, with the time after which there is room again."""
        left = self._now(who) - 1
        if left < 0:
            self._refuse(who, left)
        if len(self._left) >= PACES_KNOWN_MAX and who not in self._left:
            self._forget()
        self._left[who] = (left, self._clock())

    def check(self, who: str) -> None:
        """Raise if there is no room for another one; counts nothing."""
        left = self._now(who) - 1
        if left < 0:
            self._refuse(who, left)

    def _now(self, who: str) -> float:
        left, since = self._left.get(who, (self._burst, 0.0))
        return min(self._burst, left + (self._clock() - since) * self._rate)

    def _refuse(self, who: str, left: float) -> None:
        raise TooManyRequests(who=who, seconds=max(1, int(-left / self._rate + 0.999)))

    def _forget(self) -> None:
        """Whoever has a full bucket needs none; if all are in use, the one that was used first is forgotten."""
        self._left = {who: known for who, known in self._left.items() if self._now(who) < self._burst}
        if len(self._left) >= PACES_KNOWN_MAX:
            self._left.pop(next(iter(self._left)))
