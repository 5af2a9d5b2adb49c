"""Followers: told in order, cut off if they do not read, and nothing is skipped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from postroom.interfaces.http.waiting import events
from postroom.interfaces.http.waiting.events import Changes, Tail, written
from postroom.room import Postroom
from postroom.store.kernel.journal import Event


async def inside(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


def test_followers_are_told_in_order_and_one_that_does_not_read_is_cut_off(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "FOLLOWER_EVENTS_MAX", 3)
    room.queues.create("q")

    async def run() -> tuple[list[str], int]:
        changes = Changes(room, lambda: None)
        tail = Tail(room, changes, inside, lambda: None)
        start = room.journal.last(1)[0].seq
        lazy, busy = tail.follow(start), tail.follow(start)
        told: list[str] = []
        await asyncio.to_thread(room.send, "q", "0")
        for follower in (lazy, busy):
            first = await anext(follower)
            assert first is not None
        told.append("0")
        waiting = asyncio.ensure_future(anext(lazy))
        waiting_busy = asyncio.ensure_future(anext(busy))
        while len([queue for queue in tail._followers if queue._getters]) < 2:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)  # until both listen
        for number in range(1, 8):
            await asyncio.to_thread(room.send, "q", f"{number}")
            event = await asyncio.wait_for(waiting_busy, 10)
            assert event is not None
            assert event.key is not None
            told.append((await asyncio.to_thread(room.show, event.key)).body)
            waiting_busy = asyncio.ensure_future(anext(busy))
        await waiting
        await asyncio.sleep(0.5)
        left = [event async for event in lazy]
        waiting_busy.cancel()
        tail.close()
        await asyncio.to_thread(changes.close)
        return told, len(left)

    told, left = asyncio.run(run())
    assert told == [f"{number}" for number in range(8)]
    assert left == 0, "it has missed some, so it is told no more, and asks again by its last number"


def test_what_comes_behind_a_fresh_gap_waits(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["a", "b", "c"])
    real = room.journal.after(0)

    async def read(some: list[Event]) -> list[int]:
        changes = Changes(room, lambda: None)
        tail = Tail(room, changes, inside, lambda: None)
        tail._gapless = False

        class Pretended:
            def after(self, seq: int) -> list[Event]:
                return some

        tail._journal = Pretended()  # type: ignore[assignment]
        found = await tail._read(some[0].seq - 1)
        tail.close()
        await asyncio.to_thread(changes.close)
        return [event.seq for event in found]

    fresh = [replace(event, time=datetime.now(UTC)) for event in real]
    old = [replace(event, time=datetime(2020, 1, 1, tzinfo=UTC)) for event in real]
    assert asyncio.run(read([fresh[0], fresh[2]])) == [fresh[0].seq]
    assert asyncio.run(read([old[0], old[2]])) == [old[0].seq, old[2].seq]
    assert asyncio.run(read(fresh)) == [event.seq for event in fresh]


def test_a_change_is_told_in_the_loop_and_the_listening_ends(room: Postroom) -> None:
    async def run() -> None:
        seen = threading.Event()
        changes = Changes(room, seen.set)
        armed = changes.arm()
        await asyncio.to_thread(room.queues.create, "q")
        await asyncio.to_thread(room.send, "q", "x")
        await asyncio.wait_for(armed.wait(), 30)
        assert seen.is_set()
        await asyncio.to_thread(changes.close)
        assert not changes._thread.is_alive()

    asyncio.run(run())


def test_an_event_is_written_so_that_it_can_be_resumed(room: Postroom) -> None:
    room.queues.create("q")
    (event,) = room.journal.last(1)
    text = written(event).decode()
    assert text.startswith(f"id: {event.seq}\nevent: {event.verb}\ndata: {{")
    assert text.endswith("\n\n")
    assert written(None) == b": still here\n\n"
    assert "\n" not in written(event, {"body": "a\nid: 9\n\n"}).decode().split("data: ")[1].removesuffix("\n\n")
