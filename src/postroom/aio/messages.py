"""Messages that were leased, and messages that are looked at, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from postroom.aio.calls import Unawaited, iterated
from postroom.aio.threads import Threads, Together
from postroom.errors import LeaseOver
from postroom.model.message import Message
from postroom.queues import status
from postroom.queues.leases.leased import FailedAttempt, LeasedMessage
from postroom.queues.leases.leasing import Leasing
from postroom.queues.results import Listing

P = ParamSpec("P")
T = TypeVar("T")


class Ends:
    """Ends leases: requests that arrive together share one commit.

    An end that has begun is finished even if its task is cancelled: else nobody would know whether the message is done.
    """

    def __init__(self, threads: Threads, leasing: Leasing) -> None:
        self.threads = threads
        self._leasing = leasing
        self._done: Together[LeasedMessage, None] = Together(threads, self._all_done)

    async def done(self, message: LeasedMessage) -> None:
        await self.threads.finish(self._done.do(message))

    async def run(self, work: Callable[[], T]) -> T:
        """Run a call that ends or extends a lease."""
        return await self.threads.finish(self.threads.run(work))

    def _all_done(self, messages: Sequence[LeasedMessage]) -> Sequence[BaseException | None]:
        if len(messages) > 1:
            try:
                self._leasing.done_many([message.lease for message in messages])
            except LeaseOver:  # whose it is, each learns by itself
                pass
            else:
                for message in messages:
                    message.ended = True
                return [None] * len(messages)
        return [_done(message) for message in messages]


def _done(message: LeasedMessage) -> BaseException | None:
    try:
        message.done()
    except Exception as error:
        return error
    return None


class AsyncLeasedMessage(Message):
    """A leased message. It stays in its queue until the lease ends."""

    __slots__ = ("_ends", "_leased")

    def __init__(self, ends: Ends, leased: LeasedMessage) -> None:
        super().__init__(leased._stored)
        self._ends = ends
        self._leased = leased
        self.sphere = leased.sphere

    @property
    def lease(self) -> int:
        """The number of its lease."""
        return self._leased.lease

    @property
    def attempts(self) -> int:
        """How often it was delivered, this time included."""
        return self._leased.attempts

    @property
    def until(self) -> Any:
        """When the lease ends, unless it is extended."""
        return self._leased.until

    @property
    def ended(self) -> bool:
        """Whether this object has ended the lease."""
        return self._leased.ended

    async def done(self) -> None:
        """Acknowledge: the message is processed. Raises ``LeaseOver`` if the lease was lost."""
        await self._ends.done(self._leased)

    async def release(self, delay: float = 0.0) -> None:
        """Return the message to its place, at once or after ``delay`` seconds. It counts as no attempt."""
        await self._ends.run(lambda: self._leased.release(delay))

    async def extend(self, seconds: float | None = None) -> None:
        """Extend the lease: it ends so many seconds from now; by default the time that it was given for."""
        await self._ends.run(lambda: self._leased.extend(seconds))

    async def fail(self, reason: str, *, final: bool = False) -> str | None:
        """Fail this attempt: the message waits for the next one, or becomes a dead letter after the last. ``final``
        makes it the last. Returns the queue of dead letters, if the message went there."""
        return await self._ends.run(lambda: self._leased.fail(reason, final=final))

    async def fail_by_worker(self, reason: str, *, final: bool = False) -> FailedAttempt:
        """Like ``fail``, as a worker does: returns what becomes of the message. If its queue has no limit of attempts,
        it waits longer after each failure."""
        return await self._ends.run(lambda: self._leased.fail_by_worker(reason, final=final))

    def __repr__(self) -> str:
        return repr(self._leased)

    def as_dict(self) -> dict[str, Any]:
        """The shape of a message, with its lease."""
        return self._leased.as_dict()


class AsyncLeased(NamedTuple):
    """What a receive with a lease returns; false if there was no message."""

    message: AsyncLeasedMessage | None
    status: str = status.DONE

    def __bool__(self) -> bool:
        return self.message is not None

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "message": self.message.as_dict() if self.message else None}


class AsyncListing:
    """Messages of some queues, read page by page: ``async for``, or all of them with ``await``."""

    def __init__(self, threads: Threads, look: Callable[[], Listing]) -> None:
        self._threads = threads
        self._look = look

    def __aiter__(self) -> AsyncIterator[Message]:
        return iterated(self._threads, lambda: iter(self._look()))

    def __await__(self) -> Generator[Any, None, list[Message]]:
        return self._threads.run(lambda: self._look().messages).__await__()


def looking(method: Callable[Concatenate[Any, P], Listing]) -> Unawaited[P, AsyncListing]:
    """A method that returns a listing of messages."""
    return Unawaited(method, AsyncListing)
