"""A room for asyncio does what the room does, on both stores; whoever is cancelled has received nothing."""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

import postroom
import postroom.aio
from postroom.aio import AsyncLeasedMessage, AsyncRoom
from postroom.aio.places import AsyncClient, AsyncMachine, AsyncSession, AsyncSphere, AsyncStation
from postroom.aio.rooms import AsyncQueue
from postroom.errors import ArgumentInvalid, LeaseOver, QueueFull, QueueHeld, QueueUnknown, StoreStopped
from postroom.queues.leases.working import Workers
from postroom.queues.sessions import QueueSession
from postroom.room import Postroom
from postroom.room.client import Client
from postroom.room.queues import QueueHandle
from postroom.spheres.machine import MachineHandle
from postroom.spheres.sphere import Sphere
from postroom.stations.station import Station

TASKS = 200  # that wait at a time
PAUSE = 0.0  # between two cancellations; a server in this process needs some
Work = Callable[[AsyncRoom], Coroutine[Any, Any, Any]]


def within(room: Postroom, work: Work) -> Any:
    """Run a coroutine with the same room, opened for asyncio."""

    async def main() -> Any:
        async with postroom.aio.open(room.url) as again:
            return await asyncio.wait_for(work(again), 120)

    return asyncio.run(main())


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    return room


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


def public(kind: Any) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_it_has_what_the_room_has(q: Postroom) -> None:
    async def look(room: AsyncRoom) -> None:
        assert public(q) - {"lock", "store", "seen_by"} <= public(room)
        for name in ("queues", "consumers", "definitions", "flows", "gateways", "stations", "spheres", "journal"):
            assert public(getattr(q, name)) <= public(getattr(room, name)), name
        for name in ("engine", "access", "operations"):
            assert public(getattr(q, name)) <= public(getattr(room, name)), name

    within(q, look)
    assert public(QueueHandle) <= public(AsyncQueue)
    pairs: list[tuple[Any, Any]] = [
        (Client, AsyncClient),
        (Sphere, AsyncSphere),
        (Station, AsyncStation),
        (MachineHandle, AsyncMachine),
        (QueueSession, AsyncSession),
    ]
    for plain, awaited in pairs:
        assert public(plain) <= public(awaited)


def test_arguments_are_those_of_the_room(q: Postroom) -> None:
    async def look(room: AsyncRoom) -> None:
        for verb in ("receive_many", "each", "work"):
            plain = inspect.signature(getattr(q.consumers, verb)).parameters
            assert list(plain) == list(inspect.signature(getattr(room.consumers, verb)).parameters)

    within(q, look)


