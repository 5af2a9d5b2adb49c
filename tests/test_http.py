"""A room as an application that others mount."""

from __future__ import annotations

import anyio
import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

import postroom
import postroom.http


def test_a_room_is_mounted_below_a_path(sqlite_url: str) -> None:
    async def ask() -> tuple[int, int]:
        app = postroom.http.app(room)
        whole = Starlette(routes=[Mount("/room", app=app)])
        transport = httpx.ASGITransport(whole)
        async with httpx.AsyncClient(transport=transport, base_url="http://x/room") as client:
            headers = {"authorization": f"Bearer {token}"}
            found = await client.get("/queues", headers=headers)
            refused = await client.get("/queues")
        await app.stop()
        return found.status_code, refused.status_code

    with postroom.open(sqlite_url) as room:
        room.flows.add_principal("ann", "secret")
        room.access.grant("ann", "look")
        token = room.access.create_token("ann", "x")
        assert anyio.run(ask) == (200, 401)
