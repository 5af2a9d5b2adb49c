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
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakMethod, finalize

from postroom.errors import ArgumentInvalid, StoreStopped
from postroom.limits import AIO_LOOK_SECONDS, AIO_THREADS, GROUP_MESSAGES_MAX

T = TypeVar("T")
R = TypeVar("R")
_Pending = tuple[T, asyncio.Future[R]]


class Threads:
    """The threads of one room."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(AIO_THREADS, "postroom-aio")
        self._jobs: set[Future[Any]] = set()
        self._closed = False
        self.closing: list[WeakMethod[Callable[[], object]]] = []  # what ends with them

    async def run(self, work: Callable[[], T], undo: Callable[[T], object] | None = None, *, apart: bool = False) -> T:
        """Returns the result of ``work``; if the caller is cancelled, passes it to ``undo``. With ``apart``, for work
        that may take long, it runs in a thread of its own."""
        self.check_use()
        job: Future[T] = self._start(partial(copy_context().run, work), apart)
        done: asyncio.Future[None] = self.loop.create_future()
        job.add_done_callback(lambda _: self.tell(_settle, done))
        try:
            await done
        except asyncio.CancelledError:
            if not job.cancel() and undo is not None:
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
        for close in self.closing:
            if (end := close()) is not None:
                end()
        self._closed = True
        self._pool.shutdown()

    def start(self, work: Callable[[], object]) -> None:
        """Run ``work`` in the background."""
        self._start(work, False)

    def _start(self, work: Callable[[], T], apart: bool) -> Future[T]:
        if not apart:
            job = self._pool.submit(work)
        else:
            job = Future()
            Thread(target=_work, args=(work, job), name="postroom-aio apart", daemon=True).start()
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    def tell(self, then: Callable[..., object], *values: Any) -> None:
        """Call something in the loop, from any thread."""
        with suppress(RuntimeError):  # the loop has ended before
            self.loop.call_soon_threadsafe(then, *values)

    def _undo(self, undo: Callable[[Any], object], job: Future[Any]) -> None:
        if job.exception() is None:
            self.start(partial(undo, job.result()))


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
    """Batches the work of many tasks: all items that arrive during a commit share the next one.

    It has a thread of its own: that costs less than a pool, and no call that takes long is before it.
    """

    def __init__(self, threads: Threads, together: Callable[[Sequence[T]], Sequence[R | BaseException]]) -> None:
        self._threads = threads
        self._together = together
        self._pending: list[_Pending[T, R]] = []
        self._busy = False  # a batch is about to begin, or under way
        self._closing = Lock()
        self._closed = False
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        finalize(self, self._work.put, None)
        threads.closing.append(WeakMethod(self.close))

    def do(self, item: T) -> asyncio.Future[R]:
        """Done when the item is committed. If its task is cancelled, the item may or may not be committed."""
        self._threads.check_use()
        future: asyncio.Future[R] = self._threads.loop.create_future()
        self._pending.append((item, future))
        if not self._busy:
            self._begin_soon()
        return future

    def close(self) -> None:
        """Wait for the batch that is under way. Must not be called in the loop."""
        with self._closing:
            self._closed = True
            self._work.put(None)
        if self._thread is not None:
            self._thread.join()

    def _begin_soon(self) -> None:
        """Begin when all tasks that can go on now have gone on: what they bring shares the commit."""
        self._busy = True
        self._threads.loop.call_soon(self._begin)

    def _begin(self) -> None:
        batch, self._pending = self._pending[:GROUP_MESSAGES_MAX], self._pending[GROUP_MESSAGES_MAX:]
        with self._closing:
            if not self._closed:
                if self._thread is None:
                    self._thread = Thread(target=_serve, args=(self._work,), name="postroom-aio together", daemon=True)
                    self._thread.start()
                self._work.put(partial(self._commit, batch))
                return
        self._tell(batch, [StoreStopped(why="it was closed") for _ in batch])

    def _commit(self, batch: list[_Pending[T, R]]) -> None:
        outcomes: Sequence[R | BaseException]
        try:
            outcomes = self._together([item for item, _ in batch])
        except BaseException as error:
            outcomes = [error] * len(batch)
        self._threads.tell(self._tell, batch, outcomes)

    def _tell(self, batch: list[_Pending[T, R]], outcomes: Sequence[R | BaseException]) -> None:
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._busy = False
        if self._pending:
            self._begin_soon()


def _serve(work: SimpleQueue[Callable[[], None] | None]) -> None:
    """Does not know whose work it is: who is forgotten without being closed can go."""
    while (do := work.get()) is not None:
        do()
        del do


def started(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task with an empty context: it inherits no context variables of the task that started it."""
    return Context().run(loop.create_task, work)
