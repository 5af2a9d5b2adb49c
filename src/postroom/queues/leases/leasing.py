"""Leased receives: a message is delivered for a limited time, and is processed only when its receiver acknowledges it.

Until then it keeps its place in its queue. When the lease times out, or its process ends, the next receiver makes the
message available again. Each verb is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NamedTuple

from postroom.engine.spheres import is_undone, withdraw
from postroom.errors import ArgumentInvalid, LeaseOver, MessageCorrupt, QueueHeld, QueueLocked, StoreCorrupt
from postroom.limits import (
    DELAY_SECONDS_MAX,
    INT_MAX,
    LEASE_SECONDS_MAX,
    LEASES_MAX,
    OWNERS_LOOK_SECONDS,
    REASON_CHARS_MAX,
    SELECT_LOOK_SECONDS,
    WAIT_SECONDS_MAX,
)
from postroom.model.body import storable
from postroom.model.key import key_text
from postroom.model.message import IN_SPHERE, Message, Stored
from postroom.model.moment import in_microseconds, to_datetime
from postroom.queues import locks, selecting
from postroom.queues.leases import returning
from postroom.queues.leases.leased import FailedAttempt, LeasedMessage, LeaseShown
from postroom.queues.selectors import Selector
from postroom.queues.tree.addressing import Names, names_of, on_hold, queues_of, unowned
from postroom.store.kernel import interrupts
from postroom.store.kernel.base import Lent, Store
from postroom.store.kernel.deliveries import Delivery
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.owner import described, process_token
from postroom.store.kernel.policies import STRICT, Policy
from postroom.store.kernel.queues import MEND, Queue
from postroom.store.kernel.transaction import Transaction

NOBODY = ""  # has a lease that only its time ends: a command ends long before its user has done the work


def _bind_nothing(message: Message) -> None:
    """Does nothing; for users without spheres."""


class Asked(NamedTuple):
    """The arguments of a leased receive."""

    names: Names
    seconds: float | None  # None: as long as the queue's policy says
    most: int
    owner: str
    where: Selector | None = None


@dataclass
class _Look:
    """What an attempt has found besides messages."""

    pauses: list[float] = field(default_factory=list)  # how long nothing can happen that wakes nobody
    line: int | None = None  # the one queue that it was
    more: bool = False  # whether others may have something, too

    @property
    def pause(self) -> float:
        return min(self.pauses, default=WAIT_SECONDS_MAX)


class Ended(NamedTuple):
    """The end of a lease: acknowledged or failed."""

    fence: int
    failed: str | None = None  # why; None if the work is done
    final: bool = False  # whether there is no other attempt


class Leasing:
    """The operations on leases, for one user of one store."""

    def __init__(self, store: Store, bind: Callable[[Message], object] = _bind_nothing) -> None:
        self._store = store
        self._bind = bind
        self._known: dict[Names, tuple[int, float | None]] = {}  # where a name led last, and for how long it leases
        self._looked = 0.0  # when it was last looked whether owners live
        self._owner = process_token()  # a store that was opened here is used by no other process
        self._held: set[int] = set()  # leases of this process that nobody has ended through here

    # --- receiving ---

    def receive(
        self,
        queue: Names,
        *,
        seconds: float | None,
        count: int = 1,
        wait: float | None = None,
        owner: str | None = None,
        where: Selector | None = None,
    ) -> list[LeasedMessage]:
        """Lease the next messages of the first queue that has any; waits up to ``wait`` seconds for one."""
        _check(seconds, count, wait)
        who = self._owner if owner is None else owner
        return interrupts.whole(partial(self._receive, queue, seconds, count, wait, who, where), self._not_received)

    def _not_received(self, leased: Iterable[LeasedMessage]) -> None:
        self.release_each([message.lease for message in leased])

    def _receive(
        self, queue: Names, seconds: float | None, count: int, wait: float | None, who: str, where: Selector | None
    ) -> list[LeasedMessage]:
        express = self._lease_express(queue, seconds, count, who) if where is None else []
        if express:
            return express
        leased = self._wait(Asked(names_of(queue), seconds, count, who, where), wait)
        if who != NOBODY:
            self._held.update(message.lease for message in leased)
        for message in leased:
            self._bind(message)
        return leased

    def _lease_express(self, queue: Names, seconds: float | None, count: int, owner: str) -> list[LeasedMessage]:
        known = self._express(queue, seconds)
        if known is None:
            return []
        id, span = known
        return [self._handed(lent, owner, span) for lent in self._lent(id, owner, in_microseconds(span), count)]

    def _express(self, queue: Names, seconds: float | None) -> tuple[int, float] | None:
        """The queue and lease time of a name, if the fast path may be tried."""
        id, usual = self._known.get(queue, (None, None))
        span = usual if seconds is None else seconds
        if id is None or span is None or not self._owners_live(id):
            return None
        return id, span

    def _owners_live(self, id: int) -> bool:
        """Whether the owners of a queue's leases lived a moment ago; checked without a lock."""
        if monotonic() - self._looked <= OWNERS_LOOK_SECONDS:
            return True
        if self._store.read(lambda tx: tx.deliveries.is_stale(tx.queues.to_read(id), owners=True)):
            return False
        self._looked = monotonic()
        return True

    def _handed(self, lent: Lent, owner: str, span: float) -> LeasedMessage:
        stored, fence, attempts, until = lent
        message = LeasedMessage(stored, self, lease=fence, attempts=attempts, until=until, seconds=span)
        if owner != NOBODY:
            self._held.add(fence)
        self._bind(message)
        return message

    def _lent(self, id: int, owner: str, microseconds: int, count: int) -> Sequence[Lent]:
        if count > 1:
            return self._store.lease_some(id, owner, microseconds, count) or ()
        lent = self._store.lease_one(id, owner, microseconds)
        return () if lent is None else (lent,)

    def _wait(self, asked: Asked, wait: float | None) -> list[LeasedMessage]:
        look = _Look()
        leased, obstacle = self._try(asked, look)
        if leased or not wait:
            return _unless(obstacle, leased)
        end = monotonic() + wait
        with self._store.waiter(look.line) as waiter:
            leased, obstacle = self._try(asked, look)
            while not leased and (left := end - monotonic()) > 0:
                interrupts.pausing(waiter.wait, min(left, look.pause))
                if obstacle is not None or self._may_lease(asked, look):
                    leased, obstacle = self._try(asked, look)
            if leased and look.more:
                waiter.pass_on()
            return _unless(obstacle, leased)

    def _may_lease(self, asked: Asked, look: _Look) -> bool:
        """Whether an attempt is worthwhile, checked without a lock.

        Not for the first attempt of a waiting receiver, which may miss a send that is being committed.
        """
        owners = monotonic() - self._looked > OWNERS_LOOK_SECONDS

        def work(tx: Transaction) -> bool:
            look.pauses.clear()
            for queue in queues_of(tx, asked.names):
                policy = tx.policies.of(queue)
                stale = tx.deliveries.is_stale(queue, owners=owners) or bool(tx.handouts.over(queue))
                if stale or not queue.releases or tx.deliveries.is_ready(queue, policy):
                    return True
                look.pauses.append(self._pause(tx, queue, asked.where))
            return False

        worth = self._store.read(work)
        if owners and not worth:
            self._looked = monotonic()
        return worth

    def _try(self, asked: Asked, look: _Look) -> tuple[list[LeasedMessage], QueueHeld | QueueLocked | None]:
        """Try to lease; also returns the obstacle, and the longest sleep before the next attempt."""
        owners = monotonic() - self._looked > OWNERS_LOOK_SECONDS
        try:
            outcome = self._store.transact("hand-out", partial(self._lease, asked, owners, look))
        except (QueueLocked, QueueHeld) as obstacle:
            look.pauses.clear()
            return [], obstacle
        if owners:
            self._looked = monotonic()
        if isinstance(outcome, MessageCorrupt):
            raise outcome
        return outcome, None

    def _lease(self, asked: Asked, owners: bool, look: _Look, tx: Transaction) -> list[LeasedMessage] | MessageCorrupt:
        look.pauses.clear()
        held: list[Queue] = []
        queues = queues_of(tx, asked.names)
        look.line = queues[0].id if len(queues) == 1 and asked.where is None else None
        for candidate in queues:
            queue, policy = unowned(candidate), tx.policies.of(candidate)
            stale = tx.deliveries.is_stale(queue, owners=owners)
            alone = policy.ordered or asked.where is not None or stale
            if not (alone or queue.unprocessed):
                queue = tx.queues.settled(queue.id)
            if alone or queue.unprocessed:
                queue = tx.queues.locked(queue.id)  # alone: what others sent or took is counted before this changes it
            if self.refresh(tx, queue, policy, owners=owners):
                queue = tx.queues.to_read(queue.id)
            if not queue.releases:
                held.append(queue)
                continue
            locks.free(tx, queue)  # also of our own: its reader is in the midst of a message
            claimed = _claimed(tx, queue, policy, asked)
            if claimed:
                if look.line is not None and not policy.ordered:
                    self._known[asked.names] = (queue.id, policy.lease)
                look.more = policy.order != STRICT and queue.unprocessed > len(claimed)
                return self._give_out(tx, queue, policy, claimed, asked)
            if asked.where is None:
                self._check_empty(tx, queue, policy)
            look.pauses.append(self._pause(tx, queue, asked.where))
        if held and len(held) == len(queues):
            raise on_hold(tx, held[0], "release", asked.names)
        return []

    def _give_out(
        self, tx: Transaction, stale: Queue, policy: Policy, claimed: Sequence[Stored], asked: Asked
    ) -> list[LeasedMessage] | MessageCorrupt:
        queue = tx.queues.locked(stale.id)
        seconds = policy.lease if asked.seconds is None else asked.seconds
        until = tx.now + in_microseconds(seconds)
        leased: list[LeasedMessage] = []
        for stored in claimed:
            if not stored.sound:
                tx.messages.set_aside(queue, stored)
                if not leased:
                    return MessageCorrupt(key=key_text(stored.key), queue=queue.name)
                continue
            attempts = tx.deliveries.details(stored.key).attempts + 1
            fence = tx.deliveries.lease(queue, stored, asked.owner, until, policy)
            about = {"lease": fence, "attempts": attempts, "until": until}
            leased.append(LeasedMessage(stored, self, seconds=seconds, **about))
        return leased

    def refresh(self, tx: Transaction, queue: Queue, policy: Policy, *, owners: bool) -> bool:
        """Take back abandoned leases, release due messages, and remove expired ones; False if there were none."""
        restored = [returning.restore(tx, handout, returning.ENDED) for handout in tx.handouts.over(queue)]
        if not tx.deliveries.is_stale(queue, owners=owners):
            return bool(restored)
        queue = tx.queues.locked(queue.id)
        back = tx.deliveries.lapse(queue, owners=owners) + tx.deliveries.free_due(queue)
        for stored in back:
            self._settle_sphere(tx, queue, stored)
        return bool(restored or back) | bool(tx.deliveries.expire(queue, policy))

    def _settle_sphere(self, tx: Transaction, queue: Queue, stored: Stored) -> None:
        """Withdraw a returning message whose sphere has failed meanwhile."""
        if IN_SPHERE in stored.properties and tx.deliveries.details(stored.key).state == State.UNPROCESSED:
            withdraw(tx, queue.id, stored)

    def _check_empty(self, tx: Transaction, queue: Queue, policy: Policy) -> None:
        """Raise if the queue's count does not match its messages; on SQLite nothing else changes them meanwhile."""
        if tx.session.numbers_without_gaps and not policy.ordered:
            if queue.unprocessed:
                raise StoreCorrupt(why=f"{queue.name} counts {queue.unprocessed} messages and has none. {MEND}")
            tx.messages.check_end([queue])

    def pause(self, names: Names, where: Selector | None = None) -> float:
        """The shortest pause of all queues of a reference."""
        return self._store.read(lambda tx: min(self._pause(tx, queue, where) for queue in queues_of(tx, names)))

    def _pause(self, tx: Transaction, queue: Queue, where: Selector | None) -> float:
        """Seconds until something may happen without a notification: a lease or process ends, or a message is due.

        With a selector, any message that expires may let the next one match.
        """
        moment = tx.deliveries.next_change(queue)
        usual = WAIT_SECONDS_MAX if where is None else SELECT_LOOK_SECONDS
        if moment is None:
            return usual
        others = any(delivery.owner not in (NOBODY, self._owner) for delivery in tx.deliveries.all(queue))
        until = min(usual, max(0.0, (moment - tx.now) / 1_000_000) + 0.001)
        return min(until, OWNERS_LOOK_SECONDS) if others else until

    # --- the end ---

    def done(self, fence: int) -> None:
        if not self._store.done_one(fence):
            self._store.transact("done", partial(self._done, [fence]))
        self._held.discard(fence)

    def done_many(self, fences: Sequence[int]) -> None:
        """Acknowledge all in one commit; if a lease is over, raise and change nothing."""
        if not fences:
            return
        if not self._store.done_some(fences):
            self._store.transact("done", partial(self._done, fences))
        self._held.difference_update(fences)

    def _done(self, fences: Sequence[int], tx: Transaction) -> None:
        for fence in fences:
            tx.wake_next(_queue_of(tx, tx.deliveries.done(fence)))  # the next of its order or key may be waited for

    def release(self, fence: int, delay: float = 0.0) -> None:
        if not 0 <= delay <= DELAY_SECONDS_MAX:
            raise ArgumentInvalid(argument="delay", why=f"seconds from 0 to {DELAY_SECONDS_MAX:.0f}")
        self._store.transact("release", partial(self._release, fence, in_microseconds(delay)))
        self._held.discard(fence)

    def _release(self, fence: int, delay: int, tx: Transaction) -> None:
        self._came_back(tx, tx.deliveries.release(fence, delay))

    def _came_back(self, tx: Transaction, stored: Stored) -> None:
        queue = tx.queues.to_read(_queue_of(tx, stored))
        self._settle_sphere(tx, queue, stored)
        tx.wake_next(queue.id)

    def extend(self, fences: Sequence[int], seconds: float) -> int:
        """Extend leases; returns their new end."""
        _check(seconds, 1, None)

        def work(tx: Transaction) -> int:
            until = tx.now + in_microseconds(seconds)
            for fence in fences:
                tx.deliveries.extend(fence, until)
            return until

        return self._store.transact("extend", work)

    def fail(self, fence: int, reason: str, *, final: bool = False) -> str | None:
        if not isinstance(reason, str):
            raise ArgumentInvalid(argument="reason", why="text is expected")
        why = storable(reason.strip()) or "it failed"  # often it is the text of an error, which may quote anything
        buried = self._store.transact("fail", lambda tx: self._fail(tx, Ended(fence, why, final))[1])
        self._held.discard(fence)
        return buried

    def fail_by_worker(self, fence: int, reason: str, *, final: bool) -> FailedAttempt:
        """Like ``fail``, and tells what becomes of the message.

        In a queue that would deliver it at once, without limit, it waits longer after each failure.
        """
        ended = Ended(fence, storable(reason.strip()) or "it failed", final)

        def work(tx: Transaction) -> FailedAttempt:
            leased = tx.deliveries.find(fence)
            stored, buried = self._fail(tx, ended, by_worker=True)
            assert leased is not None, "else its end is refused"
            attempts = tx.policies.of(tx.queues.to_read(leased.queue)).attempts
            if buried is not None:
                return FailedAttempt(buried, None, attempts)
            over, due = _over(tx, stored), tx.deliveries.details(stored.key).due
            return FailedAttempt(None, None if due is None else to_datetime(due), attempts, over)

        failed = self._store.transact("fail", work)
        self._held.discard(fence)
        return failed

    def _fail(self, tx: Transaction, ended: Ended, *, by_worker: bool = False) -> tuple[Stored, str | None]:
        assert ended.failed is not None
        why = ended.failed[:REASON_CHARS_MAX]
        stored, buried = tx.deliveries.fail(ended.fence, why, final=ended.final, by_worker=by_worker)
        if buried is None:
            self._came_back(tx, stored)
        else:
            tx.wake_next(_queue_of(tx, stored))
        return stored, buried

    def end(self, tx: Transaction, ended: Ended) -> None:
        """End a lease within a transaction; raises ``LeaseOver``, and then nothing has changed."""
        if ended.failed is None:
            tx.wake_next(_queue_of(tx, tx.deliveries.done(ended.fence)))
        else:
            self._fail(tx, ended)

    def end_each(self, every: Sequence[Ended]) -> list[LeaseOver | None]:
        """End independent leases in one commit, each with its own outcome."""

        def work(tx: Transaction) -> list[LeaseOver | None]:
            outcomes: list[LeaseOver | None] = []
            for ended in every:
                try:
                    self.end(tx, ended)
                except LeaseOver as over:
                    outcomes.append(over)
                else:
                    outcomes.append(None)
            return outcomes

        outcomes = self._store.transact("done", work)
        self.forget(ended.fence for ended in every)
        return outcomes

    def forget(self, fences: Iterable[int]) -> None:
        """Forget leases that were ended elsewhere."""
        self._held.difference_update(fences)

    def release_each(self, fences: Sequence[int]) -> None:
        """Release messages that their receiver never got; expired leases are skipped."""

        def work(tx: Transaction) -> None:
            for fence in fences:
                with suppress(LeaseOver):  # its time was over, and someone has come by
                    self._release(fence, 0, tx)

        self._store.transact("release", work)
        self.forget(fences)

    def extend_each(self, fences: Sequence[int], seconds: float) -> list[int]:
        """Extend leases; returns those that are over already."""

        def work(tx: Transaction) -> list[int]:
            over = [fence for fence in fences if tx.deliveries.find(fence) is None]
            for fence in sorted(set(fences) - set(over)):
                tx.deliveries.extend(fence, tx.now + in_microseconds(seconds))
            return over

        return self._store.transact("extend", work)

    def find(self, fence: int) -> LeasedMessage:
        """A lease by its number."""
        if not isinstance(fence, int) or isinstance(fence, bool):
            raise ArgumentInvalid(argument="lease", why="the number of a lease is expected")
        if not 0 < fence < 2**63:
            raise LeaseOver(lease=fence, why="no message is leased under this number")

        def work(tx: Transaction) -> LeasedMessage:
            delivery = tx.deliveries.find(fence)
            stored = None if delivery is None else tx.messages.find(delivery.message)
            if delivery is None or stored is None:
                raise LeaseOver(lease=fence, why="no message is leased under this number")
            policy = tx.policies.of(tx.queues.to_read(delivery.queue))
            attempts = tx.deliveries.details(stored.key).attempts
            about = {"lease": fence, "attempts": attempts, "until": delivery.until}
            return LeasedMessage(stored, self, seconds=policy.lease, **about)

        return self._store.read(work)

    def shown(self, after: int, limit: int) -> list[LeaseShown]:
        """Leases, oldest first."""
        if not 0 <= after < 2**63:
            raise ArgumentInvalid(argument="after", why="the number of a lease is expected")
        if not 1 <= limit <= INT_MAX:
            raise ArgumentInvalid(argument="limit", why="at least 1")

        def work(tx: Transaction) -> list[LeaseShown]:
            several = tx.deliveries.after(after, limit)
            attempts = tx.deliveries.attempts([delivery.message for delivery in several])
            return [_shown(tx, delivery, attempts.get(delivery.message, 0)) for delivery in several]

        return self._store.read(work)

    def each(
        self, queue: Names, *, seconds: float | None, wait: float | None, where: Selector | None = None
    ) -> Iterator[LeasedMessage]:
        """Messages one after another; asking for the next acknowledges the one before, unless its lease was ended."""
        leased = self.receive(queue, seconds=seconds, wait=wait, where=where)
        while leased:
            (message,) = leased
            try:
                yield message
            except BaseException:
                if not message.ended:
                    message.release()
                raise
            leased = []
            if where is None:
                leased = interrupts.whole(partial(self._turned, message, queue, seconds), self._not_received)
            if not message.ended:
                message.done()
            leased = leased or self.receive(queue, seconds=seconds, wait=wait, where=where)

    def _turned(self, message: LeasedMessage, queue: Names, seconds: float | None) -> list[LeasedMessage]:
        """End a lease and take the next in one commit, if possible; else nothing is ended yet."""
        known = self._express(queue, seconds)
        if known is None or message.ended:
            return []
        id, span = known
        message.ended, lent = self._store.turn_one(message.lease, id, self._owner, in_microseconds(span))
        if message.ended:
            self._held.discard(message.lease)
        return [] if lent is None else [self._handed(lent, self._owner, span)]

    def close(self) -> None:
        """Release all leases of this user: nobody could end them any more."""
        if self._held:
            self.release_each(sorted(self._held))


