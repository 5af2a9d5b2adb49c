"""Waiting in line: who comes first is served first, and who leaves is passed over."""

from __future__ import annotations

import asyncio

import pytest

from postroom.aio.threads import Threads
from postroom.aio.waiting import Changes, Found, Lines
from postroom.errors import QueueHeld
from postroom.room import Postroom


def test_a_line_serves_in_order_and_passes_over_those_who_left(room: Postroom) -> None:
    stock: list[int] = []
    back: list[int | None] = []

    def look(count: int) -> Found[int | None]:
        taken, stock[:] = stock[:count], stock[count:]
        return Found([*taken], None, 0.01)

    async def main() -> None:
        threads = Threads()
        changes = Changes(room.store, threads)
        lines = Lines(threads, changes)
        line = lines.line("kind", look, back.extend)
        assert await line.next(None) is None
        tasks = [asyncio.create_task(line.next(60)) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert lines.line("kind", look, back.extend) is line
        tasks[1].cancel()
        stock.extend([1, 2, 3])
        assert [await tasks[place] for place in (0, 2, 3)] == [1, 2, 3]
        await asyncio.to_thread(changes.close)
        await asyncio.to_thread(threads.close)

    asyncio.run(main())
    assert back == []


def test_an_obstacle_is_told_to_those_whose_time_is_over(room: Postroom) -> None:
    def look(count: int) -> Found[int | None]:
        raise QueueHeld(queue="q", hold="full", verb="release", level="q")

    async def main() -> None:
        threads = Threads()
        changes = Changes(room.store, threads)
        line = Lines(threads, changes).line("kind", look, lambda items: None)
        patient = asyncio.create_task(line.next(60))
        with pytest.raises(QueueHeld):
            await line.next(None)
        assert not patient.done()
        patient.cancel()
        await asyncio.to_thread(changes.close)
        await asyncio.to_thread(threads.close)

    asyncio.run(main())
