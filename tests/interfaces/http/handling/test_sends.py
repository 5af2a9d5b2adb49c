"""Sends of many requests in shared commits."""

from __future__ import annotations

import asyncio
import threading
from time import perf_counter

import pytest

from postroom.errors import PostroomError, QueueUnknown, TooManyRequests
from postroom.interfaces.http.handling import sends
from postroom.interfaces.http.handling.sends import Sends
from postroom.model.message import Draft
from postroom.queues.results import Sent
from postroom.queues.sending import Posting
from postroom.room import Postroom


def wanted(queue: str, body: str) -> Posting:
    return Posting((queue,), Draft.of(body), None, None, "ann")


class HeldBack(threading.Thread):
    """As if a commit took its time: nothing is sent until it is let go."""

    def start(self) -> None:
        pass

    def let_go(self) -> None:
        super().start()


def test_each_send_has_its_own_outcome_and_they_share_commits(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["x"] * 10)
    room.send("q", "y")

    async def run() -> list[Sent | BaseException]:
        batch = Sends(room._parts.verbs, {})
        every = [batch.send(wanted("q", f"{number}")) for number in range(100)]
        outcomes = await asyncio.gather(*every, batch.send(wanted("nowhere", "x")), return_exceptions=True)
        await asyncio.to_thread(batch.close)
        return outcomes

    *sent, refused = asyncio.run(run())
    assert isinstance(refused, QueueUnknown)
    keys = {each.key for each in sent if isinstance(each, Sent)}
    assert len(keys) == 100
    assert [message.body for message in room.peek("q")][11:] == [f"{number}" for number in range(100)], "in their order"


def test_more_than_can_wait_are_refused(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.queues.create("q")
    monkeypatch.setattr(sends, "REQUEST_QUEUE_MAX", 5)
    monkeypatch.setattr(sends, "Thread", HeldBack)

    async def run() -> list[Sent | BaseException]:
        batch = Sends(room._parts.verbs, {})
        every = [asyncio.ensure_future(batch.send(wanted("q", "x"))) for _ in range(8)]
        await asyncio.sleep(0)
        assert isinstance(batch._thread, HeldBack)
        batch._thread.let_go()
        outcomes = await asyncio.gather(*every, return_exceptions=True)
        await asyncio.to_thread(batch.close)
        with pytest.raises(TooManyRequests):
            batch.submit(wanted("q", "x"))
        return outcomes

    outcomes = asyncio.run(run())
    assert [type(each) for each in outcomes] == [Sent] * 5 + [TooManyRequests] * 3
    assert all(each.happened == "no" for each in outcomes if isinstance(each, PostroomError))
    assert room.count("q").queues[0].unprocessed == 5


def test_whoever_goes_on_is_taken_along_and_who_sends_alone_does_not_wait(room: Postroom) -> None:
    """Of many who send again as soon as they have an answer, sooner or later all are in one commit."""
    room.queues.create("q")
    sizes: list[int] = []
    waits: list[float] = []

    async def client(batch: Sends, name: str) -> None:
        for number in range(2_000):
            if 8 in sizes:
                return
            await batch.send(wanted("q", f"{name} {number}"))

    async def run() -> None:
        batch = Sends(room._parts.verbs, {}, lambda messages, _: sizes.append(messages))
        wait = batch._enough.wait

        def noted(seconds: float | None = None) -> bool:
            if seconds is not None:  # for others, and not for anything at all
                waits.append(seconds)
            return wait(seconds)

        batch._enough.wait = noted  # type: ignore[assignment,method-assign]
        for number in range(5):
            await batch.send(wanted("q", f"alone {number}"))
        assert (sizes, waits) == ([1] * 5, [])
        await asyncio.gather(*[client(batch, f"{number}") for number in range(8)])
        await asyncio.to_thread(batch.close)

    asyncio.run(run())
    assert max(sizes) == 8, sizes
    assert sum(sizes) == room.count("q").queues[0].unprocessed


def test_a_commit_waits_at_most_half_of_the_time_of_the_last(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.queues.create("q")
    monkeypatch.setattr(sends, "Thread", HeldBack)

    async def run() -> list[float]:
        batch = Sends(room._parts.verbs, {})
        batch._pending = [(wanted("q", "x"), print)]
        waits: list[float] = []
        batch._enough.wait = waits.append  # type: ignore[assignment,method-assign]
        now = perf_counter()
        for last in (sends._Group(4, 100.0, now), sends._Group(1, 100.0, now), sends._Group(4, 100.0, now - 60.0)):
            batch._last = last
            with batch._lock:
                batch._gather()
        return waits

    (seconds,) = asyncio.run(run())
    assert 0 < seconds <= 50
