"""Sending: one message, many to a queue, one to many queues; each in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from postroom.errors import (
    ArgumentInvalid,
    EntryRefused,
    EventInvalid,
    FormatUnclear,
    PostroomError,
    QueueFull,
    QueueHeld,
    QueueLocked,
    QueueNotSingle,
    QueueUnknown,
)
from postroom.limits import (
    BATCH_MESSAGES_MAX,
    FULL_LOOK_SECONDS,
    WAIT_SECONDS_MAX,
)
from postroom.model.body import Format
from postroom.model.key import KeyTexts, key_text
from postroom.model.message import Draft, as_it_looks, draft_hash, looks_like
from postroom.queues import limits, locks, sources, status
from postroom.queues.leases.returning import Unconfirmed
from postroom.queues.repeating import Repeat, checked_key, distributed, once, sent_many
from postroom.queues.results import (
    Delivery,
    Distributed,
    Sent,
    SentMany,
)
from postroom.queues.tree.addressing import (
    Names,
    names_of,
    on_hold,
    one_queue,
    shown,
)
from postroom.queues.user import QueueUser
from postroom.store.kernel.base import Receipt, Sending
from postroom.store.kernel.batch import Batch
from postroom.store.kernel.deliveries import PLAIN, Wanted
from postroom.store.kernel.owner import own_token
from postroom.store.kernel.queues import CLOSED, Admission, Queue
from postroom.store.kernel.transaction import Transaction

#: The constructors' half cost counts where many are sent.
_made = tuple.__new__
#: Is given the time of the transaction; answers with what is asked for a message.
Wish = Callable[[int], Wanted]


class SendVerbs(QueueUser):
    """The verbs that send."""

    def send(
        self,
        queue: Names,
        draft: Draft,
        idempotency_key: str | None = None,
        cause: int | None = None,
        wish: Wish | None = None,
        source: str | None = None,
        *,
        unsaid: bool = False,
    ) -> Sent:
        """Send one message. With ``unsaid``, its format is guessed for the readers of the queue."""
        known, plain = self._known.get(queue), wish is None and not unsaid and source is None
        if known is not None and plain and draft.type is None and cause is None:
            receipt = None if idempotency_key is None else _receipt(names_of(queue), draft, idempotency_key)
            sent = self._store.send_one(known, draft, receipt)
            if sent is not None:
                return Sent(sent)
        return self._send(queue, draft, idempotency_key, cause, unsaid, wish, source)

    def send_each(
        self, sends: Sequence[Posting], others: Mapping[str, SendVerbs] | None = None
    ) -> list[Sent | PostroomError]:
        """Independent sends, in as few commits as possible, each with its result.

        ``others`` are the verbs of other users: a send that cannot share a commit uses its user's own.
        """
        outcomes: list[int | PostroomError | None] = [None] * len(sends)
        express, some, known = list[int](), list[Sending](), self._known
        behind = set()  # what is sent behind one that takes the long way must not overtake it
        try:
            for place, (names, draft, key, cause, actor, unsaid) in enumerate(sends):
                queue = known.get(names)
                if queue is None or draft.type is not None or cause is not None or unsaid or names in behind:
                    behind.add(names)
                else:
                    receipt = None if key is None else _receipt(names_of(names), draft, key)
                    express.append(place)
                    some.append(_made(Sending, (queue, draft, receipt, actor, None)))
        except PostroomError:  # one of them is refused before it is sent: which, the long way tells
            express, some = [], []
        for place, outcome in zip(express, self._store.send_each(some), strict=True):
            outcomes[place] = outcome
        return [
            _made(Sent, (outcome, status.DONE))
            if isinstance(outcome, int)
            else outcome or (others or {}).get(send.actor, self)._alone(send)
            for send, outcome in zip(sends, outcomes, strict=True)
        ]

    def _alone(self, wanted: Posting) -> Sent | PostroomError:
        try:
            with self._store.acting(wanted.actor):
                return self._send(*wanted[:4], wanted.unsaid)
        except PostroomError as refusal:
            return refusal

    def _send(
        self,
        queue: Names,
        draft: Draft,
        idempotency_key: str | None,
        cause: int | None,
        unsaid: bool,
        wish: Wish | None = None,
        source: str | None = None,
    ) -> Sent:
        wanted = Posting(queue, draft, idempotency_key, cause, "", unsaid)
        return self._store.transact("send", lambda tx: self.post(tx, wanted, wish, source))

    def post(self, tx: Transaction, wanted: Posting, wish: Wish | None = None, source: str | None = None) -> Sent:
        """One send within a transaction, for callers that commit more with it."""
        queue, draft, idempotency_key, cause, _, unsaid = wanted
        names = names_of(queue)
        receipt = None if idempotency_key is None else _receipt(names, draft, idempotency_key)
        if receipt is not None:
            earlier = tx.receipts.find(*receipt)
            if earlier is not None:
                return Sent(earlier)
        target = _open_queue(tx, names)
        self._remember(queue, target.id)
        _check_sent(tx, draft, cause, source)
        asked = PLAIN if wish is None else wish(tx.now)
        if asked == PLAIN:
            (key,) = self.put(tx, target, formatted(tx, target, [draft]) if unsaid else [draft], cause)
        else:
            limits.make_room(tx, target, [draft])
            key = limits.put_wanted(tx, target, draft, asked, cause)
        if receipt is not None:
            tx.receipts.add(receipt.name, key, receipt.fingerprint)
        return Sent(key, _answer(target))

    def send_waiting(self, seconds: float, send: Callable[[], Sent]) -> Sent:
        """Send; if the queue is full, wait up to ``seconds`` for room."""
        if not 0 <= seconds <= WAIT_SECONDS_MAX:
            raise ArgumentInvalid(argument="wait", why=f"seconds from 0 to {WAIT_SECONDS_MAX:.0f}")
        end = monotonic() + seconds
        with self._store.waiter() as waiter:
            while True:
                try:
                    return send()
                except QueueFull:
                    left = end - monotonic()
                    if left <= 0:
                        raise
                waiter.wait(min(left, FULL_LOOK_SECONDS))

    def put(self, tx: Transaction, target: Queue, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store new messages, after admission."""
        parts = [self._put(tx, target, part, cause) for part in limits.portions(tx, target, drafts)]
        return parts[0] if len(parts) == 1 else [key for keys in parts for key in keys]

    def _put(self, tx: Transaction, target: Queue, drafts: Sequence[Draft], cause: int | None) -> Sequence[int]:
        if target.admission:
            puts = self._admit(tx, target, drafts)
            return Batch(tx).write(puts if cause is None else [put._replace(cause=cause) for put in puts], 0)
        if len(drafts) != 1:
            return tx.messages.put_many(target, drafts, cause)
        return [tx.messages.put(target, drafts[0], cause)]

    def find(self, tx: Transaction, queue: Names) -> Queue:
        """The queue of a reference, locked for this transaction, even if on hold."""
        return one_queue(tx, names_of(queue))

    def find_open(self, tx: Transaction, queue: Names) -> Queue:
        """Like ``find``; raises if the queue does not accept messages now."""
        return _open_queue(tx, names_of(queue))

    def send_many(
        self,
        queue: Names,
        drafts: Sequence[Draft],
        idempotency_key: str | None = None,
        *,
        unsaid: bool | Sequence[bool] = False,
    ) -> SentMany:
        """Send many messages to one queue in order, all or none; ``unsaid`` as in ``send``."""
        names = names_of(queue)
        if len(drafts) > BATCH_MESSAGES_MAX:
            raise ArgumentInvalid(argument="bodies", why=f"at most {BATCH_MESSAGES_MAX} messages in one send")
        known = self._known.get(queue) if idempotency_key is None else None
        flags = [unsaid] * len(drafts) if isinstance(unsaid, bool) else unsaid
        if known is not None and drafts and all(map(_is_plain, drafts, flags)):
            sent = self._store.send_some(known, drafts)
            if sent is not None:
                return SentMany(KeyTexts(sent))

        repeat = Repeat.of(idempotency_key, "send-many", ((names, draft) for draft in drafts))

        def send(tx: Transaction) -> SentMany:
            target = _open_queue(tx, names)
            self._remember(queue, target.id)
            read = formatted(tx, target, drafts, flags) if any(flags) else drafts
            return SentMany(KeyTexts(self._put_checked(tx, target, read)), _answer(target))

        return self._store.transact("send-many", lambda tx: once(tx, repeat, sent_many, lambda: send(tx)))

    def enter(self, tx: Transaction, queue: Names, drafts: Sequence[Draft]) -> Sequence[int]:
        """Put many messages into one queue within a transaction, for callers that commit more with them."""
        return self._put_checked(tx, _open_queue(tx, names_of(queue)), drafts)

    def _put_checked(self, tx: Transaction, target: Queue, drafts: Sequence[Draft]) -> Sequence[int]:
        for draft in drafts:
            if draft.type is not None:
                _check_type(tx, draft)
        return self.put(tx, target, drafts)

    def distribute(
        self, destinations: Sequence[Names], draft: Draft, idempotency_key: str | None = None, *, unsaid: bool = False
    ) -> Distributed:
        """Send one message to several queues in one commit, as a COBOL SEND does: those that can accept it get it."""
        if not destinations:
            raise ArgumentInvalid(argument="destinations", why="give at least one queue")
        given = [(names_of(names), draft) for names in destinations]
        repeat = Repeat.of(idempotency_key, "distribute", given)
        if repeat is None:
            return self.distribute_each(given, unsaid=unsaid)

        def work(tx: Transaction) -> Distributed:
            return once(tx, repeat, distributed, lambda: self._deliver(tx, given, unsaid))

        return self._store.transact("distribute", work)

    def distribute_each(
        self,
        given: Sequence[tuple[Names, Draft]],
        unconfirmed: Unconfirmed | None = None,
        source: str | None = None,
        *,
        unsaid: bool = False,
    ) -> Distributed:
        """Send each queue its own message, in one commit.

        It confirms what was received before, unless no queue accepted its message: then nothing is done.
        """
        sent = None if source is not None or unsaid else self._answer_express(given, unconfirmed)
        return sent or self._distribute_each(given, unconfirmed, source, unsaid)

    def _answer_express(
        self, given: Sequence[tuple[Names, Draft]], unconfirmed: Unconfirmed | None
    ) -> Distributed | None:
        """The fast path: send one plain message and confirm what was received before."""
        names, draft = given[0]
        known, taken = self._known.get(names), [] if unconfirmed is None else unconfirmed.taken
        if known is None or len(given) > 1 or len(taken) > 1 or draft.type is not None:
            return None
        key = self._store.answer_one(known, draft, (taken[0].stored.key, own_token()) if taken else None)
        if key is None:
            return None
        if unconfirmed is not None:
            unconfirmed.taken = []
        return Distributed((Delivery(shown(names), key_text(key), status.SERVED, status=status.DONE),), status.DONE)

    def _distribute_each(
        self, given: Sequence[tuple[Names, Draft]], unconfirmed: Unconfirmed | None, source: str | None, unsaid: bool
    ) -> Distributed:
        def work(tx: Transaction) -> Distributed:
            if source is not None:
                sources.admitted(tx, source)
            done = self._deliver(tx, given, unsaid)
            if unconfirmed is not None and done.sent:
                unconfirmed.confirm(tx)
            return done

        done = self._store.transact("distribute", work)
        if unconfirmed is not None and done.sent:
            unconfirmed.taken = []
        return done

    def _deliver(self, tx: Transaction, given: Sequence[tuple[Names, Draft]], unsaid: bool) -> Distributed:
        every = [names for names, _ in given]
        for draft in {draft for _, draft in given if draft.type is not None}:
            _check_type(tx, draft)
        deliveries, answer = [], status.DONE
        # Locked in one order, whatever the order of destinations: else two who send to the same wait in a circle.
        if len(every) > 1:
            known = {queue.name for names in every for queue in tx.queues.below("/".join(names))}
            tx.queues.locked_all({*known, *(names[0] for names in every if len(names) == 1)})
        for names, draft in given:
            try:
                target = _open_queue(tx, names)
                self._remember(names, target.id)
                (number,) = self.put(tx, target, formatted(tx, target, [draft]) if unsaid else [draft])
            except (EntryRefused, EventInvalid, FormatUnclear, *_ELSEWHERE) as refusal:
                deliveries.append(Delivery(shown(names), None, status.REFUSED, refusal.code, refusal.status))
                answer = max(answer, refusal.status, key=_weight)
            else:
                deliveries.append(Delivery(target.name, key_text(number), status.SERVED, status=_answer(target)))
                answer = max(answer, _answer(target), key=_weight)
        return Distributed(tuple(deliveries), answer)


