"""Methods that are awaited have the name, the text and the types of the plain ones; a user's program is checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from postroom.aio.rooms import AsyncConsumers, AsyncQueues
from postroom.room.queues import RoomQueues

PROGRAM = """
import asyncio
import postroom
import postroom.aio

async def main() -> None:
    async with postroom.aio.open("shop.db") as room:
        sent: postroom.Sent = await room.send("orders", {"n": 1}, priority=3)
        received: postroom.Received = await room.receive("orders", wait=5)
        leased = await room.receive("orders", lease=30, where="total > 100")
        if leased.message is not None:
            await leased.message.done()
        async with room.work("orders") as message:
            if message is not None:
                attempts: int = message.attempts
        async for each in room.each("orders"):
            body: str = each.body
        async for seen in room.peek("orders", limit=3):
            key: str = seen.key
        counted: postroom.Accepted = await room.queues.count("orders")
        loaded: postroom.Loaded = await room.load("tree.qdl")
        reveal_type(sent)

asyncio.run(main())
"""
WRONG = """
import postroom.aio

async def main(room: postroom.aio.AsyncRoom) -> None:
    await room.send("orders", "x", colour="red")
    count: int = await room.count("orders")
    await room.receive("orders", wait="long")
    room.send_many(17, [])
"""


def test_methods_keep_their_text() -> None:
    assert AsyncQueues.count.__doc__ == RoomQueues.count.__doc__
    assert AsyncConsumers.policy.__doc__ is not None


@pytest.mark.slow
def test_a_program_of_a_user_is_checked_by_its_types(tmp_path: Path) -> None:
    for name, text in (("good.py", PROGRAM), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "good.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert all(line.startswith("wrong.py") for line in lines), checked.stdout
    assert {int(line.split(":")[1]) for line in lines} == {5, 6, 7, 8}
    (revealed,) = [line for line in checked.stdout.splitlines() if "Revealed type" in line]
    assert "postroom.queues.results.Sent" in revealed
