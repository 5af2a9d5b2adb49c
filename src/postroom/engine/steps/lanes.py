"""The steps of one stage that are under way at a time.

Usually there is one chain of steps. While a step takes long, its chain keeps the queues that it has taken from, and
another chain goes on with all other queues.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from postroom.engine.steps.stage import Beside, Entangled, Result
from postroom.limits import LANE_SECONDS, LANES_MAX

#: Begins a chain of steps beside others; None if there is nothing to do.
Begin = Callable[[Beside], Generator[Result] | None]


@dataclass
class _Lane:
    """A chain of steps, and the queues that its long step has taken from; none while no step is long."""

    chain: Generator[Result]
    busy: Result | None = None


class Lanes:
    """Runs the next step of any chain that is ready."""

    def __init__(self, seconds: float | None = LANE_SECONDS) -> None:
        self._seconds = seconds  # after which a step is left apart
        self._lanes: deque[_Lane] = deque()
        self._others_next = False
        self._alone = False  # whether the next chain is to have the stage for itself

    @property
    def busy(self) -> bool:
        """Whether a step is being evaluated."""
        return bool(self._lanes)

    def next(self, begin: Begin) -> Result | None:
        """The result of the next step; None if nothing is ready. Raises ``Stale`` like the steps."""
        if self._others_next:  # whoever is apart and has much to do does not keep others waiting
            self._others_next = False
            result = self._fresh(begin)
            if result is not None:
                return result
        for _ in range(len(self._lanes)):
            lane = self._lanes.popleft()
            try:
                result = next(lane.chain, None)
            except Entangled:  # those beside it may not have seen what it did: once more, with nothing beside it
                self._alone = True
                raise
            if result is None:
                continue
            self._lanes.append(lane)  # behind the others, and behind a new one: all get their turn
            lane.busy = result if result.busy else lane.busy
            if not result.busy:
                self._others_next = lane.busy is not None
                return result
        return self._fresh(begin)

    def _fresh(self, begin: Begin) -> Result | None:
        taken = [lane.busy for lane in self._lanes if lane.busy is not None]
        if len(taken) < len(self._lanes) or len(taken) >= LANES_MAX or (taken and self._alone):
            return None
        queues = frozenset().union(*(step.busy for step in taken))
        beside = Beside(queues, any(step.reads for step in taken), None if self._alone else self._seconds)
        chain = begin(beside)
        result = None if chain is None else next(chain, None)
        if chain is None or result is None:
            return None
        self._alone = False
        self._lanes.append(_Lane(chain, result if result.busy else None))
        return None if result.busy else result

    def close(self) -> None:
        """Cancel running steps; nothing uncommitted has happened."""
        for lane in self._lanes:
            lane.chain.close()
        self._lanes.clear()