_ELSEWHERE = (QueueUnknown, QueueNotSingle, QueueFull, QueueHeld, QueueLocked)


class Posting(NamedTuple):
    """A send among several, and its user."""

    queue: Names
    draft: Draft
    idempotency_key: str | None
    cause: int | None
    actor: str
    unsaid: bool = False  # whether its format is what it looks like to those who read the queue


def _check_type(tx: Transaction, draft: Draft) -> None:
    from postroom.store.tables.types import check_typed  # few programs have types

    check_typed(tx, draft)


def _check_sent(tx: Transaction, draft: Draft, cause: int | None, source: str | None) -> None:
    """Raise if the type, cause or source of a message is invalid."""
    if source is not None:
        sources.admitted(tx, source)
    if draft.type is not None:
        _check_type(tx, draft)
    if cause is not None:
        tx.causes.require(cause)


def _open_queue(tx: Transaction, names: Names) -> Queue:
    """The queue of a send; raises unless it accepts messages."""
    if len(names) == 1 and tx.queues.kind(names[0]) in CLOSED:
        tx.definitions.lock()  # what is sent there changes more: everyone who does takes this lock first
    queue = one_queue(tx, names)
    if not queue.accepts:
        raise on_hold(tx, queue, "accept")
    if queue.lock_owner is not None:
        locks.refuse_locked(tx, queue)
    return queue