def _shown(tx: Transaction, delivery: Delivery, attempts: int) -> LeaseShown:
    """A lease; its number is that of its first journal line."""
    began = tx.journal.time_of(delivery.fence)
    until = to_datetime(delivery.until)
    return LeaseShown(
        delivery.fence,
        key_text(delivery.message),
        tx.queues.to_read(delivery.queue).name,
        tx.journal.actor_of(delivery.fence),
        described(delivery.owner) if delivery.owner else "",
        until if began is None else to_datetime(began),
        until,
        attempts,
        delivery.is_lost(tx.now),
    )


def _over(tx: Transaction, stored: Stored) -> str | None:
    """Why a message that is given back is delivered to nobody, if that is known already."""
    if is_undone(tx, stored):
        return "its sphere has failed"
    details = tx.deliveries.details(stored.key)
    if details.expires is not None and details.expires <= max(details.due or 0, tx.now):
        return "it expires before"
    return None


def _queue_of(tx: Transaction, stored: Stored) -> int:
    queue = tx.queues.named_to_read(stored.queue)
    assert queue is not None, "queues are retired, never deleted"
    return queue.id


def _unless(obstacle: QueueHeld | QueueLocked | None, leased: list[LeasedMessage]) -> list[LeasedMessage]:
    """The leased messages, or raise the remaining obstacle."""
    if obstacle is not None:
        raise obstacle
    return leased


def _claimed(tx: Transaction, queue: Queue, policy: Policy, asked: Asked) -> Sequence[Stored]:
    if asked.where is None:
        return tx.deliveries.claim(queue, asked.most, policy)
    return selecting.claim(tx, queue, asked.where, asked.most, policy)


def _check(seconds: float | None, count: int, wait: float | None) -> None:
    if seconds is not None and not 0 < seconds <= LEASE_SECONDS_MAX:
        raise ArgumentInvalid(argument="lease", why=f"seconds above 0, up to {LEASE_SECONDS_MAX:.0f}")
    if not isinstance(count, int) or not 1 <= count <= LEASES_MAX:
        raise ArgumentInvalid(argument="count", why=f"1 to {LEASES_MAX} messages")
    waited(wait)


def waited(wait: float | None) -> float:
    """Check the time to wait."""
    if wait is not None and not 0 <= wait <= WAIT_SECONDS_MAX:
        raise ArgumentInvalid(argument="wait", why=f"seconds from 0 to {WAIT_SECONDS_MAX:.0f}")
    return wait or 0.0
