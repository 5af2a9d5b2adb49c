"""Leased messages for asyncio: their ends share commits, and each learns what became of its own."""

from __future__ import annotations

import asyncio

import postroom.aio
from postroom.errors import LeaseOver
from postroom.room import Postroom


def test_ends_share_a_commit_and_a_lost_lease_is_told_to_its_own(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", [str(n) for n in range(20)])

    async def main() -> None:
        async with postroom.aio.open(room.url) as again:
            messages = await again.receive_many("q", count=20)
            assert [message.as_dict()["attempts"] for message in messages] == [1] * 20
            await messages[3].release()
            ended = await asyncio.gather(*(message.done() for message in messages), return_exceptions=True)
            assert [n for n, each in enumerate(ended) if isinstance(each, LeaseOver)] == [3]
            assert [n for n, message in enumerate(messages) if not message.ended] == []
            assert [message.body async for message in again.peek("q")] == ["3"]
            assert [message.body for message in await again.queues.history("q", limit=2)] == ["0", "1"]
            rest = await again.receive_many("q", count=5, wait=1)
            await again.consumers.done_many(rest)
            assert not await again.receive_many("q", count=5)

    asyncio.run(main())
    assert room.journal.verify().differences == ()
