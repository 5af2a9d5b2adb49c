"""Clients, machines and sessions for asyncio."""

from __future__ import annotations

import asyncio

import postroom.aio
from postroom.room import Postroom


def test_a_session_and_a_machine_are_awaited(room: Postroom) -> None:
    room.queues.create("q")

    async def main() -> None:
        async with postroom.aio.open(room.url) as again:
            session = await again.queues.session()
            await again.send("q", "x")
            received = await session.receive(("q",))
            assert received.message is not None
            await session.confirm()
            await session.close()
            assert (await again.count("q")).queues[0].processed == 1
            client = await again.client("Oscar")
            assert (client.name, await client.subscriptions()) == ("Oscar", [])

    asyncio.run(main())
