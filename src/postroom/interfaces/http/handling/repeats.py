"""Requests that are repeated with their Idempotency-Key: they get the first response again.

For sends and publications the room stores the key with the message. Responses to all other requests are kept in memory
here while the server runs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from postroom.errors import RequestInvalid
from postroom.interfaces.http.handling.responses import Send
from postroom.limits import REPEATS_BYTES_MAX


@dataclass
class _Given:
    """A request with a key, and its response once there is one."""

    digest: bytes
    answer: asyncio.Future[list[dict[str, Any]]]
    parts: list[dict[str, Any]] = field(default_factory=list)
    size: int = 200  # bytes, about


class Repeats:
    """The kept responses; the oldest are dropped first."""

    def __init__(self) -> None:
        self._given: OrderedDict[tuple[str, str], _Given] = OrderedDict()
        self._size = 0

    async def once(self, who: str, key: str, digest: bytes, do: Callable[[Send], Awaitable[None]], send: Send) -> None:
        """Run a request once per key. A refusal changes nothing, so it is not kept."""
        if not 0 < len(key) <= 200:
            raise RequestInvalid(where="Idempotency-Key", why="1 to 200 characters")
        known = self._given.get((who, key))
        if known is None:
            await self._first((who, key), digest, do, send)
            return
        if known.digest != digest:
            raise RequestInvalid(where="Idempotency-Key", why="it was given with another request")
        for part in await asyncio.shield(known.answer):
            await send(part)

    async def _first(
        self, key: tuple[str, str], digest: bytes, do: Callable[[Send], Awaitable[None]], send: Send
    ) -> None:
        given = self._given[key] = _Given(digest, asyncio.get_running_loop().create_future())

        async def recorded(part: dict[str, Any]) -> None:
            given.parts.append(part)
            given.size += len(part.get("body", b""))
            await send(part)

        try:
            await do(recorded)
        except BaseException as error:
            del self._given[key]
            given.answer.set_exception(error if isinstance(error, Exception) else RuntimeError("it was broken off"))
            given.answer.exception()  # nobody may be waiting
            raise
        given.answer.set_result(given.parts)
        self._size += given.size
        while self._size > REPEATS_BYTES_MAX:
            _, oldest = self._given.popitem(last=False)
            self._size -= oldest.size if oldest.answer.done() else 0
