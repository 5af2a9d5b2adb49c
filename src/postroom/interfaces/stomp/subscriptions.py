"""Subscriptions: messages are leased for the client, sent, and ended as it acknowledges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from postroom.errors import (
    ArgumentInvalid,
    LeaseOver,
    MessageCorrupt,
    PostroomError,
    QueueHeld,
    QueueLocked,
    RequestInvalid,
    StoreBusy,
    TooManyRequests,
)
from postroom.interfaces.http.services import Services
from postroom.interfaces.stomp.access import RECEIVE, Rights
from postroom.interfaces.stomp.frames import Frame
from postroom.interfaces.stomp.messages import Destination, delivered
from postroom.limits import (
    LEASE_SECONDS_MAX,
    STOMP_LEASED_AT_ONCE,
    STOMP_UNACKED,
    STOMP_UNACKED_MAX,
)
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.leasing import Ended, Leasing

log = logging.getLogger("postroom.stomp")
AUTO, CLIENT, INDIVIDUAL = MODES = ("auto", "client", "client-individual")
_GONE = "its client has gone without acknowledging it"
_AGAIN = (QueueHeld, QueueLocked, StoreBusy, TooManyRequests, MessageCorrupt)  # it may be otherwise at the next look


class Asked(NamedTuple):
    """The headers of a SUBSCRIBE."""

    id: str
    to: Destination
    mode: str
    most: int  # messages that the client has and has not acknowledged
    lease: float | None  # seconds after which they come again; None: not while the client is there
    pattern: str | None
    durable: bool

    @classmethod
    def of(cls, frame: Frame) -> Asked:
        headers, to = frame.headers, Destination.of(frame.need("destination"))
        mode = headers.get("ack", AUTO)
        if mode not in MODES:
            raise RequestInvalid(where="SUBSCRIBE ack", why=f"it is none of {', '.join(MODES)}")
        durable = headers.get("durable", "false")
        if durable not in ("true", "false"):
            raise RequestInvalid(where="SUBSCRIBE durable", why="it is true or false")
        if not to.topic and ("selector" in headers or durable == "true"):
            raise ArgumentInvalid(
                argument="selector", why="only a topic has one, and only there durable means anything"
            )
        return cls(
            frame.need("id"),
            to,
            mode,
            int(_number(headers.get("prefetch-count", str(STOMP_UNACKED)), "prefetch-count", 1, STOMP_UNACKED_MAX)),
            _number(headers["lease"], "lease", 0.001, LEASE_SECONDS_MAX) if "lease" in headers else None,
            headers.get("selector") or None,
            durable == "true",
        )


def _number(text: str, name: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise RequestInvalid(where=f"SUBSCRIBE {name}", why=f"a number from {least:g} to {most:g}")
    return value


class Subscription:
    """One subscription: a task that leases messages and sends them."""

    def __init__(
        self,
        asked: Asked,
        queue: tuple[str, ...],
        rights: Rights,
        services: Services,
        write: Callable[[bytes], Awaitable[None]],
        failed: Callable[[PostroomError], None],
        acks: dict[str, Subscription],
    ) -> None:
        self.asked = asked
        self.queue = queue  # of a topic, the subscriber's own
        self.unacked: dict[int, LeasedMessage] = {}  # by the number of the lease, in the order of their delivery
        self._rights = rights
        self._services = services
        self._write = write
        self._failed = failed
        self._acks = acks  # of all subscriptions of the connection: where each lease belongs
        self._room = asyncio.Event()  # for another message
        self._unwritten: set[int] = set()  # leases whose messages the client cannot have yet
        self._stopped = False
        self._idle = False  # whether the task waits, and nothing is lost if it is cancelled
        self._keeping: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run())

    @property
    def leasing(self) -> Leasing:
        return self._rights.caller.room._parts.leasing

    # --- giving out ---

    async def _run(self) -> None:
        try:
            while not self._stopped:
                armed = self._services.changes.arm()
                if len(self.unacked) >= self.asked.most:
                    self._room.clear()
                    await self._idly(self._room.wait())
                elif not await self._next():
                    await self._idly(armed.wait())
        except PostroomError as error:
            self._failed(error)
        except (OSError, asyncio.CancelledError):
            return  # the client has gone, and the session sees to what it had

    async def _idly(self, wait: Awaitable[object]) -> None:
        self._idle = True
        try:
            await wait
        finally:
            self._idle = False

    async def _next(self) -> bool:
        """Send the available messages; False if there are none now."""
        asked = self.asked
        count = min(asked.most - len(self.unacked), STOMP_LEASED_AT_ONCE)
        try:
            caller = await self._rights.require(RECEIVE, asked.to)
            messages = await self._services.inside(partial(self._lease, caller.name, count))
        except _AGAIN:
            return False
        if not messages:
            return False
        if self._stopped:
            await self._services.inside(partial(self.leasing.release_each, [message.lease for message in messages]))
            return False
        self.unacked |= {message.lease: message for message in messages}
        self._unwritten = {message.lease for message in messages}
        if asked.lease is None and (self._keeping is None or self._keeping.done()):
            self._keeping = asyncio.create_task(self._keep())
        for message in messages:
            ack = None if asked.mode == AUTO else str(message.lease)
            if ack is not None:
                self._acks[ack] = self
            self._unwritten.discard(message.lease)
            await self._idly(self._write(delivered(message, asked.id, asked.to, ack)))
        if asked.mode == AUTO:
            await self.end([Ended(message.lease) for message in messages])
        return True

    def _lease(self, name: str, count: int) -> list[LeasedMessage]:
        room = self._services.room
        with room.store.acting(name):
            return self.leasing.receive(self.queue, seconds=self.asked.lease, count=count)

    # --- the end ---

    def meant(self, fence: int) -> list[int]:
        """The leases that an acknowledgement covers: with ``client``, all earlier ones, too."""
        if self.asked.mode != CLIENT:
            return [fence]
        every = list(self.unacked)
        return every[: every.index(fence) + 1] if fence in self.unacked else [fence]

    def forget(self, fences: list[int]) -> None:
        """Forget leases that have ended."""
        for fence in fences:
            self.unacked.pop(fence, None)
            self._acks.pop(str(fence), None)
        self._room.set()

    async def end(self, ends: list[Ended]) -> list[LeaseOver | None]:
        """End leases in one commit; returns an error for each that was over before."""
        outcomes: list[LeaseOver | None] = await self._services.inside(partial(self._end, ends))
        self.forget([end.fence for end in ends])
        return outcomes

    def _end(self, ends: list[Ended]) -> list[LeaseOver | None]:
        with self._services.room.store.acting(self._rights.caller.name):
            return self.leasing.end_each(ends)

    async def _keep(self) -> None:
        """Extend the client's leases; if one is lost, its acknowledgement will fail."""
        while self.unacked:
            seconds = min(message.seconds for message in self.unacked.values())
            await asyncio.sleep(seconds / 3)
            try:
                over = await self._services.inside(partial(self.leasing.extend_each, list(self.unacked), seconds))
            except PostroomError as error:
                log.warning("leases of a STOMP client could not be extended: %s", error.code)
            else:
                self.forget(over)

    def fence_of(self, id: str) -> int | None:
        """The lease of an acknowledgement: by its number, or before version 1.2 by the message."""
        if id.isascii() and id.isdigit() and len(id) < 19:
            return int(id) if int(id) in self.unacked else None
        return next((fence for fence, message in self.unacked.items() if message.key == id), None)

    async def stop(self) -> None:
        """Send nothing more; unacknowledged messages return to the queue, marked as redelivered."""
        self._stopped = True
        self._room.set()
        if self._idle:
            self._task.cancel()
        if self._keeping is not None:
            self._keeping.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        unwritten, self._unwritten = list(self._unwritten), set()
        if unwritten:
            await self._services.inside(partial(self.leasing.release_each, unwritten))
            self.forget(unwritten)
        if self.unacked:
            await self.end([Ended(fence, _GONE) for fence in self.unacked])