def _is_plain(draft: Draft, unsaid: bool) -> bool:
    """Whether a message needs neither a check of its type nor a guess of its format."""
    plain = not unsaid or draft.format != Format.TEXT.value or looks_like(draft.body) is Format.TEXT
    return draft.type is None and plain


def formatted(
    tx: Transaction, target: Queue, drafts: Sequence[Draft], unsaid: Sequence[bool] = (True,)
) -> Sequence[Draft]:
    """Bodies without a given format: for queues that rules or counters read, documents are recognised."""
    if target.admission & Admission.FLOWS:  # a space reads literals, too, which look like JSON
        return drafts
    watcher = tx.queues.watcher(target) or ("rules" if target.admission else None)
    if watcher is None:
        return drafts
    return [
        as_it_looks(draft, target.name, watcher) if odd else draft for draft, odd in zip(drafts, unsaid, strict=True)
    ]


def _answer(queue: Queue) -> str:
    """The status of an accepted send."""
    return status.QUEUED if queue.hold else status.DONE


def _weight(key: str) -> tuple[bool, str]:
    """The severity of a status: of several destinations the worst is reported."""
    return key == QueueUnknown.status, key


def _receipt(names: Names, draft: Draft, key: str) -> Receipt:
    return Receipt(checked_key(key), draft_hash("/".join(names), draft))
