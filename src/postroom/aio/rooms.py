"""A room for asyncio: its parts, and the verbs that wait or share commits.

The methods are those of ``Postroom``; ``calls.py`` makes them awaitable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Literal, overload
from weakref import ref

from postroom.aio.calls import Part, call, long, made, through
from postroom.aio.messages import AsyncLeased, AsyncLeasedMessage, AsyncListing, Ends, looking
from postroom.aio.parts import (
    AsyncAccess,
    AsyncDefinitions,
    AsyncEngine,
    AsyncFlows,
    AsyncGateways,
    AsyncJournal,
    AsyncOperations,
    AsyncSpheres,
    AsyncStations,
)
from postroom.aio.places import AsyncSession
from postroom.aio.threads import Threads, Together
from postroom.aio.waiting import Changes, Found, Lines
from postroom.errors import ArgumentInvalid, QueueFull
from postroom.limits import FULL_LOOK_SECONDS
from postroom.model.arguments import check_call
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.leasing import waited
from postroom.queues.leases.returning import Unread
from postroom.queues.leases.working import Progress, Surroundings, Workers
from postroom.queues.results import Accepted, Held, Received, Sent
from postroom.queues.selectors import Selector
from postroom.queues.sending import Posting
from postroom.room import Postroom
from postroom.room.consumers import RoomConsumers
from postroom.room.queues import RoomQueues


class AsyncQueues(Part):
    """Creating queues, sending, receiving, browsing, holding."""

    _here: RoomQueues

    def __init__(self, threads: Threads, room: Postroom, lines: Lines, ends: Ends) -> None:
        super().__init__(threads, room.queues)
        self._room = room
        self._lines = lines
        self._ends = ends
        self._sends: Together[Posting, Sent] = Together(threads, room._parts.verbs.send_each)

    accept = call(RoomQueues.accept)
    count = call(RoomQueues.count)
    create_source = call(RoomQueues.create_source)
    disable = call(RoomQueues.disable)
    disable_source = call(RoomQueues.disable_source)
    distribute = call(RoomQueues.distribute)
    enable = call(RoomQueues.enable)
    enable_source = call(RoomQueues.enable_source)
    export = long(RoomQueues.export)
    find_source = call(RoomQueues.find_source)
    frame = long(RoomQueues.frame)
    has_password = call(RoomQueues.has_password)
    history = looking(RoomQueues.history)
    info = looking(RoomQueues.info)
    peek = looking(RoomQueues.peek)
    remove = call(RoomQueues.remove)
    remove_source = call(RoomQueues.remove_source)
    send_file = long(RoomQueues.send_file)
    send_many = call(RoomQueues.send_many)
    send_part = call(RoomQueues.send_part)
    send_segments = call(RoomQueues.send_segments)
    sent_parts = call(RoomQueues.sent_parts)
    session = made(RoomQueues.session, AsyncSession)
    set_mode = call(RoomQueues.set_mode)
    set_password = call(RoomQueues.set_password)
    sources = call(RoomQueues.sources)

    def handle(self, *names: str) -> AsyncQueue:
        """One queue or level, as an object with methods."""
        return AsyncQueue(self, names)

    async def create(
        self, name: str, *, keep_processed: bool = True, password: str | None = None, exist_ok: bool = False
    ) -> AsyncQueue:
        """Create a queue without a description. With ``exist_ok`` it may exist already."""
        options: dict[str, Any] = {"keep_processed": keep_processed, "password": password, "exist_ok": exist_ok}
        await self._threads.run(partial(self._here.create, name, **options))
        return self.handle(name)

    #: Sends of several tasks share commits.
    send = through(RoomQueues.send, "_send")

    async def _send(self, queue: str | Sequence[str], body: Any, **options: Any) -> Sent:
        if not options:
            return await self._sends.do(self._here._posting_of(queue, body))
        if "wait" in options:
            return await self._send_waiting(queue, body, **options)
        if options.keys() <= _PLAIN:
            return await self._sends.do(self._here._posting(queue, body, **options))
        return await self._threads.run(partial(self._here.send, queue, body, **options))

    async def _send_waiting(self, queue: str | Sequence[str], body: Any, *, wait: float | None, **options: Any) -> Sent:
        end = self._threads.loop.time() + waited(wait)
        while True:
            try:
                return await self._send(queue, body, **options)
            except QueueFull:
                if self._threads.loop.time() >= end:
                    raise
            await asyncio.sleep(FULL_LOOK_SECONDS)

    @overload
    async def receive(
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
        area: int | None = None,
        lease: None = None,
        where: str | None = None,
    ) -> Received: ...
    @overload
    async def receive(
        self, *queue: str, lease: float | Literal[True], wait: float | None = None, where: str | None = None
    ) -> AsyncLeased: ...
    async def receive(self, *queue: str, **options: Any) -> Received | AsyncLeased:
        """Receive the next message of a queue, or of the first non-empty queue below a level.

        The options are those of ``room.queues.receive``. A cancelled task has received nothing: a message on its way
        goes back to its place.
        """
        check_call(RoomQueues.receive, queue, options)
        lease, wait, where = options.pop("lease", None), options.pop("wait", None), options.pop("where", None)
        if lease is not None:
            if any(options.values()):
                raise ArgumentInvalid(argument="lease", why="a message that is leased is received whole")
            leased = await self._lease(queue, lease, wait, where)
            return AsyncLeased(leased)
        if any(options.values()):
            return await self._threads.run(
                partial(self._here.receive, *queue, wait=wait, where=where, **options), apart=bool(wait)
            )
        return await self._next(queue, where, wait)

    async def _next(self, queue: tuple[str, ...], where: str | None, wait: float | None) -> Received:
        return await self._lines.line((queue, None, where), partial(self._look, queue, where), _drop).next(wait)

    def _look(self, queue: tuple[str, ...], where: str | None, count: int) -> Found[Received]:
        """Take up to ``count`` messages, each in its own commit; they are not delivered yet."""
        items: list[Received] = []
        while len(items) < count:
            received = self._here.receive(*queue, where=where, wait=0.0)
            if not isinstance(received, Unread):
                return Found(items, received, self._pause(queue, where))
            items.append(received)
        return Found(items, Received(None))

    async def _lease(
        self, queue: tuple[str, ...], lease: float | Literal[True], wait: float | None, where: str | None
    ) -> AsyncLeasedMessage | None:
        line = self._lines.line((queue, lease, where), partial(self._look_leased, queue, lease, where), _release)
        message: LeasedMessage | None = await line.next(wait)
        return None if message is None else AsyncLeasedMessage(self._ends, message)

    def _look_leased(
        self, queue: tuple[str, ...], lease: float | Literal[True], where: str | None, count: int
    ) -> Found[LeasedMessage | None]:
        leased = self._room.consumers.receive_many(*queue, count=count, lease=lease, where=where)
        return Found([*leased], None, 0.0 if leased else self._pause(queue, where))

    def _pause(self, queue: tuple[str, ...], where: str | None) -> float:
        return self._room._parts.leasing.pause(queue, Selector.of(where))


#: What a send may say and still share the commits of others.
_PLAIN = {"format", "type", "properties", "idempotency_key", "cause"}


class AsyncQueue:
    """A queue or a level of the tree, as an object with methods."""

    def __init__(self, queues: AsyncQueues, names: Sequence[str]) -> None:
        self._queues = queues
        self.names = tuple(names)

    def __repr__(self) -> str:
        return f"<queue {' '.join(self.names)}>"

    async def send(self, body: Any, **options: Any) -> Sent:
        """Send one message; takes the arguments of ``AsyncRoom.send``."""
        return await self._queues.send(self.names, body, **options)

    @overload
    async def receive(self, *, lease: None = None, **options: Any) -> Received: ...
    @overload
    async def receive(self, *, lease: float | Literal[True], **options: Any) -> AsyncLeased: ...
    async def receive(self, *, lease: float | None = None, **options: Any) -> Received | AsyncLeased:
        """Receive the next message; takes the arguments of ``AsyncRoom.receive``."""
        asked = {**options, "lease": lease}
        received: Received | AsyncLeased = await self._queues.receive(*self.names, **asked)
        return received

    async def count(self) -> Accepted:
        """Count messages."""
        return await self._queues.count(*self.names)

    accept = count

    def peek(self, limit: int | None = None, where: str | None = None) -> AsyncListing:
        """Read unprocessed messages, oldest first, without receiving them."""
        return self._queues.peek(*self.names, limit=limit, where=where)

    info = peek

    def history(self, limit: int | None = None) -> AsyncListing:
        """Processed messages, in the order of their processing."""
        return self._queues.history(*self.names, limit=limit)

    async def disable(self, password: Any = "", *, input_only: bool = False, output_only: bool = False) -> Held:
        """Put it on hold."""
        options: dict[str, Any] = {"password": password, "input_only": input_only, "output_only": output_only}
        return await self._queues.disable(*self.names, **options)

    async def enable(self, password: Any = "") -> Held:
        """Take it off hold."""
        return await self._queues.enable(*self.names, password=password)


class AsyncConsumers(Part):
    """Leasing messages, working on them, and delivery policies of queues."""

    _here: RoomConsumers

    def __init__(self, threads: Threads, room: Postroom, queues: AsyncQueues, ends: Ends, whole: AsyncRoom) -> None:
        super().__init__(threads, room.consumers)
        self._rooms = (ref(whole), ref(room))
        self._queues = queues
        self._ends = ends
        self._keeper = room._parts.keeper
        self.worker = room.consumers.worker
        self.stop = room.consumers.stop

    fire = call(RoomConsumers.fire)
    move = long(RoomConsumers.move)
    policy = call(RoomConsumers.policy)
    purge = long(RoomConsumers.purge)
    redrive = long(RoomConsumers.redrive)
    leases = call(RoomConsumers.leases)
    reset_policy = call(RoomConsumers.reset_policy)
    schedule = call(RoomConsumers.schedule)
    schedules = call(RoomConsumers.schedules)
    set_policy = call(RoomConsumers.set_policy)
    unschedule = call(RoomConsumers.unschedule)

    async def run(
        self,
        *,
        until_idle: bool = False,
        report: Callable[[Progress], None] | None = None,
        workers: Workers | None = None,
    ) -> Progress:
        """Run workers until ``stop`` is called; with ``until_idle`` until the queues have nothing to deliver now.

        Coroutine functions are awaited in the loop of this room, so that they can use it; other functions are called in
        threads. A parameter whose type is ``AsyncRoom`` gets this room, an ``AsyncLeasedMessage`` the message. If its
        task is cancelled, the workers finish running calls and lease nothing more.
        """
        threads, rooms = self._threads, tuple(room() for room in self._rooms)
        faces = ((AsyncLeasedMessage, partial(AsyncLeasedMessage, self._ends)),)
        pool = self._here._pool(workers, Surroundings(rooms, faces, threads.awaited, threads.loop.is_closed))
        try:
            return await threads.run(partial(self._here._run, pool, until_idle, report), apart=True)
        except asyncio.CancelledError:
            pool.stop()
            raise

    async def drain(self, workers: Workers | None = None) -> Progress:
        """Run workers of this room, or these, until the queues are empty; for tests."""
        return await self.run(until_idle=True, workers=workers)

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

        A lease that is ``detached`` does not end with this process or this room, only by its number or its time.
        """
        options: dict[str, Any] = {"count": count, "lease": lease, "detached": detached, "where": where}
        check_call(RoomConsumers.receive_many, queue, {**options, "wait": wait})

        def look(count: int) -> Found[list[LeasedMessage]]:
            leased = self._here.receive_many(*queue, **options)
            return Found([leased] if leased else [], [], self._queues._pause(queue, where))

        kind = (queue, count, lease, detached, where)
        leased = await self._queues._lines.line(kind, look, _release_each).next(wait)
        return [AsyncLeasedMessage(self._ends, message) for message in leased]

    async def done_many(self, messages: Iterable[AsyncLeasedMessage]) -> None:
        """Acknowledge several leased messages in one commit; none of them if a lease was lost."""
        ended = [message._leased for message in messages]
        await self._ends.run(partial(self._here.done_many, ended))

    async def lease(self, number: int) -> AsyncLeasedMessage:
        """A leased message by the number of its lease, so that a program can end a lease that another one got."""
        return AsyncLeasedMessage(self._ends, await self._threads.run(partial(self._here.lease, number)))

    async def each(
        self,
        *queue: str,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        where: str | None = None,
    ) -> AsyncGenerator[AsyncLeasedMessage, None]:
        """Leased messages one after another, until the queue was empty for ``wait`` seconds.

        Asking for the next one acknowledges the one before, unless the loop has ended its lease. A loop that is left
        early gives its message back when its generator is closed.
        """
        while (message := await self._queues._lease(queue, lease, wait, where)) is not None:
            try:
                with self._keeper.keeping(message._leased):
                    yield message
            except BaseException:
                if not message.ended:
                    self._threads.start(message._leased.release)
                raise
            if not message.ended:
                await message.done()

    @asynccontextmanager
    async def work(
        self,
        *queue: str,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        where: str | None = None,
    ) -> AsyncIterator[AsyncLeasedMessage | None]:
        """Work on the next message of a queue: None if there is none.

        The end of the block acknowledges the message; if the block raises, the attempt fails, with the error as its
        reason. If its task is cancelled, the message is given back. The lease is extended while the block runs.
        """
        message = await self._queues._lease(queue, lease, wait, where)
        if message is None:
            yield None
            return
        try:
            with self._keeper.keeping(message._leased):
                yield message
        except Exception as error:
            if not message.ended:
                await message.fail(f"{type(error).__name__}: {error}")
            raise
        except BaseException:  # the task is to end: that is no failure of the message
            if not message.ended:
                self._threads.start(message._leased.release)
            raise
        if not message.ended:
            await message.done()


