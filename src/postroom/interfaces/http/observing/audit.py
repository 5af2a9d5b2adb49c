"""Records refusals in the journal: the first of a kind at once, then counts.

So the number of lines per time is limited.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

from postroom.errors import PostroomError, RightMissing, TokenRefused, TooManyRequests
from postroom.interfaces.http.waiting.events import Inside
from postroom.limits import AUDIT_LINES_MAX, AUDIT_SECONDS
from postroom.room import Postroom
from postroom.room.access import Refusal

#: What is noted. Any other refusal is about what was asked, not about who asks.
NOTED = (RightMissing, TokenRefused, TooManyRequests)


class Audit:
    """Collects refusals in the event loop; a thread writes them."""

    def __init__(self, room: Postroom, inside: Inside) -> None:
        self._room = room
        self._inside = inside
        self._refused: Counter[Refusal] = Counter()
        self._some = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def note(self, error: PostroomError, who: str) -> None:
        """Record a refusal. If there are too many kinds, the rest share one count."""
        verb, object = error.facts.get("verb", "-"), error.facts.get("object", "-")
        refusal = Refusal(who[:100], error.code, str(verb), str(object)[:200])
        if refusal not in self._refused and len(self._refused) >= AUDIT_LINES_MAX - 1:
            refusal = Refusal("-", "several", "-", "-")
        self._refused[refusal] += 1
        self._some.set()

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            await self._flush()
            await asyncio.sleep(AUDIT_SECONDS)

    async def _flush(self) -> None:
        refused, self._refused = self._refused, Counter()
        self._some.clear()
        if refused:
            with suppress(PostroomError):  # a store that takes no lines takes none; the log has them
                await self._inside(partial(self._room.access.note_refusals, refused))

    async def close(self) -> None:
        """Write the remaining counts."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._flush()


def address(scope: Any) -> str:
    """The address of a request's client, without the port."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"
