"""Changes of a room for waiting clients: one thread listens and notifies all followers.

A follower has a queue of limited length. One that does not read is disconnected, and resumes by the number of its last
event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Thread
from time import sleep
from typing import Any

from postroom.errors import PostroomError, StoreError
from postroom.interfaces.http.handling.responses import as_json
from postroom.limits import FOLLOW_LOOK_SECONDS, FOLLOW_PING_SECONDS, FOLLOWER_EVENTS_MAX, GAP_SECONDS, PAGE_ROWS
from postroom.room import Postroom
from postroom.store.kernel.base import Waiter
from postroom.store.kernel.journal import Event

_LOOK_SECONDS = 1.0  # a wake-up may be lost
_PING = b": still here\n\n"
#: Has something done by a thread that may wait for the store.
Inside = Callable[[Callable[[], Any]], Awaitable[Any]]


class Changes:
    """Wakes everything that waits for a change of the room, in the event loop."""

    def __init__(self, room: Postroom, changed: Callable[[], object]) -> None:
        self._room = room
        self._changed = changed  # called in the listening thread
        self._loop = asyncio.get_running_loop()
        self._next = asyncio.Event()
        self._ended = False
        self._waiter: Waiter | None = None
        self._thread = Thread(target=self._listen, name="postroom-changes", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._ended:
            try:
                with self._room.store.waiter() as waiter:
                    self._waiter = waiter
                    while not self._ended:
                        self._changed()
                        self._loop.call_soon_threadsafe(self.wake)
                        waiter.wait(_LOOK_SECONDS)
            except (StoreError, OSError):
                if not self._is_usable():
                    return
                sleep(_LOOK_SECONDS / 10)
            except RuntimeError:  # the loop has ended before us
                return

    def _is_usable(self) -> bool:
        """Whether the room still has its database; an idle server notices it here."""
        with suppress(StoreError):
            self._room.store.read(lambda tx: None)
        return not self._room.store.stopped

    def wake(self) -> None:
        """Wake all; called in the loop."""
        waiting, self._next = self._next, asyncio.Event()
        waiting.set()

    def arm(self) -> asyncio.Event:
        """An event that is set at the next change. Take it before looking, so that no change is missed."""
        return self._next

    def close(self) -> None:
        self._ended = True
        if self._waiter is not None:
            self._waiter.wake()
        self._thread.join(5)


class Tail:
    """The end of the journal, read once for all followers."""

    def __init__(self, room: Postroom, changes: Changes, inside: Inside, refresh: Callable[[], None]) -> None:
        self._journal = room.journal
        self._refresh = refresh  # looks whether a right has changed
        self._gapless = room.store.session.numbers_without_gaps
        self._changes = changes
        self._inside = inside
        self._last = 0
        self._followers: set[asyncio.Queue[Event | None]] = set()
        self._ended = False
        self._look: asyncio.Task[int] | None = None
        self._looking = asyncio.Lock()
        self._task = asyncio.create_task(self._run())

    @property
    def followers(self) -> int:
        """The number of followers."""
        return len(self._followers)

    def _after(self, after: int) -> list[Event]:
        """The next events, then the rights: a revoked right is known before its event is sent."""
        events = self._journal.after(after)
        if events:
            self._refresh()
        return events

    async def _read(self, after: int) -> list[Event]:
        events: list[Event] = await self._inside(partial(self._after, after))
        if self._gapless:
            return events
        # Numbers of others that are still being committed may be missing: what comes behind a fresh gap has to wait.
        fresh = datetime.now(UTC) - timedelta(seconds=GAP_SECONDS)
        for place, event in enumerate(events):
            if event.seq != after + 1 and event.time > fresh:
                return events[:place]
            after = event.seq
        return events

    async def _newest(self) -> int:
        """The newest event number; concurrent callers share one read."""
        if self._look is None:
            self._look = asyncio.create_task(self._look_for_newest())
        return await asyncio.shield(self._look)

    async def _look_for_newest(self) -> int:
        async with self._looking:
            self._look = None  # whoever comes from now on needs a later one
            last: list[Event] = await self._inside(partial(self._journal.last, 1))
        return last[0].seq if last else 0

    async def _run(self) -> None:
        while True:
            armed = self._changes.arm()
            try:
                events = await self._read(self._last) if self._followers else []
            except PostroomError:
                events = []
            for event in events:
                self._last = event.seq
                for follower in list(self._followers):
                    self._tell(follower, event)
            if len(events) == PAGE_ROWS:
                continue
            # Only the first message of an empty queue wakes those who wait; followers want to know of every one.
            with suppress(TimeoutError):
                await asyncio.wait_for(armed.wait(), FOLLOW_LOOK_SECONDS if self._followers else None)

    def _tell(self, follower: asyncio.Queue[Event | None], event: Event) -> None:
        try:
            follower.put_nowait(event)
        except asyncio.QueueFull:
            self._cut_off(follower)

    def _cut_off(self, follower: asyncio.Queue[Event | None]) -> None:
        self._followers.discard(follower)
        while not follower.empty():
            follower.get_nowait()
        follower.put_nowait(None)

    async def follow(self, after: int | None, gone: asyncio.Future[bool] | None = None) -> AsyncIterator[Event | None]:
        """Events after a number, then new ones; None now and then, to detect dead connections.

        Ends when ``gone`` is done.
        """
        mine: asyncio.Queue[Event | None] = asyncio.Queue(FOLLOWER_EVENTS_MAX)
        if gone is not None:
            gone.add_done_callback(lambda _: self._cut_off(mine))
        seen = await self._newest() if after is None else after
        while after is not None and (page := await self._read(seen)):
            for event in page:
                yield event
                seen = event.seq
        if not self._followers:
            self._last = seen
            self._changes.wake()  # the tail may be waiting for a change that it now has to look for
        self._followers.add(mine)
        try:
            if self._ended:
                self._cut_off(mine)
            told = self._last  # by the tail, before we were there: it is read
            while told > seen and (page := await self._read(seen)):
                for event in page:
                    yield event
                    seen = event.seq
            async for heard in self._heard(mine, seen):
                yield heard
        finally:
            self._followers.discard(mine)

    async def _heard(self, mine: asyncio.Queue[Event | None], seen: int) -> AsyncIterator[Event | None]:
        """Yield what the tail puts into a follower's queue, until it is disconnected."""
        while True:
            try:
                async with asyncio.timeout(FOLLOW_PING_SECONDS):  # without a task of its own
                    next_event = await mine.get()
            except TimeoutError:
                yield None
                continue
            if next_event is None:
                return
            if next_event.seq > seen:
                seen = next_event.seq
                yield next_event

    def end(self) -> None:
        """End all followers as if there were no more events."""
        self._ended = True
        for follower in list(self._followers):
            self._cut_off(follower)

    def close(self) -> None:
        self._task.cancel()


def written(event: Event | None, document: dict[str, Any] | None = None) -> bytes:
    """An event as a server-sent event; its id is its journal number."""
    if event is None:
        return _PING
    text = as_json(event.as_dict() if document is None else document)
    return f"id: {event.seq}\nevent: {event.verb}\ndata: ".encode() + text + b"\n\n"
