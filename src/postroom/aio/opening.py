"""Opening a room for asyncio: a local one, or one behind a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from functools import partial
from types import TracebackType
from typing import Any

from postroom.aio.rooms import AsyncRoom
from postroom.interfaces.opening import open as open_anywhere
from postroom.model.moment import Clock, system_clock
from postroom.room import Postroom
from postroom.room.opening import resolved


class Opening:
    """A room that is being opened: to be awaited, or entered with ``async with``."""

    def __init__(self, make: Callable[[], Postroom]) -> None:
        self._make = make
        self._room: AsyncRoom | None = None

    def __await__(self) -> Generator[Any, None, AsyncRoom]:
        return self._open().__await__()

    async def _open(self) -> AsyncRoom:
        opening = asyncio.ensure_future(asyncio.to_thread(self._make))
        try:
            room = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)
            raise
        return _room_of(room)

    async def __aenter__(self) -> AsyncRoom:
        self._room = await self._open()
        return self._room

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._room is not None:
            await self._room.close()


def open(
    url: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    owner: str | None = None,
    create: bool = True,
    clock: Clock = system_clock,
    broker: str | None = None,
    token: str | None = None,
) -> Opening:
    """Open a room for asyncio: a SQLite path, a PostgreSQL URL, or the URL of a server; by default ``POSTROOM_URL``,
    else ``./postroom.db``.

    ``async with postroom.aio.open("shop.db") as room:``, or ``room = await postroom.aio.open("shop.db")`` and
    ``await room.close()``. The options are those of ``postroom.open``.
    """
    where = resolved(url)
    options: dict[str, Any] = {"actor": actor, "owner": owner, "create": create, "clock": clock, "broker": broker}
    return Opening(partial(open_anywhere, where, token=token, **options))


def _room_of(room: Postroom) -> AsyncRoom:
    if not room.url.startswith(("http://", "https://")):
        return AsyncRoom(room)
    from postroom.aio.remote import AsyncRemoteRoom  # half a second that a room of this machine needs not

    return AsyncRemoteRoom(room)


def _close_unused(opening: asyncio.Future[Postroom]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
