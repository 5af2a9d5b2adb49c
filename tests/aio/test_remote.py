"""A room behind a server, for asyncio: the suite of a room of this machine, and what is different."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.aio import test_rooms as suite
from tests.interfaces.http.conftest import MEMO, TRADING, Served, serving

import postroom
import postroom.aio
from postroom import errors
from postroom.aio import AsyncRoom
from postroom.aio.remote import AsyncRemoteRoom
from postroom.room import Postroom


@pytest.fixture
def here(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    with postroom.open(sqlite_url) as room, serving(room) as found:
        room.queues.create("q")
        monkeypatch.setattr(suite, "TASKS", 24)
        monkeypatch.setattr(suite, "PAUSE", 0.002)
        monkeypatch.setattr(suite, "within", lambda _, work: within(found, work))
        yield found


def within(here: Served, work: suite.Work) -> Any:
    async def main() -> Any:
        async with postroom.aio.open(here.url, token=here.token) as room:
            assert isinstance(room, AsyncRemoteRoom)
            return await asyncio.wait_for(work(room), 120)

    return asyncio.run(main())


@pytest.mark.parametrize(
    "test",
    [
        suite.test_it_has_what_the_room_has,
        suite.test_arguments_are_those_of_the_room,
        suite.test_messages_are_sent_received_worked_on_and_looked_at,
        suite.test_refusals_are_those_of_the_room,
        suite.test_a_block_that_raises_has_failed_and_one_that_is_cancelled_gives_back,
        suite.test_tasks_that_wait_share_a_thread,
        suite.test_many_that_are_ended_together_are_ended_before_their_task_is_cancelled,
        suite.test_a_room_that_was_closed_says_so,
        suite.test_a_wait_ends_and_a_held_queue_is_waited_for,
        suite.test_a_sphere_and_a_client_are_awaited,
        suite.test_coroutine_workers_use_the_room_in_its_loop,
    ],
    ids=lambda test: test.__name__,
)
def test_the_suite_through_a_server(test: Callable[[Postroom], None], here: Served) -> None:
    test(here.room)


@pytest.mark.parametrize("end", suite.END)
def test_an_end_that_has_begun_is_finished_before_its_task_is_cancelled(here: Served, end: str) -> None:
    suite.test_an_end_that_has_begun_is_finished_before_its_task_is_cancelled(here.room, end)


@pytest.mark.parametrize("leased", [False, True])
def test_no_cancellation_loses_or_doubles_a_message(here: Served, leased: bool) -> None:
    suite.test_no_cancellation_loses_or_doubles_a_message(here.room, leased)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_cancellation_loses_or_doubles_a_message_often(here: Served, seed: int) -> None:
    suite.test_no_cancellation_loses_or_doubles_a_message_often(here.room, seed)


def test_parts_are_those_of_a_room_and_what_cannot_be_done_says_so(here: Served, tmp_path: Path) -> None:
    (tmp_path / "memo.form").write_text(MEMO)
    (tmp_path / "trading.flow").write_text(TRADING)
    here.room.stations.add("John", "secret")

    async def work(room: AsyncRoom) -> None:
        assert (await room.load(tmp_path / "memo.form", tmp_path / "trading.flow")).version > 0
        john = await room.station("John")
        key = await john.create("MEMO", To="Jane")
        assert (await john.show(key)).fields["To"] == "Jane"
        assert await room.journal.locate(key) == "John"
        leased = await room.receive_many("q", count=2, lease=30)
        assert leased == []
        await room.send_many("q", ["a", "b", "c"])
        leased = await room.receive_many("q", count=2, lease=30, wait=30)
        await room.consumers.done_many(leased)
        assert [message.ended for message in leased] == [True, True]
        found = await room.consumers.lease((await room.receive_many("q", count=1))[0].lease)
        assert await found.fail("no", final=True) == "q.dead"
        for call in (room.engine.run, room.queues.session):
            with pytest.raises(errors.NotRemote):
                await call()

    within(here, work)


def test_an_event_that_came_for_a_cancelled_task_is_for_the_next_one(here: Served, tmp_path: Path) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    here.room.load(tmp_path / "trading.flow")

    async def work(room: AsyncRoom) -> None:
        client = await room.client("boss")
        await client.subscribe("Trades")
        assert not await client.receive(wait=0.01)
        waiting = asyncio.create_task(client.receive(wait=60))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await room.publish("Trades", {"issue": "IBM", "price": 90})
        here.room.run_until_idle()
        received = await client.receive(wait=60)
        assert received.message is not None
        assert received.message.value == {"issue": "IBM", "price": 90}

    within(here, work)


def test_tasks_wait_without_a_thread_of_their_own(here: Served) -> None:
    async def work(room: AsyncRoom) -> None:
        mine = {each.name for each in threading.enumerate()}
        waiting = [asyncio.create_task(room.receive("q", wait=60, lease=60)) for _ in range(100)]
        await asyncio.sleep(0.2)
        new = {each.name for each in threading.enumerate()} - mine
        assert not [name for name in new if name.startswith("postroom-aio")]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    within(here, work)


def test_a_server_that_is_not_there_or_refuses_is_told(here: Served) -> None:
    async def away() -> None:
        async with postroom.aio.open("http://127.0.0.1:9", token="x") as room:
            with pytest.raises(errors.ServerUnreachable):
                await room.send("q", "x")
            with pytest.raises(errors.ServerUnreachable):
                await room.receive("q", wait=5)

    async def refused() -> None:
        async with postroom.aio.open(here.url, token="x") as room:
            with pytest.raises(errors.TokenRefused):
                await room.count("q")

    asyncio.run(away())
    asyncio.run(refused())
    with pytest.raises(errors.ArgumentInvalid, match="token"):
        asyncio.run(_open_here(here.room.url))


async def _open_here(url: str) -> None:
    async with postroom.aio.open(url, token="x"):
        pass


def test_what_is_not_delivered_goes_back_to_its_place(here: Served) -> None:
    here.room.send("q", "x")

    def fail(_: object) -> None:
        raise OSError("no paper")

    async def work(room: AsyncRoom) -> None:
        for receive in (room.receive, room.queues.receive):
            with pytest.raises(OSError, match="no paper"):
                await receive("q", deliver=fail)
        with pytest.raises(errors.NotRemote, match="with deliver"):
            await room.receive("q", deliver=fail, segment=True)
        with pytest.raises(errors.NotRemote, match="with deliver"):
            await (await room.client("boss")).receive(deliver=fail)
        leased = (await room.receive("q", lease=30)).message
        assert leased is not None
        assert leased.attempts == 1

    within(here, work)
