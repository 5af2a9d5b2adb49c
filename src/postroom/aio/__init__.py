"""Rooms for asyncio: what a room has, with ``await``.

``async with postroom.aio.open("shop.db") as room: await room.send("orders", "order 17")``
"""

from __future__ import annotations

from postroom.aio.messages import AsyncLeased, AsyncLeasedMessage, AsyncListing
from postroom.aio.opening import open
from postroom.aio.places import AsyncClient, AsyncSphere, AsyncStation
from postroom.aio.rooms import AsyncQueue, AsyncRoom

__all__ = [
    "AsyncClient",
    "AsyncLeased",
    "AsyncLeasedMessage",
    "AsyncListing",
    "AsyncQueue",
    "AsyncRoom",
    "AsyncSphere",
    "AsyncStation",
    "open",
]
