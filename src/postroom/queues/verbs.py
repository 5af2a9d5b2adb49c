"""The verbs: send, receive, accept, info, history, disable, enable. What one changes, it changes in one transaction.

A later calling sequence for COBOL programs can be thin: every answer has a status key, and every refusal is a typed
error with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import NamedTuple, NoReturn

from postroom.errors import (
    ArgumentInvalid,
    BodyMismatch,
    EntryRefused,
    EventInvalid,
    MessageCorrupt,
    OutputFailed,
    PasswordMissing,
    PasswordWrong,
    QueueHeld,
    QueueLocked,
    QueueNotSingle,
    QueueUnknown,
    StoreCorrupt,
    StoreError,
    TypeUnknown,
)
from postroom.limits import (
    BATCH_MESSAGES_MAX,
    IDEMPOTENCY_CHARS_MAX,
    LOCK_WAIT_SECONDS,
    PAGE_ROWS,
    REFERENCES_KNOWN_MAX,
    WAIT_SECONDS_MAX,
)
from postroom.model.body import Format, is_text
from postroom.model.key import KeyTexts, key_text
from postroom.model.message import Draft, Message, Stored, draft_hash
from postroom.model.password import verify_password
from postroom.model.views import as_lines, lines, record
from postroom.queues import locks, returning, status
from postroom.queues.addressing import (
    PRINCIPAL,
    Names,
    holdable,
    keyed_level,
    live,
    names_of,
    no_queues,
    one_queue,
    path_of,
    queues_even_retired,
    queues_of,
    receivable,
    shown,
    unowned,
)
from postroom.queues.locks import User
from postroom.queues.results import (
    Accepted,
    Delivery,
    Distributed,
    Held,
    Listing,
    QueueCount,
    Received,
    Sent,
    SentMany,
)
from postroom.queues.returning import Deliver, Returns, Taken, is_main
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit, Batch, admit_nothing
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.queues import CLOSED, MEND, Hold, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.handouts import Handout
from postroom.store.tables.types import check_typed, find_type

#: A password that is known, or who asks for it.
Password = str | Callable[[], str]
#: What may keep a message from being received, and may end while someone waits.
Obstacle = QueueLocked | QueueHeld
#: Is given a transaction, and what takes a message in it; answers with what that answered.
Within = Callable[[Transaction, Callable[[], Received | MessageCorrupt]], Received | MessageCorrupt]


class Verbs:
    """The queue verbs of one user on one store."""

    def __init__(
        self, store: Store, user: User, admit: Admit = admit_nothing, again: Callable[[], Store] | None = None
    ) -> None:
        self._store = store
        self._user = user
        self._returns = None if again is None else Returns(store, again)
        self._admit = admit
        self._known: dict[Names, int] = {}  # where a reference led last; the store looks whether it still may

    # --- send ---

    def send(self, queue: Names, draft: Draft, idempotency_key: str | None = None, cause: int | None = None) -> Sent:
        known = self._known.get(queue)
        if known is not None and idempotency_key is None and draft.type is None and cause is None:
            sent = self._store.send_one(known, draft)
            if sent is not None:
                return Sent(sent)
        names = names_of(queue)
        _check_idempotency(idempotency_key)
        fingerprint = b"" if idempotency_key is None else draft_hash("/".join(names), draft)

        def work(tx: Transaction) -> Sent:
            if idempotency_key is not None:
                earlier = tx.receipts.find(idempotency_key, fingerprint)
                if earlier is not None:
                    return Sent(earlier)
            target = _open_queue(tx, names)
            self._remember(queue, target.id)
            if draft.type is not None:
                check_typed(tx, draft)
            if cause is not None:
                tx.causes.require(cause)
            (key,) = self.put(tx, target, [draft], cause)
            if idempotency_key is not None:
                tx.receipts.add(idempotency_key, key, fingerprint)
            return Sent(key, _answer(target))

        return self._store.transact("send", work)

    def put(self, tx: Transaction, target: Queue, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store new messages; a queue with admission adds what it works out for them."""
        if target.admission:
            puts = self._admit(tx, target, drafts)
            return Batch(tx).write(puts if cause is None else [put._replace(cause=cause) for put in puts], 0)
        if len(drafts) != 1:
            return tx.messages.put_many(target, drafts, cause)
        return [tx.messages.put(target, drafts[0], cause)]

    def find(self, tx: Transaction, queue: Names) -> Queue:
        """The one queue that a reference means, locked for this transaction; also if it is on hold."""
        return one_queue(tx, names_of(queue))

    def find_open(self, tx: Transaction, queue: Names) -> Queue:
        """Like ``find``, but raises if the queue does not take messages now."""
        return _open_queue(tx, names_of(queue))

    def _remember(self, reference: Names, queue: int) -> None:
        if len(self._known) >= REFERENCES_KNOWN_MAX:
            self._known.clear()
        self._known[reference] = queue

    def send_many(self, queue: Names, drafts: Sequence[Draft]) -> SentMany:
        """Many messages to one queue, all or none, in their order."""
        names = names_of(queue)
        if len(drafts) > BATCH_MESSAGES_MAX:
            raise ArgumentInvalid(argument="bodies", why=f"at most {BATCH_MESSAGES_MAX} messages in one send")

        def work(tx: Transaction) -> SentMany:
            target = _open_queue(tx, names)
            return SentMany(KeyTexts(self._put_checked(tx, target, drafts)), _answer(target))

        return self._store.transact("send-many", work)

    def enter(self, tx: Transaction, queue: Names, drafts: Sequence[Draft]) -> Sequence[int]:
        """Let many messages into one queue inside of a transaction; for senders that commit more along with them."""
        return self._put_checked(tx, _open_queue(tx, names_of(queue)), drafts)

    def _put_checked(self, tx: Transaction, target: Queue, drafts: Sequence[Draft]) -> Sequence[int]:
        for draft in drafts:
            if draft.type is not None:
                check_typed(tx, draft)
        return self.put(tx, target, drafts)

    def distribute(self, destinations: Sequence[Names], draft: Draft) -> Distributed:
        """One message to several queues, as a COBOL SEND does: those that can take it get it, in one commit."""
        if not destinations:
            raise ArgumentInvalid(argument="destinations", why="give at least one queue")
        every = [names_of(names) for names in destinations]

        def work(tx: Transaction) -> Distributed:
            if draft.type is not None:
                check_typed(tx, draft)
            deliveries, answer = [], status.DONE
            # Locked in one order, whatever the order of destinations: else two who send to the same wait in a circle.
            known = {queue.name for names in every for queue in tx.queues.below("/".join(names))}
            tx.queues.locked_all({*known, *(names[0] for names in every if len(names) == 1)})
            for names in every:
                try:
                    target = _open_queue(tx, names)
                    (number,) = self.put(tx, target, [draft])
                except (EntryRefused, EventInvalid, QueueUnknown, QueueNotSingle, QueueHeld, QueueLocked) as refusal:
                    deliveries.append(Delivery(shown(names), None, status.REFUSED, refusal.code))
                    answer = max(answer, refusal.status, key=_weight)
                else:
                    deliveries.append(Delivery(target.name, key_text(number), status.SERVED))
                    answer = max(answer, _answer(target), key=_weight)
            return Distributed(tuple(deliveries), answer)

        return self._store.transact("distribute", work)

    # --- receive ---

    def receive(
        self,
        queue: Names,
        *,
        segment: bool = False,
        wait: float | None = None,
        within: Within | None = None,
        deliver: Deliver | None = None,
        bind: Callable[[Message], object] | None = None,
    ) -> Received:
        """The next message (or segment) of the first non-empty queue; waits up to ``wait`` seconds for one.

        ``within`` is given the transaction and takes the message itself: what it does is in the same commit. The
        message is reserved for it, and stays so until it is taken for good or given back.
        ``deliver`` is given the answer, and the take is final when it returns: if it raises, or this process ends in
        the midst of it, the message is back in its place. ``bind`` is given the message before anyone else.
        """
        if wait is not None and not 0 <= wait <= WAIT_SECONDS_MAX:
            raise ArgumentInvalid(argument="wait", why=f"seconds from 0 to {WAIT_SECONDS_MAX:.0f}")
        if not queue:
            self._refuse_nameless()
        known = self._known.get(queue)
        if known is not None and not segment and within is None and deliver is None:
            found = self._store.receive_one(known)
            if found is not None:
                if bind is not None:
                    bind(found)
                received = Received(found, (), (), True)
                return received if is_main() else self._watched(received, Taken(known, found._stored))
        asked = _Asked(names_of(queue), segment, within, deliver is not None, [])
        received = self._wait(asked, wait)
        if not received or within is not None:
            return received
        (taken,) = asked.taken
        if bind is not None and received.message is not None:
            bind(received.message)
        if deliver is None:
            return self._watched(received, taken)
        self._hand_over(received, taken, deliver)
        return received

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
                waiter.wait(left)

    def _hand_over(self, received: Received, taken: Taken, deliver: Deliver) -> None:
        """Let what was received be written out, and make the take final, or undone."""
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
            locks.keep(tx, queue, self._user, reference, taken.stored.key, taken.segment + 1)
            return True
        stored = tx.messages.head(queue)
        if stored is None or stored.key != taken.stored.key:
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

    def settle(self) -> None:
        """Put back what other processes had in hand and did not confirm before they ended."""
        returning.settle(self._store)

    def close(self) -> None:
        """Let what is under way come to its end."""
        if self._returns is not None:
            self._returns.finish()

    def _refuse_nameless(self) -> NoReturn:
        """Raise for a receive that names no queue, with queues that it may name."""
        names, advice = self._store.read(lambda tx: (receivable(tx), no_queues(tx)))
        if not names:
            raise QueueUnknown(queue="to receive from", nearest=advice)
        raise ArgumentInvalid(argument="queue", why=f"say which queue to receive from, such as: {', '.join(names[:8])}")

    def _try_receive(self, asked: _Asked) -> tuple[Received, Obstacle | None]:
        """What there is to receive, or what is in its way and may end: a lock, or a hold."""
        segment, within = asked.segment, asked.within
        label = "segment" if segment else "receive"

        def work(tx: Transaction) -> Received | MessageCorrupt:
            asked.taken.clear()
            take = partial(self._receive_once, tx, asked)
            return take() if within is None else within(tx, take)

        try:
            outcome = self._store.transact(label, work)
        except (QueueLocked, QueueHeld) as obstacle:
            return Received(None), obstacle
        if isinstance(outcome, MessageCorrupt):
            raise outcome
        return outcome, None

    def _receive_once(self, tx: Transaction, asked: _Asked) -> Received | MessageCorrupt:
        passed: list[str] = []
        held: list[str] = []
        reason = ""
        names = asked.names
        for queue in self._search(tx, names, "/".join(names)):
            restored = self._restored(tx, queue)
            if not queue.releases:
                held.append(queue.name)
                reason = Hold(queue.hold).label
            elif not queue.unprocessed and not restored:
                _check_empty(tx, queue)
                passed.append(queue.name)
            else:
                return self._release(tx, queue, asked, tuple(passed), tuple(held))
        if held and not passed:
            level = _spoken_level(tx, path_of(tx, names)) or held[0]
            raise QueueHeld(queue=shown(names), hold=reason, verb="release", level=level)
        return Received(None, tuple(passed), tuple(held))

    def _search(self, tx: Transaction, names: Names, reference: str) -> Iterator[Queue]:
        """The queues of a reference, left to right, each locked for this transaction as it is reached.

        But a message begun by the same reference goes on before any other queue is looked at.
        """
        if len(names) == 1:
            queue = tx.queues.named(names[0])
            if queue is not None and not queue.retired:
                unowned(queue)
                self._remember(names, queue.id)
                yield queue
                return
        found = queues_of(tx, names)
        for queue in found:
            if queue.lock_owner == self._user.owner and queue.lock_reference == reference and locks.is_held(tx, queue):
                found = [queue]
                break
        if len(found) == 1 and found[0].path == reference:
            self._remember(names, found[0].id)
        for queue in found:
            yield live(tx, queue, names)

    def _restored(self, tx: Transaction, queue: Queue) -> bool:
        """Put back what was taken from a queue by processes that have ended; True if there is any."""
        why = "its process ended before it was confirmed"
        return True in [returning.restore(tx, each, why) for each in tx.handouts.over(queue)]

    def _release(
        self, tx: Transaction, queue: Queue, asked: _Asked, passed: tuple[str, ...], held: tuple[str, ...]
    ) -> Received | MessageCorrupt:
        """Give out the head of a queue, whole or its next segment."""
        queue = locks.enter(tx, queue, self._user)
        stored = tx.messages.head(queue)
        if stored is None:
            raise StoreCorrupt(why=f"{queue.name} counts {queue.unprocessed} messages and has none. {MEND}")
        if not stored.sound:
            tx.messages.set_aside(queue, stored)
            _unlock(tx, queue)
            return MessageCorrupt(key=key_text(stored.key), queue=queue.name)
        if asked.segment:
            return self._release_segment(tx, queue, stored, asked, passed, held)
        asked.taken.append(Taken(queue.id, stored))
        (tx.messages.reserve if asked.reserve else tx.messages.take)(queue, stored)
        if asked.confirmed:
            tx.handouts.add(queue, stored, process_token())
        _unlock(tx, queue)
        return Received(stored.message(processed=tx.now), passed, held, end_of_message=True)

    def _release_segment(
        self,
        tx: Transaction,
        queue: Queue,
        stored: Stored,
        asked: _Asked,
        passed: tuple[str, ...],
        held: tuple[str, ...],
    ) -> Received:
        """The lock keeps others away, so what is to be confirmed is only looked at until it is."""
        segments = _segments(tx, stored)
        index = min(locks.next_segment(queue, stored.key), len(segments) - 1)
        last = index + 1 == len(segments)
        asked.taken.append(Taken(queue.id, stored, index, last, queue.lock_owner is not None))
        if last and not asked.confirmed:
            tx.messages.take(queue, stored)
            _unlock(tx, queue)
        else:
            then = index if asked.confirmed else index + 1
            locks.keep(tx, queue, self._user, "/".join(asked.names), stored.key, then)
        processed = tx.now if last else None
        return Received(stored.message(processed=processed, body=segments[index]), passed, held, end_of_message=last)

    def release_locks(self) -> None:
        """Give back every queue that this user has locked; their messages start again at the first segment."""

        def work(tx: Transaction) -> None:
            for queue in tx.queues.locked_by(self._user.owner):
                self._unlock_own(queue.id, "its user left", tx)

        if self._store.read(lambda tx: bool(tx.queues.locked_by(self._user.owner))):
            self._store.transact("unlock", work)

    # --- looking ---

    def accept(self, queue: Names = ()) -> Accepted:
        """How many messages the queues hold. Without a name: all queues of the room, locked ones too."""

        def work(tx: Transaction) -> tuple[QueueCount, ...]:
            found = self._unlocked(tx, queues_of(tx, names_of(queue))) if queue else tx.queues.all()
            tx.messages.check_end(each for each in found if not each.unprocessed)
            return tuple(QueueCount.of(each, tx.now) for each in found)

        return Accepted(self._store.read(work))

    def info(self, queue: Names, limit: int | None = None) -> Listing:
        """All unprocessed messages; nothing is released."""
        return self._listing(names_of(queue), State.UNPROCESSED, limit)

    def history(self, queue: Names, limit: int | None = None) -> Listing:
        """All processed messages, in the order of their processing."""
        return self._listing(names_of(queue), State.PROCESSED, limit)

    def _listing(self, names: Names, state: State, limit: int | None) -> Listing:
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        found = self._store.read(lambda tx: self._unlocked(tx, queues_even_retired(tx, names)))
        return Listing(lambda: self._pages(found, state, limit))

    def _pages(self, queues: Sequence[Queue], state: State, limit: int | None) -> Iterator[Message]:
        for queue in queues:
            after = 0
            while limit is None or limit > 0:
                size = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit)
                page = self._store.read(partial(_page, queue, state, after, size))
                yield from (stored.image() for stored in page)
                limit = None if limit is None else limit - len(page)
                if len(page) < size:
                    break
                after = page[-1].position

    def _unlocked(self, tx: Transaction, queues: list[Queue]) -> list[Queue]:
        for queue in queues:
            locks.refuse_locked(tx, queue)
        return queues

    # --- hold ---

    def hold(self, queue: Names, wanted: Hold, password: Password) -> Held:
        """Put queues on hold, or take them off it.

        A password that is given is checked before all else. One that must be asked for is asked for only if
        something would change.
        """
        names = names_of(queue)

        def look(tx: Transaction) -> tuple[bool, str | None, str | None]:
            found = self._unlocked(tx, queues_of(tx, names))
            already = all(queue.hold == wanted for queue in found)
            path = path_of(tx, names)
            return already, tx.principals.secret(PRINCIPAL, path), _spoken_level(tx, path)

        already, secret, level = self._store.read(look)
        if already and (secret is None or not password or callable(password)):
            return Held((), status.ALREADY)
        if secret is None:
            advice = f"name {level}, which has one" if level else _ADVICE
            raise PasswordMissing(queue=shown(names), advice=advice)
        given = password if isinstance(password, str) else password()
        if not verify_password(secret, given.rstrip(" ")):
            self._store.transact("hold", lambda tx: self._denied(tx, names))
            raise PasswordWrong(queue=shown(names), source="")
        if already:
            return Held((), status.ALREADY)

        def work(tx: Transaction) -> Held:
            if tx.principals.secret(PRINCIPAL, path_of(tx, names)) != secret:
                raise PasswordWrong(queue=shown(names), source="")  # it was changed while we checked
            changed = []
            for candidate in queues_of(tx, names):
                queue = holdable(tx, candidate, names)
                locks.refuse_locked(tx, queue)
                if queue.hold != wanted:
                    tx.queues.hold(queue, wanted)
                    changed.append(queue.name)
            tx.wake()
            return Held(tuple(changed))

        return self._store.transact("hold", work)

    def _denied(self, tx: Transaction, names: Names) -> None:
        for queue in queues_of(tx, names)[:1]:
            tx.journal.add("denied", target=queue.id, detail={"reference": shown(names), "why": "wrong password"})


