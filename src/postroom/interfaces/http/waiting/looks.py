"""Clients that wait for a message look again after a change: a few at a time, and one for all with the same request.

So new requests do not queue behind all waiting ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from time import monotonic
from typing import Any, NamedTuple

from postroom.limits import WAITERS_LOOK_AT_ONCE


class Quiet(NamedTuple):
    """The result of a look: nothing there, and nothing due before a time, unless something changes."""

    until: float  # by the monotonic clock
    outcome: Any


class Looks:
    """The looks since the last change that found nothing."""

    def __init__(self, pool: Executor) -> None:
        self.turn = asyncio.Semaphore(WAITERS_LOOK_AT_ONCE)
        self._pool = pool
        self._since: asyncio.Event | None = None
        self._found: dict[Hashable, Quiet] = {}

    async def one(self, work: Callable[[], Any]) -> Any:
        """Run a look in a thread, in turn, so that few threads wait."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def quiet(self, question: Hashable, since: asyncio.Event, pause: Callable[[], float], outcome: Any) -> Quiet:
        """Note that a look found nothing; it began after ``since`` was armed."""
        quiet = Quiet(monotonic() + await self.one(pause), outcome)
        if self._since is not since:
            self._since, self._found = since, {}
        if question is not None:
            self._found[question] = quiet
        return quiet

    def known(self, question: Hashable, since: asyncio.Event) -> Quiet | None:
        """The noted result of the same request since then."""
        return self._found.get(question) if self._since is since else None
