"""Receiving: the next message, whole or by segments, final at once or when its reader confirms it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from postroom.errors import (
    ArgumentInvalid,
    MessageCorrupt,
    OutputFailed,
    QueueHeld,
    QueueLocked,
    QueueUnknown,
    StoreCorrupt,
    StoreError,
)
from postroom.limits import (
    LOCK_WAIT_SECONDS,
    WAIT_SECONDS_MAX,
)
from postroom.model.body import Format
from postroom.model.key import key_text
from postroom.model.message import Message, Stored
from postroom.queues import locks
from postroom.queues.leases import returning
from postroom.queues.leases.returning import Deliver, Taken, Unconfirmed, is_main
from postroom.queues.results import Received
from postroom.queues.segments import Area, End, Portion, Segments
from postroom.queues.tree.addressing import (
    Names,
    live,
    names_of,
    no_queues,
    on_hold,
    queues_of,
    receivable,
    unowned,
)
from postroom.queues.user import QueueUser
from postroom.store.kernel import interrupts
from postroom.store.kernel.deliveries import lane_of
from postroom.store.kernel.owner import own_token, process_token
from postroom.store.kernel.queues import MEND, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.handouts import Handout

if TYPE_CHECKING:
    from postroom.queues.selectors import Selector
    from postroom.store.kernel.policies import Policy

#: What may keep a message from being received, and may end while someone waits.
Obstacle = QueueLocked | QueueHeld

#: Is given a transaction, and what takes a message in it; answers with what that answered.
Within = Callable[[Transaction, Callable[[], Received | MessageCorrupt]], Received | MessageCorrupt]


class ReceiveVerbs(QueueUser):
    """The verbs that receive."""

    def receive(
        self,
        queue: Names,
        *,
        segment: bool = False,
        wait: float | None = None,
        within: Within | None = None,
        deliver: Deliver | None = None,
        bind: Callable[[Message], object] | None = None,
        area: Area | None = None,
        unconfirmed: Unconfirmed | None = None,
        where: Selector | None = None,
    ) -> Received:
        """The next message (or segment) of the first non-empty queue; waits up to ``wait`` seconds for one.

        ``within`` gets the transaction and takes the message itself, in the same commit; the message is reserved for it
        until it is taken or given back. ``deliver`` gets the result, and the receive is final when it returns: if it
        raises, or this process dies, the message is back in its place. ``bind`` gets the message first. With ``area``
        the result is a portion that fits; the queue stays locked until the last one. With ``unconfirmed``, the earlier
        message there is confirmed in the same commit, and this one takes its place.
        """
        if wait is not None and not 0 <= wait <= WAIT_SECONDS_MAX:
            raise ArgumentInvalid(argument="wait", why=f"seconds from 0 to {WAIT_SECONDS_MAX:.0f}")
        if not queue:
            self._refuse_nameless()
        given: list[Taken] = []
        receive = partial(
            self._receive, queue, segment, wait, within, deliver, bind, area, unconfirmed, where, given=given
        )
        if deliver is not None or within is not None or unconfirmed is not None:
            return receive()
        return interrupts.whole(receive, lambda _: self._not_received(given))

    def _not_received(self, given: Sequence[Taken]) -> None:
        for taken in given:
            returning.undo(self._store, taken, "its receiver was interrupted")

    def _receive(
        self,
        queue: Names,
        segment: bool,
        wait: float | None,
        within: Within | None,
        deliver: Deliver | None,
        bind: Callable[[Message], object] | None,
        area: Area | None,
        unconfirmed: Unconfirmed | None,
        where: Selector | None,
        given: list[Taken],
    ) -> Received:
        known = self._known.get(queue)
        plain = not segment and within is None and deliver is None and area is None and where is None
        if known is not None and plain:
            message = self._store.receive_one(known)
            if message is not None:
                if bind is not None:
                    bind(message)
                received, taken = Received(message, (), (), True), Taken(known, message._stored)
                given.append(taken)
                return received if is_main() else self._watched(received, taken)
        handed = self._hand_express(known, area, unconfirmed) if where is None else None
        if handed is not None:
            return handed
        asked = _Asked(names_of(queue), segment, within, deliver is not None, [], area, unconfirmed, where)
        received = self._wait(asked, wait)
        if unconfirmed is not None or not received or within is not None:
            return received
        (taken,) = asked.taken
        given.append(taken)
        if bind is not None and received.message is not None:
            bind(received.message)
        if deliver is None:
            return self._watched(received, taken)
        self._hand_over(received, taken, deliver)
        return received

    def _hand_express(self, queue: int | None, area: Area | None, unconfirmed: Unconfirmed | None) -> Received | None:
        """The fast path: a message that fits in one portion, for a program with nothing to confirm."""
        if queue is None or area is None or unconfirmed is None or unconfirmed.taken:
            return None
        handed = self._store.hand_one(queue, own_token(), partial(_is_one_portion, area))
        if handed is None:
            return None
        stored, path = handed
        size = len(stored.body)
        unconfirmed.taken = [Taken(queue, stored, 0, True, False, (1, size))]
        portion = Portion(End.MESSAGE, size, size, tuple(path.split("/")))
        return Received(stored.message(), (), (), end_of_message=True, portion=portion)

    def _watched(self, received: Received, taken: Taken) -> Received:
        return received if self._returns is None or is_main() else self._returns.watched(received, taken)

    def _wait(self, asked: _Asked, wait: float | None) -> Received:
        received, obstacle = self._try_receive(asked)
        if received or (not wait and not isinstance(obstacle, QueueLocked)):
            return _unless(obstacle, received)
        end = monotonic() + (LOCK_WAIT_SECONDS if wait is None else wait)
        with self._store.waiter() as waiter:
            while True:
                received, obstacle = self._try_receive(asked)
                left = end - monotonic()
                if received or left <= 0 or (wait is None and not isinstance(obstacle, QueueLocked)):
                    return _unless(obstacle, received)
                interrupts.pausing(waiter.wait, min(left, self._leasing.pause(asked.names, asked.where)))

    def _hand_over(self, received: Received, taken: Taken, deliver: Deliver) -> None:
        """Call ``deliver``, then make the receive final, or undo it."""
        try:
            deliver(received)
        except BaseException as error:
            try:
                self._take_back(taken)
            except StoreError as failure:  # whoever comes by when this process has ended does it
                error.add_note(f"message {key_text(taken.stored.key)} is not yet back in its place ({failure})")
            raise
        if not self._store.transact("confirm", partial(self._confirm, taken)):
            why = "this took so long that others can receive it again"
            raise OutputFailed(key=key_text(taken.stored.key), queue=taken.stored.queue, why=why)

    def _confirm(self, taken: Taken, tx: Transaction) -> bool:
        if taken.segment is None:
            return tx.handouts.confirm(taken.stored.key, process_token())
        queue = tx.queues.locked(taken.queue)
        if queue.lock_owner != self._user.owner or queue.lock_message != taken.stored.key:
            return False
        if not taken.last:
            reference = queue.lock_reference or ""
            locks.keep(tx, queue, self._user, reference, taken.stored.key, *taken.then)
            return True
        stored = tx.messages.waiting(queue, taken.stored.key)
        if stored is None:
            return False
        tx.messages.take(queue, stored)
        _unlock(tx, queue)
        return True

    def _take_back(self, taken: Taken) -> None:
        why = "its output failed"
        if taken.segment is None:
            mine = Handout(taken.stored.key, taken.queue, process_token(), 0)
            returning.give_back(self._store, [mine], why)
        elif not taken.locked:  # else the segments before were read, and it goes on there
            self._store.transact("unlock", partial(self._unlock_own, taken.queue, why))

    def _unlock_own(self, queue: int, why: str, tx: Transaction) -> None:
        current = tx.queues.locked(queue)
        if current.lock_owner == self._user.owner:  # it may have been taken over while we waited
            tx.queues.unlock(current, why)
            tx.wake()

    def close(self) -> None:
        """Wait for what is under way."""
        if self._returns is not None:
            self._returns.finish()

    def _refuse_nameless(self) -> NoReturn:
        """Raise for a receive without a queue, with suggestions."""
        names, advice = self._store.read(lambda tx: (receivable(tx), no_queues(tx)))
        if not names:
            raise QueueUnknown(queue="to receive from", nearest=advice)
        raise ArgumentInvalid(argument="queue", why=f"say which queue to receive from, such as: {', '.join(names[:8])}")

    def _try_receive(self, asked: _Asked) -> tuple[Received, Obstacle | None]:
        """Try to receive; also returns an obstacle that may end: a lock, or a hold."""
        segment, within = asked.segment, asked.within
        label = "segment" if segment else "receive"

        def work(tx: Transaction) -> Received | MessageCorrupt:
            asked.taken.clear()
            if asked.unconfirmed is not None:
                asked.unconfirmed.confirm(tx)
            take = partial(self._receive_once, tx, asked)
            return take() if within is None else within(tx, take)

        try:
            outcome = self._store.transact(label, work)
        except (QueueLocked, QueueHeld) as obstacle:
            return Received(None), obstacle
        if asked.unconfirmed is not None:
            asked.unconfirmed.taken = [taken for taken in asked.taken if taken.last]
        if isinstance(outcome, MessageCorrupt):
            raise outcome
        return outcome, None

    def _receive_once(self, tx: Transaction, asked: _Asked) -> Received | MessageCorrupt:
        passed: list[str] = []
        held: dict[str, Queue] = {}
        names = asked.names
        for stale in self._search(tx, names, "/".join(names)):
            policy = tx.policies.of(stale)
            restored = self._leasing.refresh(tx, stale, policy, owners=True)
            queue = tx.queues.locked(stale.id) if restored else stale
            begun = self._begun(tx, queue, asked.where)
            if not queue.releases:
                held[queue.name] = queue
            elif begun is not None:
                return self._release(tx, queue, begun, asked, tuple(passed), tuple(held))
            elif asked.where is not None and _chosen(tx, queue, asked.where, policy) is None:
                passed.append(queue.name)
            elif policy.ordered and not tx.deliveries.claim(queue, 1, policy):
                passed.append(queue.name)  # what is next waits for what is leased
            elif not tx.counts.waiting(queue):
                _check_empty(tx, queue)
                passed.append(queue.name)
            else:
                return self._release(tx, queue, None, asked, tuple(passed), tuple(held))
        if held and not passed:
            raise on_hold(tx, next(iter(held.values())), "release", names)
        return Received(None, tuple(passed), tuple(held))

    def _search(self, tx: Transaction, names: Names, reference: str) -> Iterator[Queue]:
        """The queues of a reference, left to right, each locked when reached.

        A message that is being read by this reference comes first.
        """
        if len(names) == 1:
            queue = tx.queues.named(names[0])
            if queue is not None and not queue.retired:
                unowned(queue)
                self._remember(names, queue.id)
                yield queue
                return
        queues = queues_of(tx, names)
        for queue in queues:
            if queue.lock_owner == self._user.owner and queue.lock_reference == reference and queue.in_use(tx.now):
                queues = [queue]
                break
        if len(queues) == 1 and queues[0].path == reference:
            self._remember(names, queues[0].id)
        for queue in queues:
            yield live(tx, queue, names)

    def _begun(self, tx: Transaction, queue: Queue, where: Selector | None) -> Stored | None:
        """The message that this user is reading; it goes on even if an earlier one has come back."""
        if queue.lock_owner != self._user.owner or queue.lock_message is None or not queue.in_use(tx.now):
            return None
        stored = tx.messages.waiting(queue, queue.lock_message)
        return stored if stored is not None and (where is None or where.chooses(stored.properties)) else None

    def _release(
        self,
        tx: Transaction,
        queue: Queue,
        begun: Stored | None,
        asked: _Asked,
        passed: tuple[str, ...],
        held: tuple[str, ...],
    ) -> Received | MessageCorrupt:
        """Deliver the message being read, else the head of a queue, whole or its next segment."""
        queue = locks.enter(tx, queue, self._user)
        where, policy = asked.where, tx.policies.of(queue)
        stored = begun
        if stored is None:
            stored = tx.messages.head(queue) if where is None else _chosen(tx, queue, where, policy)
        if stored is None:
            raise StoreCorrupt(why=f"{queue.name} counts {queue.unprocessed} messages and has none. {MEND}")
        if not stored.sound:
            tx.messages.set_aside(queue, stored)
            _unlock(tx, queue)
            return MessageCorrupt(key=key_text(stored.key), queue=queue.name)
        if asked.segment or asked.area is not None:
            return self._release_portion(tx, queue, stored, asked, passed, held)
        asked.taken.append(Taken(queue.id, stored))
        (tx.messages.reserve if asked.reserve else tx.messages.take)(queue, stored)
        tx.deliveries.unblock(queue, lane_of(stored, policy))
        if asked.confirmed:
            tx.handouts.add(queue, stored, process_token())
        _unlock(tx, queue)
        return Received(stored.message(processed=tx.now), passed, held, end_of_message=True)

    def _release_portion(
        self,
        tx: Transaction,
        queue: Queue,
        stored: Stored,
        asked: _Asked,
        passed: tuple[str, ...],
        held: tuple[str, ...],
    ) -> Received:
        """Deliver a portion. The queue's lock excludes others, so the message is only taken when confirmed."""
        segments = Segments.of(tx, stored)
        begun = locks.next_segment(queue, stored.key), locks.next_char(queue, stored.key)
        step = segments.portion(*begun, asked.area, whole=not asked.segment)
        last = step.end.completes
        index = min(begun[0], len(segments.spans) - 1)
        asked.taken.append(Taken(queue.id, stored, index, last, queue.lock_owner is not None, step.then))
        if last and not asked.confirmed:
            tx.messages.take(queue, stored)
            if asked.unconfirmed is not None:
                tx.handouts.add(queue, stored, own_token())
            tx.deliveries.unblock(queue, lane_of(stored, tx.policies.of(queue)))
            _unlock(tx, queue)
        else:
            then = (index, step.start) if asked.confirmed else step.then
            locks.keep(tx, queue, self._user, "/".join(asked.names), stored.key, *then)
        portion = Portion(step.end, len(segments.text), step.stop, queue.names)
        message = stored.message(processed=tx.now if last else None, body=step.text)
        return Received(message, passed, held, end_of_message=last, portion=portion)

    def release_locks(self) -> None:
        """Release all locks of this user; the messages start again at the first segment."""

        def work(tx: Transaction) -> None:
            for queue in tx.queues.locked_by(self._user.owner):
                self._unlock_own(queue.id, "its user left", tx)

        if self._store.read(lambda tx: bool(tx.queues.locked_by(self._user.owner))):
            self._store.transact("unlock", work)