_ADVICE = (
    "write PASSWORD IS at this level of the description, name a level that has one, "
    "or set one with: postroom queue password"
)


def _open_queue(tx: Transaction, names: Names) -> Queue:
    """The queue of a send, which must be open."""
    if len(names) == 1 and tx.queues.kind(names[0]) in CLOSED:
        tx.definitions.lock()  # what is sent there changes more: everyone who does takes this lock first
    queue = one_queue(tx, names)
    if not queue.accepts:
        level = _spoken_level(tx, queue.path) or queue.name
        raise QueueHeld(queue=queue.name, hold=Hold(queue.hold).label, verb="accept", level=level)
    if queue.lock_owner is not None:
        locks.refuse_locked(tx, queue)
    return queue


class _Asked(NamedTuple):
    """What a receive asks for."""

    names: Names
    segment: bool
    within: Within | None
    confirmed: bool  # whether the take waits for a confirmation
    taken: list[Taken]

    @property
    def reserve(self) -> bool:
        """Whether the message stays in its queue for whoever takes it."""
        return self.within is not None


def _answer(queue: Queue) -> str:
    """The status of a send that a queue has accepted."""
    return status.QUEUED if queue.hold else status.DONE


def _weight(key: str) -> tuple[bool, str]:
    """Of several destinations the gravest is told; an unknown one before those that only we refuse."""
    return key == QueueUnknown.status, key


