"""Calls in threads: bounded, with the caller's context, and given back when nobody awaits them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar
from inspect import CORO_CLOSED, getcoroutinestate

import pytest

from postroom.aio.threads import Threads, Together
from postroom.errors import StoreStopped
from postroom.limits import AIO_THREADS

word: ContextVar[str] = ContextVar("word", default="none")


def test_what_a_cancelled_call_brings_is_undone() -> None:
    undone: list[int] = []
    go = threading.Event()

    async def main() -> Threads:
        threads = Threads()
        task = asyncio.create_task(threads.run(lambda: go.wait(30) and 7, undo=undone.append))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return threads

    threads = asyncio.run(main())
    go.set()
    threads.close()
    assert undone == [7]


def test_a_call_that_has_not_begun_never_does() -> None:
    begun: list[int] = []
    go = threading.Event()

    async def main() -> None:
        threads = Threads()
        busy = [asyncio.create_task(threads.run(lambda: go.wait(30))) for _ in range(AIO_THREADS)]
        late = asyncio.create_task(threads.run(lambda: begun.append(1)))
        apart = asyncio.create_task(threads.run(lambda: "beside", apart=True))
        assert await apart == "beside"
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        go.set()
        await asyncio.gather(*busy)
        await asyncio.to_thread(threads.close)

    asyncio.run(main())
    assert begun == []


def test_a_call_knows_what_its_task_has_set_and_raises_what_it_raises() -> None:
    async def main() -> None:
        threads = Threads()
        word.set("mine")
        assert await threads.run(word.get) == "mine"
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)
        threads.close()

    asyncio.run(main())


def test_work_of_many_tasks_is_done_together_each_with_its_outcome() -> None:
    batches: list[int] = []

    def together(items: Sequence[int]) -> list[int | BaseException]:
        batches.append(len(items))
        return [item * 2 if item % 10 else ValueError(str(item)) for item in items]

    async def main() -> list[int | BaseException]:
        threads = Threads()
        shared: Together[int, int] = Together(threads, together)
        outcomes = await asyncio.gather(*(shared.do(n) for n in range(50)), return_exceptions=True)
        threads.close()
        return outcomes

    outcomes = asyncio.run(main())
    assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, ValueError)] == [0, 10, 20, 30, 40]
    assert outcomes[7] == 14
    assert sum(batches) == 50
    assert len(batches) <= 3


def test_what_came_meanwhile_shares_a_batch_with_those_who_go_on() -> None:
    """Else two halves take turns for ever, each of which waits for the commit of the other."""
    batches: list[list[int]] = []
    entered, go = threading.Event(), threading.Event()

    def together(items: Sequence[int]) -> list[int | BaseException]:
        batches.append([*items])
        entered.set()
        assert go.wait(30)
        return [*items]

    async def main() -> None:
        threads = Threads()
        shared: Together[int, int] = Together(threads, together)

        async def twice(number: int) -> None:
            await shared.do(number)
            await shared.do(number)

        early = [asyncio.create_task(twice(number)) for number in range(3)]
        await asyncio.to_thread(entered.wait, 30)
        late = [asyncio.create_task(twice(number)) for number in range(3, 6)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*early, *late)
        await asyncio.to_thread(threads.close)

    asyncio.run(main())
    assert [sorted(batch) for batch in batches] == [[0, 1, 2], [0, 1, 2, 3, 4, 5], [3, 4, 5]]


def test_what_is_shared_waits_for_no_long_call() -> None:
    go = threading.Event()

    async def main() -> None:
        threads = Threads()
        busy = [asyncio.create_task(threads.run(lambda: go.wait(30))) for _ in range(AIO_THREADS)]
        shared: Together[int, int] = Together(threads, lambda items: [*items])
        assert await asyncio.wait_for(shared.do(7), 20) == 7
        go.set()
        await asyncio.gather(*busy)
        await asyncio.to_thread(threads.close)

    asyncio.run(main())


def test_closing_waits_for_the_batch_and_refuses_what_comes_after() -> None:
    entered, go = threading.Event(), threading.Event()

    def together(items: Sequence[int]) -> list[int | BaseException]:
        entered.set()
        assert go.wait(30)
        return [*items]

    async def main() -> None:
        threads = Threads()
        shared: Together[int, int] = Together(threads, together)
        under_way = shared.do(1)
        await asyncio.to_thread(entered.wait, 30)
        closing = asyncio.create_task(asyncio.to_thread(threads.close))
        while not shared._closed:
            await asyncio.sleep(0.001)
        behind = shared.do(2)
        assert not closing.done()
        go.set()
        await closing
        assert await under_way == 1
        with pytest.raises(StoreStopped):
            await behind
        with pytest.raises(StoreStopped):
            await shared.do(3)

    asyncio.run(main())


def test_a_cancelled_task_does_not_keep_others_from_their_outcome() -> None:
    done: list[int] = []

    def together(items: Sequence[int]) -> list[int | BaseException]:
        done.extend(items)
        return [*items]

    async def main() -> None:
        threads = Threads()
        shared: Together[int, int] = Together(threads, together)
        first, second = shared.do(1), shared.do(2)
        first.cancel()
        assert await second == 2
        assert first.cancelled()
        threads.close()

    asyncio.run(main())
    assert done == [1, 2], "it had begun"


def test_what_nobody_closes_leaves_no_thread() -> None:
    async def main() -> threading.Thread:
        shared: Together[int, int] = Together(Threads(), lambda items: [*items])
        await shared.do(1)
        assert shared._thread is not None
        return shared._thread

    thread = asyncio.run(main())
    thread.join(30)
    assert not thread.is_alive()


def test_a_failure_of_the_whole_is_told_to_each() -> None:
    def together(items: Sequence[int]) -> list[int | BaseException]:
        raise ZeroDivisionError

    async def main() -> None:
        threads = Threads()
        shared: Together[int, int] = Together(threads, together)
        outcomes = await asyncio.gather(shared.do(1), shared.do(2), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 2
        threads.close()

    asyncio.run(main())


@pytest.mark.parametrize("is_closed_before", [True, False])
def test_what_a_loop_has_ended_before_it_began_is_closed(is_closed_before: bool) -> None:
    """Else Python warns, when it forgets it, that it was never awaited."""
    loop = asyncio.new_event_loop()

    async def begun() -> Threads:
        return Threads()

    async def never() -> None:
        raise AssertionError("the loop has ended")

    threads, asked = loop.run_until_complete(begun()), never()
    if is_closed_before:
        loop.close()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(threads.awaited, asked)
        while not is_closed_before and not loop._ready:  # type: ignore[attr-defined]  # it has been asked
            assert not job.done()
        loop.close()
        with pytest.raises(CancelledError):
            job.result(60)
    assert getcoroutinestate(asked) == CORO_CLOSED
    threads.close()


def test_what_an_ending_loop_has_cancelled_before_it_began_is_closed() -> None:
    async def never() -> None:
        raise AssertionError("the loop ends")

    async def main() -> Threads:
        threads, loop = Threads(), asyncio.get_running_loop()
        jobs.append(pool.submit(threads.awaited, asked))
        while not loop._ready:  # type: ignore[attr-defined]  # the loop has no turn until it has been asked
            assert not jobs[0].done()
        return threads

    jobs: list[Future[None]] = []
    asked = never()
    with ThreadPoolExecutor(1) as pool:
        threads = asyncio.run(main())
        with pytest.raises(CancelledError):
            jobs[0].result(60)
    assert getcoroutinestate(asked) == CORO_CLOSED
    threads.close()