class AsyncRoom:
    """An open room for the tasks of one event loop. Use it with ``async with``."""

    def __init__(self, room: Postroom) -> None:
        self._room = room
        self.url = room.url
        self._connect(room)
        threads = self._threads
        self.definitions = AsyncDefinitions(threads, room.definitions)
        self.gateways = AsyncGateways(threads, room.gateways)
        self.stations = AsyncStations(threads, room.stations)
        self.journal = AsyncJournal(threads, room.journal)
        self.engine = AsyncEngine(threads, room.engine)
        self.access = AsyncAccess(threads, room.access)
        self.operations = AsyncOperations(threads, room.operations)
        self.load = self.definitions.load
        self.queue = self.queues.handle
        self.send = self.queues.send
        self.send_many = self.queues.send_many
        self.receive = self.queues.receive
        self.receive_many = self.consumers.receive_many
        self.work = self.consumers.work
        self.each = self.consumers.each
        self.worker = self.consumers.worker
        self.drain = self.consumers.drain
        self.count = self.queues.count
        self.frame = self.queues.frame
        self.peek = self.queues.peek
        self.client = self.flows.client
        self.publish = self.flows.publish
        self.station = self.stations.at
        self.sphere = self.spheres.open
        self.acknowledge = self.spheres.acknowledge
        self.show = self.journal.show
        self.trace = self.journal.trace
        self.run = self.engine.run
        self.run_until_idle = self.engine.run_until_idle
        self.stream = self.engine.stream
        self.stop = self.engine.stop
        self.backup = self.operations.backup

    def _connect(self, room: Postroom) -> None:
        """Make the parts that wait for messages or share commits."""
        self._threads = threads = Threads()
        self._changes = Changes(room.store, threads)
        ends = Ends(threads, room._parts.leasing)
        self.queues = AsyncQueues(threads, room, Lines(threads, self._changes), ends)
        self.consumers = AsyncConsumers(threads, room, self.queues, ends, self)
        self.flows = AsyncFlows(threads, room.flows)
        self.spheres = AsyncSpheres(threads, room.spheres)

    async def __aenter__(self) -> AsyncRoom:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop workers, wait for running calls, release leases, and close the room; closing again does nothing."""
        closing = asyncio.ensure_future(asyncio.to_thread(self._close))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:  # what was begun must end: else the room would be left open
            await closing
            raise

    def _close(self) -> None:
        self.consumers.stop()
        self._changes.close()
        self._threads.close()
        self._room.close()


def _drop(received: list[Received]) -> None:
    """Release messages that no task has seen: dropping them puts them back."""
    received.clear()


def _release(messages: list[LeasedMessage | None]) -> None:
    for message in messages:
        if message is not None:
            message.release()


def _release_each(batches: list[list[LeasedMessage]]) -> None:
    for batch in batches:
        _release([*batch])