def _unless(obstacle: Obstacle | None, received: Received) -> Received:
    """What was received, unless something was in its way to the end."""
    if obstacle is not None:
        raise obstacle
    return received


def _spoken_level(tx: Transaction, path: str) -> str | None:
    """The nearest level with a password, as it is typed."""
    level = keyed_level(tx, path)
    return None if level is None else shown(tuple(level.split("/")))


def _check_empty(tx: Transaction, queue: Queue) -> None:
    """Raise if a queue that counts no message has one."""
    left = tx.messages.head(queue)
    if left is not None:
        raise StoreCorrupt(why=f"{queue.name} counts no message and has {key_text(left.key)}. {MEND}")
    tx.messages.check_end([queue])


def _unlock(tx: Transaction, queue: Queue) -> None:
    """The message of the lock has left; its own journal entry says so."""
    if queue.lock_owner is not None:
        tx.queues.unlock(queue)
        tx.wake()


def _segments(tx: Transaction, stored: Stored) -> list[str]:
    """A form is read field by field, anything else line by line."""
    if stored.type is not None and stored.format == Format.JSON:
        with suppress(BodyMismatch, TypeUnknown):  # the type has changed since; the text has not
            return as_lines(record(stored.body, Format.JSON, find_type(tx, stored.type))) or [""]
    return lines(stored.body)


def _page(queue: Queue, state: State, after: int, size: int, tx: Transaction) -> list[Stored]:
    page = tx.messages.page(queue, state, after, size)
    if len(page) < size and state is State.UNPROCESSED:
        tx.messages.check_end([queue], page[-1].position if page else after)
    return page


def _check_idempotency(key: str | None) -> None:
    if key is not None and (not 0 < len(key) <= IDEMPOTENCY_CHARS_MAX or not is_text(key)):
        raise ArgumentInvalid(argument="idempotency key", why=f"1 to {IDEMPOTENCY_CHARS_MAX} characters of text")
