"""Group commit for sends of many requests: one thread writes everything that arrived while it wrote."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from threading import Condition, Lock, Thread
from time import perf_counter
from typing import NamedTuple

from postroom.errors import PostroomError, TooManyRequests
from postroom.limits import GROUP_MESSAGES_MAX, REQUEST_QUEUE_MAX
from postroom.queues.results import Sent
from postroom.queues.sending import Posting
from postroom.queues.verbs import Verbs

log = logging.getLogger("postroom.http")
Outcome = Sent | BaseException
#: Of the time of the last commit, which those who come first wait for others.
_GATHERING = 0.5
_Pending = tuple[Posting, Callable[[Outcome], None]]


class _Group(NamedTuple):
    """Sends committed together."""

    senders: int  # of these messages, and those who have come meanwhile
    seconds: float
    ended: float


class Sends:
    def __init__(
        self, verbs: Verbs, others: Mapping[str, Verbs], committed: Callable[[int, float], None] | None = None
    ) -> None:
        self._committed = committed  # is told how many messages were sent together, and in which time
        self._verbs = verbs
        self._others = others
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._enough = Condition(self._lock)
        self._expected = 0  # how many are waited for before the next commit; told when they are there
        self._pending: list[_Pending] = []
        self._is_idle = False
        self._is_closed = False
        self._last = _Group(0, 0.0, 0.0)
        self._thread = Thread(target=self._work, name="postroom-sends", daemon=True)
        self._thread.start()

    async def send(self, wanted: Posting) -> Sent:
        """Returns when the message is on disk."""
        return await self.submit(wanted)

    def submit(self, wanted: Posting) -> asyncio.Future[Sent]:
        """Like ``send``, without waiting. Sends keep their order."""
        future: asyncio.Future[Sent] = self._loop.create_future()
        self.begin(wanted, partial(_settle, future))
        return future

    def begin(self, wanted: Posting, tell: Callable[[Outcome], None]) -> None:
        """Send, and tell the outcome in the event loop."""
        with self._lock:
            if len(self._pending) >= REQUEST_QUEUE_MAX or self._is_closed:
                raise TooManyRequests(who="the server", seconds=1)
            self._pending.append((wanted, tell))
            if self._is_idle:
                self._is_idle = False
                self._loop.call_soon(self._wake)
            elif len(self._pending) == self._expected:
                self._enough.notify()

    def _wake(self) -> None:
        """Wake the thread when all requests that are there have been read: it would begin with the first one alone."""
        with self._lock:
            self._enough.notify()

    def _gather(self) -> None:
        """Wait a moment for clients that just got a response and usually send again, because a commit costs the same
        for all.

        The wait is at most half the time of the last commit, and none for a single sender.
        """
        last = self._last
        seconds = last.ended + last.seconds * _GATHERING - perf_counter()
        if 0 < len(self._pending) < last.senders and seconds > 0:
            self._expected = last.senders
            self._enough.wait(seconds)
            self._expected = 0

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._pending:
                    if self._is_closed:
                        return
                    self._is_idle = True
                    self._enough.wait()
                self._gather()
                batch, self._pending = self._pending[:GROUP_MESSAGES_MAX], self._pending[GROUP_MESSAGES_MAX:]
            began = perf_counter()
            try:
                outcomes: list[Outcome] = [*self._verbs.send_each([wanted for wanted, _ in batch], self._others)]
            except BaseException as error:  # whatever it is: each of them waits for an answer
                outcomes = [error] * len(batch)
            ended = perf_counter()
            self._last = _Group(min(len(batch) + len(self._pending), GROUP_MESSAGES_MAX), ended - began, ended)
            if self._committed is not None:
                self._committed(len(batch), ended - began)
            self._loop.call_soon_threadsafe(_tell, batch, outcomes)

    def close(self, seconds: float | None = None) -> bool:
        """Write what is pending; returns whether that was done in this time."""
        with self._lock:
            self._is_closed = True
            self._enough.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()


def _tell(batch: list[_Pending], outcomes: list[Outcome]) -> None:
    for (_, tell), outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, PostroomError):
            outcome = RuntimeError(repr(outcome))
        try:
            tell(outcome)
        except Exception:  # of one of them: the others wait, too
            log.exception("the outcome of a send could not be told")


def _settle(future: asyncio.Future[Sent], outcome: Outcome) -> None:
    if future.cancelled():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
