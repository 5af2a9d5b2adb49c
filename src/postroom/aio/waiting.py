"""Waits of many tasks: one thread listens for changes, and one task receives for all that want the same messages.

First come, first served. A cancelled task leaves the line; a message that it was given goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from threading import Thread
from time import sleep
from typing import Any, Generic, NamedTuple, TypeVar

from postroom.aio.threads import Threads, started
from postroom.errors import QueueHeld, QueueLocked, StoreError
from postroom.limits import OWNERS_LOOK_SECONDS, RECHECK_SECONDS, WAIT_SECONDS_MAX
from postroom.queues.leases.leasing import waited
from postroom.store.kernel.base import Store, Waiter

T = TypeVar("T")


class Changes:
    """Wakes all waiting tasks after each commit; one thread, started by the first wait."""

    def __init__(self, store: Store, threads: Threads) -> None:
        self._store = store
        self._loop = threads.loop
        self._stirred: set[asyncio.Event] = set()
        self._ready = asyncio.Event()
        self._thread: Thread | None = None
        self._waiter: Waiter | None = None
        self._ended = False

    async def listen(self, event: asyncio.Event) -> None:
        """Set ``event`` at every change from now on."""
        self._stirred.add(event)
        if self._thread is None:
            self._thread = Thread(target=self._run, name="postroom-aio changes", daemon=True)
            self._thread.start()
        await self._ready.wait()

    def forget(self, event: asyncio.Event) -> None:
        self._stirred.discard(event)

    def close(self) -> None:
        """Stop listening. Must not be called in the loop."""
        self._ended = True
        if self._waiter is not None:
            self._waiter.wake()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not (self._ended or self._store.stopped):
            try:
                with self._store.waiter() as self._waiter:
                    while not self._ended:
                        self._tell()
                        self._waiter.wait(RECHECK_SECONDS)
            except (StoreError, OSError):  # the server is gone for a while: those who wait learn it when they look
                self._tell()
                sleep(OWNERS_LOOK_SECONDS)
        self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended before us
            self._loop.call_soon_threadsafe(self._stir)

    def _stir(self) -> None:
        self._ready.set()
        for event in self._stirred:
            event.set()


class Found(NamedTuple, Generic[T]):
    """The result of one attempt to receive."""

    items: list[T]
    empty: T  # what those get who have waited long enough
    pause: float = WAIT_SECONDS_MAX  # how long nothing can happen that stirs nobody


class _Waiting(NamedTuple):
    future: asyncio.Future[Any]
    end: float


class Line(Generic[T]):
    """Tasks that want the same messages, first come, first served."""

    def __init__(
        self,
        threads: Threads,
        changes: Changes,
        look: Callable[[int], Found[T]],
        give_back: Callable[[list[T]], object],
    ) -> None:
        self._threads = threads
        self._changes = changes
        self._look = look
        self._give_back = give_back
        self._waiting: list[_Waiting] = []
        self._stir = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether no task waits in it."""
        return self._task is None

    async def next(self, wait: float | None) -> T:
        """The next message; after ``wait`` seconds without one, the empty result."""
        self._threads.check_use()
        end = self._threads.loop.time() + waited(wait)
        future: asyncio.Future[T] = self._threads.loop.create_future()
        self._waiting.append(_Waiting(future, end))
        self._stir.set()
        if self._task is None:
            self._task = started(self._threads.loop, self._serve())
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._return([future.result()])
            future.cancel()
            self._stir.set()
            raise

    async def _serve(self) -> None:
        try:
            while self._live():
                if any(waiter.end > self._threads.loop.time() for waiter in self._waiting):
                    await self._changes.listen(self._stir)
                self._stir.clear()
                asked = self._live()
                if asked:
                    pause = await self._serve_once(asked)
                    await self._sleep(pause)
        except BaseException as error:
            self._fail(self._live(), error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._changes.forget(self._stir)
            self._task = None

    async def _serve_once(self, asked: list[_Waiting]) -> float:
        outcome: Found[T] | QueueHeld | QueueLocked
        try:
            outcome = await self._threads.run(
                partial(self._look, len(asked)), undo=lambda taken: self._give_back(taken.items)
            )
        except (QueueHeld, QueueLocked) as refusal:  # it may end while they wait
            outcome = refusal
        except Exception as error:
            self._fail(asked, error)
            return 0.0
        items = list(outcome.items) if isinstance(outcome, Found) else []
        for waiter in self._live():
            if items:
                waiter.future.set_result(items.pop(0))
        self._return(items)
        now = self._threads.loop.time()
        for waiter in asked:
            if waiter.end <= now and not waiter.future.done():
                self._fail([waiter], outcome) if isinstance(outcome, Exception) else waiter.future.set_result(
                    outcome.empty
                )
        return OWNERS_LOOK_SECONDS if isinstance(outcome, Exception) else 0.0 if outcome.items else outcome.pause

    async def _sleep(self, pause: float) -> None:
        live = self._live()
        if live and pause > 0:
            left = min(waiter.end for waiter in live) - self._threads.loop.time()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stir.wait(), max(0.0, min(pause, left)))

    def _live(self) -> list[_Waiting]:
        self._waiting = [waiter for waiter in self._waiting if not waiter.future.done()]
        return list(self._waiting)

    def _fail(self, asked: list[_Waiting], error: BaseException) -> None:
        for waiter in asked:
            if waiter.future.done():
                continue
            waiter.future.cancel() if isinstance(error, asyncio.CancelledError) else waiter.future.set_exception(error)

    def _return(self, items: list[T]) -> None:
        if items:
            self._threads.start(partial(self._give_back, items))


class Lines:
    """The lines of a room, one for each queue and filter that tasks wait for."""

    def __init__(self, threads: Threads, changes: Changes) -> None:
        self._threads = threads
        self._changes = changes
        self._lines: dict[Hashable, Line[Any]] = {}

    def line(self, kind: Hashable, look: Callable[[int], Found[T]], give_back: Callable[[list[T]], object]) -> Line[T]:
        for name in [name for name, line in self._lines.items() if line.idle]:
            del self._lines[name]
        return self._lines.setdefault(kind, Line(self._threads, self._changes, look, give_back))