class _Asked(NamedTuple):
    """The arguments of a receive."""

    names: Names
    segment: bool
    within: Within | None
    confirmed: bool  # whether the take waits for a confirmation
    taken: list[Taken]
    area: Area | None = None
    unconfirmed: Unconfirmed | None = None
    where: Selector | None = None

    @property
    def reserve(self) -> bool:
        """Whether the message is reserved, for ``within`` to take it."""
        return self.within is not None


def _unless(obstacle: Obstacle | None, received: Received) -> Received:
    """The received message, or raise the remaining obstacle."""
    if obstacle is not None:
        raise obstacle
    return received


def _chosen(tx: Transaction, queue: Queue, where: Selector, policy: Policy) -> Stored | None:
    """The next message that a selector lets through."""
    from postroom.queues.selecting import claim

    return next(iter(claim(tx, queue, where, 1, policy)), None)


def _check_empty(tx: Transaction, queue: Queue) -> None:
    """Raise if a queue that counts no message has one."""
    left = tx.messages.head(queue)
    if left is not None:
        raise StoreCorrupt(why=f"{queue.name} counts no message and has {key_text(left.key)}. {MEND}")
    tx.messages.check_end([queue])


def _unlock(tx: Transaction, queue: Queue) -> None:
    """Clear a lock whose message has left; the message's own journal entry covers it."""
    if queue.lock_owner is not None:
        tx.queues.unlock(queue)
        tx.wake()


def _is_one_portion(area: Area, stored: Stored) -> bool:
    """Whether a message is one segment and fits into an area; else the general path is used."""
    body, properties = stored.body, stored.properties
    in_parts = '"segments":' in properties or '"end":' in properties
    typed = stored.type is not None and stored.format == Format.JSON
    return not in_parts and not typed and body.isascii() and "\n" not in body and len(body) <= area.size
