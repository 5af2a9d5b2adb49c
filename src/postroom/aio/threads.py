"""Calls of a room that wait for its store, run in a few threads. The task that awaits one may be cancelled at any
moment.

A call that has begun goes on after that; its result is then given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from threading import Thread
from typing import Any, Generic, TypeVar

from postroom.errors import ArgumentInvalid, StoreStopped
from postroom.limits import AIO_LOOK_SECONDS, AIO_THREADS, GROUP_MESSAGES_MAX

T = TypeVar("T")
R = TypeVar("R")


class Threads:
    """The threads of one room."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(AIO_THREADS, "postroom-aio")
        self._jobs: set[Future[Any]] = set()
        self._closed = False

    async def run(
        self,
        work: Callable[[], T],
        undo: Callable[[T], object] | None = None,
        *,
        apart: bool = False,
        stop: Callable[[], object] | None = None,
    ) -> T:
        """Returns the result of ``work``; if the caller is cancelled, passes it to ``undo``. With ``apart``, for work
        that may take long, it runs in a thread of its own. With ``stop``, a cancelled caller calls that and waits until
        the work has ended."""
        self.check_use()
        job: Future[T] = self._start(partial(copy_context().run, work), apart)
        done: asyncio.Future[None] = self.loop.create_future()
        job.add_done_callback(lambda _: self._tell(done))
        try:
            await (done if stop is None else asyncio.shield(done))
        except asyncio.CancelledError:
            if stop is not None:
                stop()
                await _ended(done)
            elif not job.cancel() and undo is not None:
                job.add_done_callback(partial(self._undo, undo))
            raise
        return job.result()

    async def finish(self, work: Awaitable[T]) -> T:
        """Finish ``work`` even if the caller is cancelled: the cancellation goes on when the outcome is known."""
        doing = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await _ended(doing)
            if not doing.cancelled():
                doing.exception()  # whoever is cancelled is not told of it
            raise

    def awaited(self, result: Awaitable[T]) -> T:
        """Await something in the loop, for a thread outside it. If the loop ends before, it counts as cancelled."""
        waiting = _awaited(result)
        try:
            job = self._scheduled(waiting)
            while not wait([job], AIO_LOOK_SECONDS).done:
                if self.loop.is_closed():
                    raise CancelledError
            return job.result()
        finally:
            _end(waiting)
            _end(result)

    def _scheduled(self, waiting: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(waiting, self.loop)
        except RuntimeError:  # the loop is closed
            raise CancelledError from None

    def check_use(self) -> None:
        """Raise unless the room is open, and the running loop is its own."""
        if self._closed:
            raise StoreStopped(why="it was closed")
        if asyncio.get_running_loop() is not self.loop:
            raise ArgumentInvalid(argument="room", why="it was opened in another event loop; open it in this one, too")

    def close(self) -> None:
        """Wait for running calls and for everything that they give back. Must not be called in the loop."""
        while self._jobs:
            wait(list(self._jobs))
        self._closed = True
        self._pool.shutdown()

    def _start(self, work: Callable[[], T], apart: bool) -> Future[T]:
        if not apart:
            job = self._pool.submit(work)
        else:
            job = Future()
            Thread(target=_work, args=(work, job), name="postroom-aio apart", daemon=True).start()
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    def _tell(self, done: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the loop has ended before the call
            self.loop.call_soon_threadsafe(_settle, done)

    def _undo(self, undo: Callable[[Any], object], job: Future[Any]) -> None:
        if job.exception() is None:
            self.start(partial(undo, job.result()))

    def start(self, work: Callable[[], object]) -> None:
        """Run ``work`` in the background."""
        self._start(work, False)


async def _ended(doing: asyncio.Future[Any]) -> None:
    """Wait until it has ended, however often the caller is cancelled."""
    while not doing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([doing])


async def _awaited(result: Awaitable[T]) -> T:
    return await result


def _end(result: Awaitable[Any]) -> None:
    """Close a coroutine that the loop has not begun with before it ended: nobody awaits it any more."""
    if iscoroutine(result) and getcoroutinestate(result) == CORO_CREATED:
        result.close()


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _work(work: Callable[[], T], job: Future[T]) -> None:
    if job.set_running_or_notify_cancel():
        try:
            job.set_result(work())
        except BaseException as error:
            job.set_exception(error)


class Together(Generic[T, R]):
    """Batches the work of many tasks: all items that arrive during a commit share the next one."""

    def __init__(self, threads: Threads, together: Callable[[Sequence[T]], Sequence[R | BaseException]]) -> None:
        self._threads = threads
        self._together = together
        self._pending: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def do(self, item: T) -> R:
        """Returns when the item is committed. If the task is cancelled, the item may or may not be committed."""
        return await self.begin(item)

    def begin(self, item: T) -> asyncio.Future[R]:
        """Like ``do``, for the loop; the future has the outcome of the item."""
        self._threads.check_use()
        future: asyncio.Future[R] = self._threads.loop.create_future()
        self._pending.append((item, future))
        if self._task is None:
            self._task = started(self._threads.loop, self._work())
        return future

    async def _work(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[:GROUP_MESSAGES_MAX], self._pending[GROUP_MESSAGES_MAX:]
                outcomes: Sequence[R | BaseException]
                try:
                    outcomes = await self._threads.run(partial(self._together, [item for item, _ in batch]))
                except BaseException as error:
                    outcomes = [error] * len(batch)
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if future.done():
                        continue
                    if isinstance(outcome, asyncio.CancelledError):
                        future.cancel()
                    elif isinstance(outcome, BaseException):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)
        finally:
            self._task = None


def started(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task with an empty context: it inherits no context variables of the task that started it."""
    return Context().run(loop.create_task, work)
