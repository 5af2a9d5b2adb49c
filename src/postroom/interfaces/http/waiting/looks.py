"""Those who wait for a message look again after a change: a few at a time, and one for all who ask the same.

However many wait, whoever comes with something new is not behind them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from time import monotonic
from typing import Any, NamedTuple

from postroom.limits import WAITERS_LOOK_AT_ONCE


class Quiet(NamedTuple):
    """Nothing was there, and nothing happens before a time, unless something changes."""

    until: float  # by the monotonic clock
    outcome: Any


class Looks:
    """What was looked for since the last change, and not found."""

    def __init__(self, pool: Executor) -> None:
        self.turn = asyncio.Semaphore(WAITERS_LOOK_AT_ONCE)
        self._pool = pool
        self._since: asyncio.Event | None = None
        self._found: dict[Hashable, Quiet] = {}

    async def one(self, work: Callable[[], Any]) -> Any:
        """Have a thread look, in a turn: so what waits for a thread is bounded."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def quiet(self, question: Hashable, since: asyncio.Event, pause: Callable[[], float], outcome: Any) -> Quiet:
        """Note that nothing was there, by a look that began after ``since`` was armed."""
        found = Quiet(monotonic() + await self.one(pause), outcome)
        if self._since is not since:
            self._since, self._found = since, {}
        if question is not None:
            self._found[question] = found
        return found

    def known(self, question: Hashable, since: asyncio.Event) -> Quiet | None:
        """What somebody has noted who has asked the same since then."""
        return self._found.get(question) if self._since is since else None
