"""Consumers: leased messages, delivery policies, workers, schedules, dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, Unpack
from weakref import ref

from postroom.errors import ArgumentInvalid
from postroom.limits import LEASES_SHOWN
from postroom.model.body import Format
from postroom.model.cron import Cron
from postroom.model.message import Draft, Value
from postroom.queues.leases.leased import LeasedMessage, LeaseShown
from postroom.queues.leases.leasing import NOBODY
from postroom.queues.leases.working import F, Pool, Progress, Surroundings, Workers
from postroom.queues.relocating import Edit, Relocated
from postroom.queues.selectors import Selector
from postroom.queues.tree.addressing import said
from postroom.room.parts import Parts, RoomPart
from postroom.store.kernel.policies import Policy
from postroom.store.tables.schedules import Schedule


class RoomConsumers(RoomPart):
    """Leasing messages, working on them, and delivery policies of queues."""

    def __init__(self, parts: Parts, room: object) -> None:
        super().__init__(parts)
        self._room = ref(room)  # a room that nobody holds any more is closed at once
        self._pools: set[Pool] = set()

    def receive_many(
        self,
        *queue: str,
        count: int,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        detached: bool = False,
        where: str | None = None,
    ) -> list[LeasedMessage]:
        """Lease up to ``count`` messages of a queue in one commit; waits up to ``wait`` seconds for the first.

        A lease that is ``detached`` does not end with this process or this room, only by its number or its time.
        ``where`` chooses by properties, as of ``room.receive``.
        """
        owner, selector = NOBODY if detached else None, Selector.of(where)
        seconds = _seconds(lease)
        return self._parts.leasing.receive(queue, seconds=seconds, count=count, wait=wait, owner=owner, where=selector)

    def done_many(self, messages: Iterable[LeasedMessage]) -> None:
        """Acknowledge several leased messages in one commit; none of them if a lease was lost."""
        ended = list(messages)
        if not all(isinstance(getattr(message, "lease", None), int) for message in ended):
            raise ArgumentInvalid(argument="messages", why="a list of leased messages is expected")
        self._parts.leasing.done_many([message.lease for message in ended])
        for message in ended:
            message.ended = True

    def each(
        self,
        *queue: str,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        where: str | None = None,
    ) -> Iterator[LeasedMessage]:
        """Leased messages one after another, until the queue was empty for ``wait`` seconds.

        Asking for the next one acknowledges the one before, unless the loop has ended its lease. A loop that is left
        early gives its message back.
        """
        return self._parts.leasing.each(queue, seconds=_seconds(lease), wait=wait, where=Selector.of(where))

    @contextmanager
    def work(
        self,
        *queue: str,
        lease: float | Literal[True] = True,
        wait: float | None = None,
        where: str | None = None,
    ) -> Iterator[LeasedMessage | None]:
        """Work on the next message of a queue: None if there is none.

        The end of the block acknowledges the message; if the block raises, the attempt fails, with the error as its
        reason. The lease is extended while the block runs.
        """
        selector = Selector.of(where)
        received = self._parts.leasing.receive(queue, seconds=_seconds(lease), wait=wait, where=selector)
        if not received:
            yield None
            return
        (message,) = received
        try:
            with self._parts.keeper.keeping(message):
                yield message
        except Exception as error:
            if not message.ended:
                message.fail(f"{type(error).__name__}: {error}")
            raise
        except BaseException:  # the program is to end: that is no failure of the message
            if not message.ended:
                message.release()
            raise
        if not message.ended:
            message.done()

    def worker(self, *queue: str, concurrency: int = 1, lease: float | None = None) -> Callable[[F], F]:
        """A decorator: the function is called with messages of a queue, up to ``concurrency`` at a time, while ``run``
        runs.

        It gets the message; or, if its parameter has another type, the body as a value of that type: a dataclass, a
        TypedDict, a pydantic model, a list of them, and so on. A body that does not fit becomes a dead letter. A
        parameter whose type is ``Postroom`` gets this room. Coroutine functions are awaited. Returning acknowledges the
        message; raising fails the attempt.
        """
        return self._parts.workers.worker(*queue, concurrency=concurrency, lease=lease)

    def run(
        self,
        *,
        until_idle: bool = False,
        report: Callable[[Progress], None] | None = None,
        workers: Workers | None = None,
    ) -> Progress:
        """Run workers until ``stop`` is called; with ``until_idle`` until the queues have nothing to deliver now."""
        return self._run(self._pool(workers, Surroundings((self._room(),))), until_idle, report)

    def _pool(self, workers: Workers | None, around: Surroundings) -> Pool:
        chosen = self._parts.workers if workers is None else workers
        return Pool(self._parts.leasing, self._parts.keeper, chosen.workers, self._parts.scheduling.fire, around)

    def _run(self, pool: Pool, until_idle: bool, report: Callable[[Progress], None] | None) -> Progress:
        self._pools.add(pool)
        try:
            return pool.run(until_idle=until_idle, report=report)
        finally:
            self._pools.discard(pool)

    def drain(self, workers: Workers | None = None) -> Progress:
        """Run workers of this room, or these, until the queues are empty; for tests."""
        return self.run(until_idle=True, workers=workers)

    def stop(self) -> None:
        """Stop workers: they finish running calls and lease nothing more."""
        for pool in list(self._pools):
            pool.stop()

    def lease(self, number: int) -> LeasedMessage:
        """A leased message by the number of its lease, so that a program can end a lease that another one got."""
        return self._parts.leasing.find(number)

    def leases(self, *, after: int = 0, limit: int = LEASES_SHOWN) -> list[LeaseShown]:
        """The current leases, oldest first: message, owner, end.

        ``after`` continues after the lease with that number.
        """
        return self._parts.leasing.shown(after, limit)

    def policy(self, *queue: str) -> dict[str, Policy]:
        """The delivery policy of a queue, or of each queue below a level."""
        return self._parts.policies.of(queue)

    def set_policy(self, *queue: str, **changes: Unpack[PolicyChanges]) -> list[str]:
        """Change settings of the policy of a queue, or of each queue below a level; the others stay.

        ``lease``: seconds that a message is leased for. ``attempts``: how often a message is delivered; after the last
        it goes to the queue ``dead_letters`` (by default the queue's name with ``.dead``). ``backoff``: seconds before
        the second attempt, twice as long before each one after, up to ``backoff_max``; the real time is random between
        half of it and all of it. ``order``: with ``strict`` the next message waits while one is leased, with ``free``
        it does not. ``by`` names a property: messages with the same value are delivered one at a time, others in
        parallel. ``expired``: whether messages that have expired are dropped (``drop``) or go to the ``dead-letters``.
        ``max_messages``, ``max_bytes``, ``max_age``: limits for the number of messages, the bytes of their bodies, and
        the age of the oldest waiting one; beyond, a send is refused, or (``over="dead-letters"``) the oldest become
        dead letters. ``retry``: which failures of rules, arcs and counters are retried: transient ones (``passing``) or
        ``all``. Returns the queues whose policy changed.
        """
        return self._parts.policies.change(queue, dict(changes))

    def reset_policy(self, *queue: str) -> list[str]:
        """Remove the policies of queues; returns those that changed."""
        return self._parts.policies.reset(queue)

    def schedule(
        self,
        name: str,
        cron: str,
        *queue: str,
        body: Any,
        format: str | Format | None = None,
        properties: Mapping[str, Value] | None = None,
        zone: str = "UTC",
        catch_up: str = "last",
    ) -> Schedule:
        """Send a message to a queue at each time of a cron line, such as ``0 7 * * 1-5``, in the time of ``zone``.

        Engines and workers send it, once, however many run. ``catch_up`` says what they send for times that were
        missed: nothing (``none``), one message for the ``last`` of these times, or one for each (``all``).
        """
        draft = Draft.of(body, format, None, properties)
        return self._parts.scheduling.add(name, Cron.of(cron, zone), queue, draft, catch_up)

    def schedules(self) -> list[Schedule]:
        """All schedules, and when each is due next."""
        return self._parts.scheduling.all()

    def unschedule(self, name: str) -> None:
        """Remove a schedule."""
        self._parts.scheduling.remove(name)

    def fire(self) -> int:
        """Send what schedules have due now, as engines and workers do; returns the number of messages."""
        return self._parts.scheduling.fire()

    def purge(self, *queue: str, dry: bool = False) -> Relocated:
        """Delete all unread messages of a queue; leased ones stay. ``dry`` only counts."""
        return self._parts.relocating.purge(queue, dry=dry)

    def move(
        self,
        *queue: str,
        to: str | Sequence[str],
        keys: Sequence[str] | None = None,
        limit: int | None = None,
        dry: bool = False,
    ) -> Relocated:
        """Move waiting messages from one queue to the end of another: these keys, or the oldest ``limit``, or all."""
        return self._parts.relocating.move(queue, said(to), keys=keys, limit=limit, dry=dry)

    def redrive(
        self,
        *queue: str,
        to: str | Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
        edit: Edit | Mapping[str, Any] | None = None,
        dry: bool = False,
    ) -> Relocated:
        """Move dead letters back to the queues where they failed, or ``to`` another; their attempts begin anew.

        ``edit`` is a function that gets each message and returns another body or None, or a mapping of bodies by key.
        An edited message is a new one, caused by the old one. For an error message of rules or arcs, the failed message
        is sent again so; with ``to``, the error message itself is moved.
        """
        target = None if to is None else said(to)
        change = _by_key(edit) if isinstance(edit, Mapping) else edit
        return self._parts.relocating.redrive(queue, to=target, keys=keys, limit=limit, edit=change, dry=dry)


class PolicyChanges(TypedDict, total=False):
    """The settings of a policy that can be changed."""

    lease: float
    attempts: int | None
    backoff: float
    backoff_max: float
    dead_letters: str | None
    order: str
    by: str | None
    expired: str
    max_messages: int | None
    max_bytes: int | None
    max_age: float | None
    over: str
    retry: str


def _by_key(bodies: Mapping[str, Any]) -> Edit:
    return lambda message: bodies.get(message.key)


def _seconds(lease: float | Literal[True]) -> float | None:
    return None if lease is True else lease