def test_messages_are_sent_received_worked_on_and_looked_at(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        sent = await room.send("q", {"n": 1}, properties={"region": "EU"})
        await room.send_many("q", ["two", "three"])
        handle = room.queue("q")
        await handle.send("four", priority=9)
        assert [message.body for message in await room.peek("q")][1:] == ["two", "three", "four"]
        assert [message.key async for message in handle.peek(where="region = 'EU'")] == [sent.key]
        received = await room.receive("q")
        assert received.message is not None
        assert received.message.body == "four"
        async with room.work("q", where="region = 'EU'") as message:
            assert message is not None
            assert (message.value, message.attempts) == ({"n": 1}, 1)
        leased = (await handle.receive(lease=30)).message
        assert leased is not None
        await leased.extend(60)
        await leased.release()
        assert [message.body async for message in room.each("q")] == ["two", "three"]
        assert not await room.receive("q", lease=True)
        assert not await room.receive("q")
        assert [event.verb for event in await room.trace(sent.key)] == ["put", "lease", "take"]

    within(q, work)
    assert q.count("q").queues[0].processed == 4
    sound(q)


def test_refusals_are_those_of_the_room(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        with pytest.raises(QueueUnknown):
            await room.send("none", "x")
        with pytest.raises(QueueUnknown):
            await room.receive("none", wait=5)
        with pytest.raises(ArgumentInvalid, match="wait"):
            await room.receive("q", wait=-1)
        with pytest.raises(ArgumentInvalid, match="where"):
            await room.receive("q", where="=")
        with pytest.raises(ArgumentInvalid, match="character 1"):
            await room.receive("q", where="(n = 5)")
        wrong: Any = "high"
        for call in (
            lambda: room.send("q", "x", priority=wrong),
            lambda: room.receive("q", wait=wrong),
            lambda: room.receive_many("q", count=wrong),
            lambda: room.consumers.set_policy("q", nope=wrong),  # type: ignore[call-arg]
            lambda: room.consumers.move("q", to=wrong, limit=wrong),
        ):
            with pytest.raises(ArgumentInvalid):
                await call()
        await room.send("q", "x")
        first = (await room.receive("q", lease=True)).message
        assert first is not None
        await first.done()
        with pytest.raises(LeaseOver):
            await first.done()
        await room.consumers.set_policy("q", max_messages=1)
        await room.send("q", "y")
        with pytest.raises(QueueFull):
            await room.send("q", "z", wait=0.01)

    within(q, work)


def test_a_block_that_raises_has_failed_and_one_that_is_cancelled_gives_back(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        await room.consumers.set_policy("q", attempts=2)
        await room.send("q", "x")
        with pytest.raises(ValueError, match="no"):
            async with room.work("q"):
                raise ValueError("no")
        entered = asyncio.Event()

        async def hold() -> None:
            async with room.work("q") as message:
                assert message is not None
                entered.set()
                await asyncio.sleep(3_600)

        task = asyncio.create_task(hold())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        again = (await room.receive("q", lease=True, wait=30)).message
        assert again is not None
        assert again.attempts == 2  # the cancelled one was no attempt
        assert await again.fail("still no") == "q.dead"

    within(q, work)
    sound(q)


def clients_threads() -> int:
    """How many threads there are, without those of a server in this process that answer requests."""
    return sum(not thread.name.startswith("postroom-request") for thread in threading.enumerate())


def test_tasks_that_wait_share_a_thread(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        order: list[int] = []

        async def wait(n: int) -> None:
            if n % 2:
                leased = (await room.receive("q", wait=60, lease=30)).message
                assert leased is not None
                await leased.done()
            else:
                assert (await room.receive("q", wait=60)).message is not None
            order.append(n)

        before = clients_threads()
        tasks = [asyncio.create_task(wait(n)) for n in range(TASKS)]
        await asyncio.sleep(0.3)
        assert clients_threads() <= before + 12
        assert order == []
        for n in range(TASKS):
            await room.send("q", str(n))
        await asyncio.gather(*tasks)
        assert sorted(order) == list(range(TASKS))

    within(q, work)
    assert q.count("q").queues[0].processed == TASKS
    sound(q)


def test_a_wait_ends_and_a_held_queue_is_waited_for(q: Postroom) -> None:
    q.queues.set_password("q", password="open")

    async def work(room: AsyncRoom) -> None:
        assert not await room.receive("q", wait=0.05)
        await room.queues.disable("q", password="open")
        with pytest.raises(QueueHeld):
            await room.receive("q", wait=0.05)
        with pytest.raises(QueueHeld):
            await room.receive("q", lease=5)
        waiting = asyncio.create_task(room.receive("q", wait=60))
        await asyncio.sleep(0.05)
        await room.queues.enable("q", password="open")
        await room.send("q", "x")
        got = (await waiting).message
        assert got is not None
        later = asyncio.create_task(room.receive("q", wait=60, lease=5))
        await room.send("q", "y", delay=0.1)
        assert (await later).message is not None

    within(q, work)


@pytest.mark.parametrize("leased", [False, True])
def test_no_cancellation_loses_or_doubles_a_message(q: Postroom, leased: bool) -> None:
    """Receives are cancelled at random moments; in the end each message was received once."""
    q.send_many("q", [str(n) for n in range(60)])
    _cancel_at_random(q, leased, random.Random(f"cancel {leased}"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_cancellation_loses_or_doubles_a_message_often(q: Postroom, seed: int) -> None:
    q.send_many("q", [str(n) for n in range(400)])
    _cancel_at_random(q, bool(seed % 2), random.Random(seed))


def _cancel_at_random(q: Postroom, leased: bool, dice: random.Random) -> None:
    got: list[str] = []

    async def receive(room: AsyncRoom) -> None:
        if not leased:
            received = await room.receive("q", wait=0.1)
            got.extend([] if received.message is None else [received.message.body])
            return
        async with room.work("q", wait=0.1) as message:
            if dice.random() < 0.3:
                await asyncio.sleep(dice.random() * 0.01)
        got.extend([] if message is None else [message.body])

    async def work(room: AsyncRoom) -> None:
        while True:
            tasks = [asyncio.create_task(receive(room)) for _ in range(dice.randrange(1, 12))]
            for task in tasks:
                if dice.random() < 0.6:
                    await asyncio.sleep(dice.choice([0, 0, dice.random() * 0.01]))
                    task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ended), ended
            left = (await room.count("q")).queues[0]
            if left.unprocessed == left.leased == 0:
                return

    within(q, work)
    assert len(got) == len(set(got))
    rest = [message.body for message in q.peek("q")]
    done = [message.body for message in q.queues.history("q")]
    assert sorted(done + rest) == sorted({*done, *rest})
    assert set(got) <= set(done)
    if not leased:
        assert sorted(got) == sorted(done)
    assert q.count("q").queues[0].leased == 0
    sound(q)


def test_sends_of_tasks_share_commits(q: Postroom) -> None:
    commits: list[int] = []

    async def work(room: AsyncRoom) -> None:
        await room.send("q", "the way is known now")
        store = room._room.store
        send_each = store.send_each

        def counted(sends: Any) -> Any:
            commits.append(len(sends))
            return send_each(sends)

        store.send_each = counted  # type: ignore[method-assign]
        keys = await asyncio.gather(*(room.send("q", str(n)) for n in range(100)))
        assert len({sent.key for sent in keys}) == 100

    within(q, work)
    assert sum(commits) == 100
    assert len(commits) < 10
    assert [message.body for message in q.peek("q")][1:] == [str(n) for n in range(100)]
    sound(q)


def test_a_room_that_is_closed_gives_back_what_was_leased(q: Postroom) -> None:
    q.send("q", "x")

    async def work(room: AsyncRoom) -> None:
        assert (await room.receive("q", lease=3_600)).message is not None

    within(q, work)
    assert q.count("q").queues[0].unprocessed == 1


END: dict[str, Callable[[Any], Any]] = {
    "work": lambda message: None,
    "done": lambda message: message.done(),
    "release": lambda message: message.release(),
    "fail": lambda message: message.fail("no", final=True),
}


@pytest.mark.parametrize("end", END)
def test_an_end_that_has_begun_is_finished_before_its_task_is_cancelled(q: Postroom, end: str) -> None:
    q.send_many("q", [str(number) for number in range(TASKS)])

    async def work(room: AsyncRoom) -> None:
        ending: list[bool] = [False] * TASKS

        async def one(number: int) -> None:
            async with room.work("q", lease=3600, wait=30) as message:
                assert message is not None
                ending[number] = True
                if end != "work":
                    await END[end](message)

        tasks = [asyncio.create_task(one(number)) for number in range(TASKS)]
        while not all(ending):
            await asyncio.sleep(PAUSE)
            for number, task in enumerate(tasks):
                if ending[number]:
                    task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        (left,) = (await room.count("q")).queues
        done = TASKS if end in ("work", "done") else 0
        assert (left.leased, left.processed, left.unprocessed) == (0, done, TASKS if end == "release" else 0)

    within(q, work)


def test_many_that_are_ended_together_are_ended_before_their_task_is_cancelled(q: Postroom) -> None:
    q.send_many("q", [str(number) for number in range(TASKS)])

    async def work(room: AsyncRoom) -> None:
        leased = await room.receive_many("q", count=TASKS, lease=3600)
        task = asyncio.create_task(room.consumers.done_many(leased))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(message.ended for message in leased)
        assert (await room.count("q")).queues[0].processed == TASKS

    within(q, work)


def test_a_room_that_was_closed_says_so(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        leased = await room.receive_many("q", count=1)
        await room.close()

        async def each() -> None:
            async for _ in room.each("q"):
                pass

        async def blocked() -> None:
            async with room.work("q"):
                pass

        async def peek() -> None:
            await room.peek("q")

        for call in (
            lambda: room.send("q", "x"),
            lambda: room.send("q", "x", delay=1),
            lambda: room.receive("q"),
            lambda: room.receive("q", wait=1, lease=1),
            lambda: room.count("q"),
            lambda: leased[0].done(),
            lambda: leased[0].release(),
            lambda: room.consumers.done_many(leased),
            lambda: room.drain(),
            each,
            blocked,
            peek,
        ):
            with pytest.raises(StoreStopped, match="it was closed"):
                await call()
        await room.close()

    q.send("q", "x")
    within(q, work)


def test_a_sphere_and_a_client_are_awaited(q: Postroom) -> None:
    async def work(room: AsyncRoom) -> None:
        async with await room.sphere("s") as sphere:
            await sphere.send("q", "in the sphere")
            assert await sphere.state() == "ACTIVE"
        assert (await room.count("q")).queues[0].unprocessed == 1
        undone = await room.sphere("t")
        await undone.send("q", "undone")
        await undone.__aexit__(ValueError, ValueError("no"), None)
        assert (await room.count("q")).queues[0].unprocessed == 1

    within(q, work)


def test_a_room_belongs_to_its_loop(q: Postroom) -> None:
    async def main() -> AsyncRoom:
        return await postroom.aio.open(q.url)

    room = asyncio.run(main())

    async def other() -> None:
        for call in (room.count, partial(room.send, body="x"), room.receive, partial(room.receive, lease=1)):
            with pytest.raises(ArgumentInvalid, match="another event loop"):
                await call("q")
        await room.close()

    asyncio.run(other())
    assert q.count("q").queues[0].unprocessed == 0


def test_coroutine_workers_use_the_room_in_its_loop(q: Postroom) -> None:
    q.queues.create("out")
    q.send_many("q", [{"n": number} for number in range(12)])

    async def work(room: AsyncRoom) -> None:
        together = asyncio.Barrier(3)

        @room.worker("q", concurrency=3)
        async def handle(order: dict[str, int], message: AsyncLeasedMessage, same: AsyncRoom) -> None:
            assert same is room
            await asyncio.wait_for(together.wait(), 20)
            async with room.work("q") as another:
                assert another is None or another.key != message.key
            await room.send("out", order["n"], properties={"attempts": message.attempts})
            await message.done()

        progress = await room.drain()
        assert progress.failed == progress.dead == 0
        assert (await room.count("q")).queues[0].processed == 12

    within(q, work)
    assert {message.properties["attempts"] for message in q.peek("out")} == {1}
    sound(q)


def test_coroutine_workers_that_raise_have_failed_and_timeouts_are_theirs(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=1)
    q.send("q", "x")

    async def work(room: AsyncRoom) -> None:
        workers = Workers()

        @workers.worker("q")
        async def handle(message: AsyncLeasedMessage) -> None:
            raise TimeoutError("the partner is asleep")

        assert (await room.consumers.run(until_idle=True, workers=workers)).dead == 1
        (dead,) = await room.peek("q.dead")
        assert dead.properties["dead.reason"] == "TimeoutError: the partner is asleep"

    within(q, work)


def test_workers_whose_task_is_cancelled_finish_what_was_begun(q: Postroom) -> None:
    q.queues.create("out")
    q.send_many("q", ["x"] * 5)

    async def work(room: AsyncRoom) -> None:
        begun = asyncio.Event()

        @room.worker("q")
        async def handle(message: AsyncLeasedMessage) -> None:
            begun.set()
            await asyncio.sleep(0.2)
            await room.send("out", "y")

        running = asyncio.create_task(room.consumers.run())
        await asyncio.wait_for(begun.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    within(q, work)
    count = q.count("q").queues[0]
    assert (count.leased, count.processed) == (0, len(list(q.peek("out"))))
    assert 0 < count.processed < 5


def test_a_loop_that_ends_gives_back_what_its_workers_had(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=1)
    q.send_many("q", ["x"] * 3)

    async def main() -> None:
        room = await postroom.aio.open(q.url)
        begun = asyncio.Event()

        @room.worker("q", concurrency=3)
        async def handle(message: AsyncLeasedMessage) -> None:
            begun.set()
            await asyncio.sleep(600)

        kept.append((room, asyncio.create_task(room.consumers.run())))
        await asyncio.wait_for(begun.wait(), 20)

    kept: list[Any] = []
    asyncio.run(main())
    room = kept[0][0]
    asyncio.run(room.close())
    count = q.count("q").queues[0]
    assert (count.leased, count.unprocessed, count.processed) == (0, 3, 0)
