"""A room behind a server, for asyncio: the same objects as for a local room, without a thread for each waiting task.

Waiting is an HTTP request. A message is leased first, and received when the lease is done: so a cancelled task has
received nothing, even if the response was on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast

from postroom.aio.calls import Part, made
from postroom.aio.messages import AsyncLeasedMessage, Ends
from postroom.aio.parts import AsyncFlows, AsyncSpheres
from postroom.aio.places import AsyncClient, AsyncSphere
from postroom.aio.rooms import AsyncConsumers, AsyncQueues, AsyncRoom
from postroom.aio.threads import Threads
from postroom.errors import ArgumentInvalid, NotRemote
from postroom.interfaces.http.client.remote import RemoteRoom
from postroom.limits import AIO_POLL_SECONDS, LEASE_SECONDS
from postroom.model.arguments import check_call
from postroom.model.message import Message
from postroom.queues.leases.leased import LeasedMessage, plain
from postroom.queues.leases.leasing import waited
from postroom.queues.results import Received, Sent
from postroom.room.consumers import RoomConsumers
from postroom.room.flows import RoomFlows
from postroom.room.spheres import RoomSpheres

T = TypeVar("T")


class Requests(Threads):
    """HTTP requests that tasks await; calls that do not wait run in threads."""

    def __init__(self, room: RemoteRoom) -> None:
        super().__init__()
        self._parts: Any = room._parts  # those of a room behind a server
        self._abandoned: dict[asyncio.Future[Any], asyncio.Future[Any]] = {}  # and what gives back what they bring
        self._left: dict[Hashable, asyncio.Future[Any]] = {}  # what they bring is for whoever asks next

    async def ask(self, name: str, arguments: Mapping[str, Any], wait: float = 0.0) -> Any:
        """Have the server run an operation."""
        self.check_use()
        return await self._parts.ask(name, arguments, wait)

    async def call(self, name: str, here: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Have the server run the operation of a method call, with the arguments of the call."""
        self.check_use()
        return await self._parts.ask_call(name, here, given, named)

    async def lease(
        self, arguments: Mapping[str, Any], wait: float | None, give_back: Callable[[Any], Coroutine[Any, Any, None]]
    ) -> list[LeasedMessage]:
        """Lease messages, and wait for the first. If the task is cancelled, what the request brings is given back."""
        self.check_use()
        end = self.loop.time() + waited(wait)
        while True:
            asking = self._asked("consumers.receive_many", arguments, end)
            try:
                leased: list[LeasedMessage] = await asyncio.shield(asking)
            except asyncio.CancelledError:
                self._abandon(asking, give_back)
                raise
            if leased or self.loop.time() >= end:
                return leased

    async def receive(self, name: str, arguments: Mapping[str, Any], wait: float | None) -> Any:
        """Receive what cannot be given back; if the task is cancelled, it is for whoever asks for the same next."""
        self.check_use()
        end, kind = self.loop.time() + waited(wait), (name, repr(arguments))
        while True:
            asking = self._left.pop(kind, None) or self._asked(name, arguments, end)
            try:
                message = await asyncio.shield(asking)
            except asyncio.CancelledError:
                self._left[kind] = asking
                raise
            if message or self.loop.time() >= end:
                return message

    def _asked(self, name: str, arguments: Mapping[str, Any], end: float) -> asyncio.Future[Any]:
        left = min(max(0.0, end - self.loop.time()), AIO_POLL_SECONDS)
        return self.loop.create_task(self._parts.ask(name, {**arguments, "wait": left}, left))

    async def receive_for_good(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish ``work`` even if its task is cancelled: then the cancellation came too late, and the task goes on."""
        doing = asyncio.ensure_future(work)
        while True:
            try:
                return await asyncio.shield(doing)
            except asyncio.CancelledError:
                if doing.cancelled():
                    raise

    def _abandon(self, asking: asyncio.Future[Any], give_back: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        async def end() -> None:
            answer = await asking
            if answer:
                await give_back(answer)

        self._abandoned[asking] = ending = asyncio.ensure_future(end())
        ending.add_done_callback(partial(self._forget, asking))

    def _forget(self, asking: asyncio.Future[Any], ending: asyncio.Future[Any]) -> None:
        self._abandoned.pop(asking, None)
        if not ending.cancelled():
            ending.exception()  # nobody waits for it: a lease that was not given back ends by its time

    async def end(self) -> None:
        """End requests that no task awaits any more, and close the connections."""
        asked = [*self._abandoned, *self._left.values()]
        endings = list(self._abandoned.values())
        for asking in asked:
            asking.cancel()  # not what gives back: an answer that has come is given back
        await asyncio.gather(*asked, *endings, return_exceptions=True)
        await self._parts.link.aclose()


class RemoteEnds(Ends):
    """The ends of leases, each by a request of its own."""

    threads: Requests

    async def done(self, message: LeasedMessage) -> None:
        await self.threads.finish(self._end_by_request(message))

    async def _end_by_request(self, message: LeasedMessage) -> None:
        await self.threads.ask("lease.done", {"lease": message.lease})
        message.ended = True

    async def give_back(self, messages: list[LeasedMessage]) -> None:
        """Release leases of messages that no task has seen."""
        for message in messages:
            await self.threads.ask("lease.release", {"lease": message.lease, "delay": 0.0})
            message.ended = True


class RemoteQueues(AsyncQueues):
    """The queues of a room behind a server."""

    _threads: Requests
    _ends: RemoteEnds

    def __init__(self, requests: Requests, room: RemoteRoom, ends: RemoteEnds) -> None:
        Part.__init__(self, requests, room.queues)
        self._room = room
        self._ends = ends

    async def _send(self, queue: str | Sequence[str], body: Any, **options: Any) -> Sent:
        sent: Sent = await self._threads.call("queues.send", self._here, (queue, body), options)
        return sent

    async def _next(self, queue: tuple[str, ...], where: str | None, wait: float | None) -> Received:
        leased = await self._lease(queue, LEASE_SECONDS, wait, where)
        if leased is None:
            return Received(None)
        await self._threads.receive_for_good(leased.done())
        return Received(plain(leased._leased), end_of_message=True)

    async def _lease(
        self, queue: tuple[str, ...], lease: float | Literal[True], wait: float | None, where: str | None
    ) -> AsyncLeasedMessage | None:
        leased = await self.lease_many(queue, 1, lease, wait, where)
        return leased[0] if leased else None

    async def lease_many(
        self, queue: tuple[str, ...], count: int, lease: float | Literal[True], wait: float | None, where: str | None
    ) -> list[AsyncLeasedMessage]:
        """Lease some messages."""
        if not queue:
            raise ArgumentInvalid(argument="queue", why="say which queue to receive from")
        chosen = {} if where is None else {"where": where}
        arguments = {"queue": queue, "count": count, "lease": lease, **chosen}
        leased = await self._threads.lease(arguments, wait, self._ends.give_back)
        return [AsyncLeasedMessage(self._ends, message) for message in leased]


class RemoteConsumers(AsyncConsumers):
    """Leasing messages of a room behind a server, and working on them."""

    _queues: RemoteQueues
    _threads: Requests

    async def receive_many(
        self,
        *queue: str,
        count: int,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        detached: bool = False,
        where: str | None = None,
    ) -> list[AsyncLeasedMessage]:
        """Lease up to ``count`` messages of a queue in one commit; waits up to ``wait`` seconds for the first.

        Every lease is ``detached``: it ends by its number or by timeout, not with a program.
        """
        options = {"count": count, "lease": lease, "wait": wait, "detached": detached, "where": where}
        check_call(RoomConsumers.receive_many, queue, options)
        return await self._queues.lease_many(queue, count, lease, wait, where)

    async def done_many(self, messages: Iterable[AsyncLeasedMessage]) -> None:
        """Acknowledge several leased messages in one commit; none of them if a lease was lost."""
        await self._threads.finish(self._all_done([message._leased for message in messages]))

    async def _all_done(self, messages: list[LeasedMessage]) -> None:
        await self._threads.ask("consumers.done_many", {"messages": messages})
        for message in messages:
            message.ended = True


class RemoteClient(AsyncClient):
    """The client that belongs to the user of the token."""

    _threads: Requests

    async def receive(
        self, wait: float | None = None, *, deliver: Callable[[Received], None] | None = None
    ) -> Received:
        """The next event that an arc has delivered."""
        if deliver is not None:
            raise NotRemote(what="receiving events with deliver")
        received: Received = await self._threads.receive("client.receive", {}, wait)
        return received


class RemoteSphere(AsyncSphere):
    """A sphere that the server holds."""

    _threads: Requests

    async def receive(self, *queue: str, wait: float | None = None) -> Message | None:
        """Receive in the sphere: if it is undone, the message is back in its queue."""
        arguments = {"sphere": self._here.id, "queue": queue}
        message: Message | None = await self._threads.receive("sphere.receive", arguments, wait)
        return message


class RemoteFlows(AsyncFlows):
    """Publishing and subscribing through a server."""

    client = made(RoomFlows.client, cast(Any, RemoteClient))


class RemoteSpheres(AsyncSpheres):
    """Spheres that a server holds."""

    open = made(RoomSpheres.open, cast(Any, RemoteSphere))


class AsyncRemoteRoom(AsyncRoom):
    """A room behind a server, for the tasks of one event loop. Methods that need a local room raise ``NotRemote``."""

    _room: RemoteRoom
    _threads: Requests

    def _connect(self, room: RemoteRoom) -> None:  # type: ignore[override]  # it is made of such a room alone
        self._threads = requests = Requests(room)
        ends = RemoteEnds(requests, room._parts.leasing)
        self.queues = RemoteQueues(requests, room, ends)
        self.consumers = RemoteConsumers(requests, room, self.queues, ends, self)
        self.flows = RemoteFlows(requests, room.flows)
        self.spheres = RemoteSpheres(requests, room.spheres)

    async def close(self) -> None:
        """Wait for running requests and close the connections. Leases stay until they time out."""
        self.consumers.stop()
        if asyncio.get_running_loop() is self._threads.loop:
            await self._threads.end()
        await super().close()

    def _close(self) -> None:
        self._threads.close()
        self._room.close()
