"""The fast path: the most frequent send and receive with few calls.

Its effect is that of the general path (``Messages.put`` and ``Messages.take``); a test compares the two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NoReturn, TypeVar

import apsw

from postroom import faults
from postroom.errors import ArgumentInvalid, OutputFailed, PostroomError, StoreReplaced
from postroom.limits import GROUP_MESSAGES_MAX, HANDOUT_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Draft, Message, Stored, message_hash
from postroom.model.moment import in_microseconds
from postroom.store.kernel.base import Conflict, Lent, Receipt, Sending, Store
from postroom.store.kernel.deliveries import BY_DUE, BY_EXPIRY, BY_URGENCY, REMOVE, addition
from postroom.store.kernel.interrupts import deferring
from postroom.store.kernel.journal import APPEND, line_digest, put_digest
from postroom.store.kernel.message_rows import (
    INSERT,
    columns,
    insertion,
    leasing,
    new_row,
    processing,
    processing_leased,
    record,
)
from postroom.store.kernel.owner import own_token
from postroom.store.kernel.queues import ARRIVALS, COUNT
from postroom.store.kernel.session import Row
from postroom.store.sqlite.open_files import OpenFiles
from postroom.store.sqlite.session import ROWS_AT_ONCE, SqliteSession, with_rows
from postroom.store.tables.handouts import ADD

T = TypeVar("T")

_OPEN = f"""
SELECT {ARRIVALS}, q.departed, EXISTS (SELECT 1 FROM selections s WHERE s.queue = q.id)
FROM queues q WHERE q.id = ? AND q.hold = 0 AND q.retired = 0 AND q.command IS NULL AND q.door = 0
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
    AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q.id AND p.limited = 1)
"""
_OPEN_ONE = f"BEGIN IMMEDIATE;{_OPEN}"
# The number of the line is the position of the message.
_PUT = f"{APPEND};{insertion(position='last_insert_rowid()')}"
# Every statement lets go of Python's lock, and has to wait for it: many rows go in one. By the number of rows, largest
# first, the lines and the messages.
_ROWS_AT_ONCE = (ROWS_AT_ONCE, 32, 16, 8, 4, 2)
_PUTS = tuple((rows, with_rows(APPEND, rows) or "", with_rows(INSERT, rows) or "") for rows in _ROWS_AT_ONCE)
_ALIKE_MIN = 8  # messages that differ in their bodies alone, from which on a column of them is faster than rows
# What this process has in hand is not looked at: it lives, and gives back itself what it does not confirm.
_NEXT = f"""
SELECT {columns(processed="?")}, q.path, m.attempts, q.keep
FROM queues q CROSS JOIN messages m ON m.key = (
    SELECT i.key FROM messages i WHERE i.queue = q.id AND i.state = 1 ORDER BY i.position LIMIT 1
) AND m.queue = q.id AND m.state = 1 AND m.number <= q.departed + 1
WHERE q.id = ? AND q.hold < 2 AND q.retired = 0
    AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q.id)
    AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q.id AND h.owner <> ?)
    AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q.id AND p.ordered = 1)
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.queue = q.id AND d.until <= ?)
    AND NOT EXISTS (
        SELECT 1 FROM messages u{BY_URGENCY} WHERE u.queue = q.id AND u.state = 1 AND u.priority > 0
    )
    AND NOT EXISTS (SELECT 1 FROM messages d{BY_DUE} WHERE d.queue = q.id AND d.state = 3 AND d.due <= ?)
    AND NOT EXISTS (
        SELECT 1 FROM messages e{BY_EXPIRY}
        WHERE e.queue = q.id AND e.state > 0 AND e.expires IS NOT NULL AND e.expires <= ?
    )
"""
_NEXT_ONE = f"BEGIN IMMEDIATE;{_NEXT}"
_LEASE = f"{APPEND};{leasing(line='last_insert_rowid()')};{addition(fence='last_insert_rowid()')};{COUNT}"
_LEASED = """
BEGIN IMMEDIATE;
SELECT d.message, d.queue, coalesce(m.last, m.position)
FROM deliveries d JOIN messages m ON m.key = d.message JOIN queues q ON q.id = d.queue
WHERE d.fence = ? AND m.state = -2 AND m.lane IS NULL AND q.keep = 1
    AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = d.queue AND (p.ordered = 1 OR p.limited = 1))
"""
_DONE = f"{REMOVE};{APPEND};{processing_leased(position='last_insert_rowid()')};{COUNT}"
_UNSYNCED, _SYNCED = "PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"
_NEXT_UNSYNCED = f"{_UNSYNCED};{_NEXT_ONE}"
_TAKE = f"{APPEND};{processing(position='last_insert_rowid()')};{COUNT}"
_HAND = f"{_TAKE};{ADD}"


#: The line of a new message, and of its row what stands before and behind its position.
_Put = tuple[tuple[Any, ...], tuple[int, int], tuple[Any, ...]]


@dataclass(slots=True)
class _Counts:
    """A queue's counts at the start of a group of sends."""

    arrivals: int  # with those of the group
    waking: bool  # it was empty, or someone waits for some of its messages


_Outcome = int | BaseException | None


class _Waiting:
    """Sends of one call, waiting for their commit, which another thread may make."""

    __slots__ = ("outcomes", "sends")

    def __init__(self, sends: Sequence[Sending]) -> None:
        self.sends = sends
        self.outcomes: Sequence[_Outcome] | None = None  # one for each, when they are done


class ExpressLane(Store):
    """Group commit: the thread with the turn also sends everything that arrived during the previous commit."""

    session: SqliteSession
    _files: OpenFiles

    def __init__(self, session: SqliteSession, actor: str) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._committing = False  # what goes wrong now may be on disk
        super().__init__(session, actor)

    @abstractmethod
    def _take_turn(self, label: str) -> None:
        """Wait for the turn of the writers."""

    @deferring
    def send_one(self, queue: int, draft: Draft, receipt: Receipt | None = None) -> int | None:
        if receipt is None and not self._waiting and self._mutex.acquire(blocking=False):
            try:
                return self._send_at_once(queue, draft)
            finally:
                self._mutex.release()
        return self._sent_alone(Sending(queue, draft, receipt, self.actor))

    def _send_at_once(self, queue: int, draft: Draft) -> int | None:
        """A single send: cheaper than a group."""
        self._enter()
        self._committing = False
        try:
            execute, guard = self.session.execute, self._files.guard
            self._take_turn("send")
            opened: list[Any] = execute(_OPEN_ONE, (queue,)).fetchall()
            key = self._transaction.keys.ready() if opened else None
            if key is None:
                execute("ROLLBACK")
                return None
            guard.forbid_recovery()
            now, actor = self.session.clock(), self.actor
            arrivals, departed, selected = opened[0]
            line = (now, "put", key, None, None, queue, actor, None, put_digest(now, key, queue, actor))
            hash = message_hash(key, now, None, *draft)
            execute(_PUT, (*line, key, queue, arrivals + 1, now, *draft, hash, None))
            self._commit_express("send")
        except Conflict:
            self._rollback()
            return None
        except BaseException as error:
            self._fail_express("send", error)
        finally:
            self._leave()
        if selected or arrivals == departed:
            self._wake_after_commit()
        return key

    def answer_one(self, queue: int, draft: Draft, confirms: tuple[int, str] | None) -> int | None:
        return self._sent_alone(Sending(queue, draft, None, self.actor, confirms))

    def _sent_alone(self, sending: Sending) -> int | None:
        outcome = self._sent([sending])[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def send_each(self, sends: Sequence[Sending]) -> list[int | PostroomError | None]:
        outcomes: list[Any] = []
        for first in range(0, len(sends), GROUP_MESSAGES_MAX):
            outcomes += self._sent(sends[first : first + GROUP_MESSAGES_MAX])
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, PostroomError):
                raise outcome
        return outcomes

    def _sent(self, sends: Sequence[Sending]) -> Sequence[_Outcome]:
        """The outcomes of sends, which share a commit with those of other threads."""
        ours = _Waiting(sends)
        self._waiting.append(ours)
        try:
            while ours.outcomes is None:
                with self._mutex:
                    if ours.outcomes is None:  # else another thread has sent them meanwhile
                        self._send_waiting()
        finally:
            if ours.outcomes is None:  # nobody waits for them any more
                with suppress(ValueError):
                    self._waiting.remove(ours)
        return ours.outcomes

    def _send_waiting(self) -> None:
        self._enter()
        try:
            group = [self._waiting.popleft()]
            left = GROUP_MESSAGES_MAX - len(group[0].sends)
            while self._waiting and (left := left - len(self._waiting[0].sends)) >= 0:
                group.append(self._waiting.popleft())
            try:
                wake = self._send_group(group)
            except BaseException as error:
                self._tell_failure(group, error)
                wake = False
        finally:
            self._leave()
        if wake:
            self._wake_after_commit()

    def _send_group(self, group: Sequence[_Waiting]) -> bool:
        """Send a group in one commit; True if waiters are to be woken."""
        self._committing = False
        sends, keys = [send for part in group for send in part.sends], self._transaction.keys
        counts: dict[int, _Counts | None] = {}
        outcomes: Sequence[_Outcome]
        try:
            execute, guard = self.session.execute, self._files.guard
            self._take_turn("send")
            execute("BEGIN IMMEDIATE")
            self.session.now = self.session.clock()
            guard.forbid_recovery()
            outcomes = self._put_alike(sends, counts) or self._put_each(sends, counts)
            if any(isinstance(outcome, int) for outcome in outcomes):
                self._commit_express("send")
                keys.committed()
            else:
                execute("ROLLBACK")
                keys.rolled_back()
        except Conflict:
            self._rollback()
            keys.rolled_back()
            outcomes, counts = [None] * len(sends), {}
        except BaseException as error:
            keys.rolled_back()
            self._fail_express("send", error)
        told = iter(outcomes)
        for part in group:
            part.outcomes = list(islice(told, len(part.sends)))
        return any(count is not None and count.waking for count in counts.values())

    def _put_alike(self, sends: Sequence[Sending], counts: dict[int, _Counts | None]) -> Sequence[int] | None:
        """Add messages of one sender to one queue in a batch; None if they differ in more than their bodies."""
        if len(sends) < _ALIKE_MIN:
            return None
        queues, drafts, receipts, actors, confirms = zip(*sends, strict=True)
        if len({*queues}) > 1 or len({*actors}) > 1 or any(receipts) or any(confirms):
            return None
        count = self._count(queues[0], counts)
        if count is None:
            return None
        self._transaction.journal.actor = actors[0]
        return self._transaction.messages.put_alike(queues[0], count.arrivals + 1, drafts)

    def _put_each(self, sends: Sequence[Sending], counts: dict[int, _Counts | None]) -> list[_Outcome]:
        rows: list[_Put] = []
        outcomes: list[_Outcome] = [self._put_one(sending, counts, rows) for sending in sends]
        self._write(rows)
        return outcomes

    def _count(self, queue: int, counts: dict[int, _Counts | None]) -> _Counts | None:
        """The counts of a queue that takes messages by this way, else None; looked up once for a group."""
        if queue not in counts:
            opened: list[Any] = self.session.execute(_OPEN, (queue,)).fetchall()
            waking = bool(opened) and (opened[0][0] == opened[0][1] or bool(opened[0][2]))
            counts[queue] = _Counts(opened[0][0], waking=waking) if opened else None
        return counts[queue]

    def _put_one(
        self, sending: Sending, counts: dict[int, _Counts | None], rows: list[_Put]
    ) -> int | PostroomError | None:
        """Add one message of a group; None if it needs the general path."""
        queue, draft, receipt, actor, confirms = sending
        transaction, now = self._transaction, self.session.now
        if receipt is not None:
            try:
                earlier = transaction.receipts.find(*receipt)
            except ArgumentInvalid as refusal:
                return refusal
            if earlier is not None:
                return earlier
        count = self._count(queue, counts)
        if count is None:
            return None
        if confirms is not None and not transaction.handouts.confirm(*confirms):
            return _late(confirms[0])
        count.arrivals += 1
        key = transaction.keys.next()
        hash, digest = message_hash(key, now, None, *draft), put_digest(now, key, queue, actor)
        line = (now, "put", key, None, None, queue, actor, None, digest)
        rows.append((line, (key, queue), (count.arrivals, now, *draft, hash, None)))
        if receipt is not None:
            transaction.receipts.add(receipt.name, key, receipt.fingerprint)
        return key

    def _write(self, rows: list[_Put]) -> None:
        """Write the lines and messages of a group; positions are line numbers."""
        execute, connection, done = self.session.execute, self.session.connection, 0
        for many, lines, messages in _PUTS:
            while len(rows) - done >= many:
                some = rows[done : done + many]
                execute(lines, tuple(chain.from_iterable(line for line, _, _ in some)))
                first = connection.last_insert_rowid() - many + 1
                placed = ((*key, first + place, *rest) for place, (_, key, rest) in enumerate(some))
                execute(messages, tuple(chain.from_iterable(placed)))
                done += many
        for line, key, rest in rows[done:]:
            execute(_PUT, (*line, *key, *rest))

    def _tell_failure(self, group: Sequence[_Waiting], error: BaseException) -> None:
        """Pass a failed commit's error to all; for an error before it, each is retried alone on the general path."""
        alone = sum(len(part.sends) for part in group) == 1
        for part in group:
            part.outcomes = [self._failure(error, alone) for _ in part.sends]
        if not isinstance(error, Exception):
            raise error  # this thread was told to stop, not those that wait for it

    def _failure(self, error: BaseException, alone: bool) -> _Outcome:
        if isinstance(error, PostroomError) and (alone or error.happened != "no" or self.stopped):
            failure = type(error)(**error.facts)
            failure.__cause__ = error.__cause__
            return failure
        return error if alone and isinstance(error, Exception) else None

    def receive_one(self, queue: int) -> Message | None:
        def receive(now: int) -> Message | None:
            stored, row = self._next(_NEXT_ONE, queue, now)
            if stored is None or row[-1] != 1:
                return None
            self._files.guard.forbid_recovery()
            self.session.execute(_TAKE, self._taking(stored, queue, now))
            return Message(stored)

        return self._at_once("receive", receive)

    def hand_one(self, queue: int, owner: str, fits: Callable[[Stored], bool]) -> tuple[Stored, str] | None:
        def hand(now: int) -> tuple[Stored, str] | None:
            stored, row = self._next(_NEXT_UNSYNCED, queue, now)
            if stored is None or row[-1] != 1 or not fits(stored):
                return None
            self._files.guard.forbid_recovery()
            handed = (*new_row(queue, stored), owner, now + in_microseconds(HANDOUT_SECONDS))
            self.session.execute(_HAND, (*self._taking(stored, queue, now), *handed))
            return stored, row[-3]

        return self._at_once("receive", hand, last=self._synced)

    def _next(self, statement: str, queue: int, now: int) -> tuple[Stored, Row] | tuple[None, Row]:
        """The next message, and its row; None if the long way has to read what is left of it."""
        try:
            rows: list[Any] = self.session.execute(statement, (now, queue, own_token(), now, now, now)).fetchall()
        except UnicodeDecodeError:
            return None, ()
        if not rows or not (stored := record(rows[0][:-3])).sound:
            return None, ()
        return stored, rows[0]

    def _taking(self, stored: Stored, queue: int, now: int) -> Row:
        """The line that a message is taken, and what changes with it."""
        line = (now, "take", stored.key, stored.last, queue, queue, self.actor)
        return (*line, None, line_digest(*line), now, stored.key, queue, 1, 1, stored.number, queue)

    def _synced(self) -> None:
        """Make the next commit durable, and with it all earlier ones."""
        if not self.stopped:
            self._rollback()
            self.session.execute(_SYNCED)

    def lease_one(self, queue: int, owner: str, microseconds: int) -> Lent | None:
        """A lease of this process need not be on disk: a power failure ends the process, and with it the lease."""
        ours = owner == own_token()
        statement, last = (_NEXT_UNSYNCED, self._synced) if ours else (_NEXT_ONE, None)

        def lease(now: int) -> Lent | None:
            return self._lend(statement, queue, owner, now, microseconds)

        return self._at_once("hand-out", lease, last)

    def _lend(self, statement: str, queue: int, owner: str, now: int, microseconds: int) -> Lent | None:
        """Lease the next message; None if the general path is needed."""
        stored, row = self._next(statement, queue, now)
        if stored is None:
            return None
        self._files.guard.forbid_recovery()
        line = (now, "lease", stored.key, stored.last, queue, queue, self.actor)
        leased = (now, None, stored.key, queue)
        delivery = (stored.key, queue, owner, now + microseconds)
        counted = (1, 0, stored.number, queue)
        self.session.execute(_LEASE, (*line, None, line_digest(*line), *leased, *delivery, *counted))
        return Lent(stored, self.session.connection.last_insert_rowid(), row[-2] + 1, now + microseconds)

    def done_one(self, fence: int) -> bool:
        return self._done(fence, None)[0]

    def turn_one(self, fence: int, queue: int, owner: str, microseconds: int) -> tuple[bool, Lent | None]:
        return self._done(fence, lambda now: self._lend(_NEXT, queue, owner, now, microseconds))

    def _done(self, fence: int, then: Callable[[int], Lent | None] | None) -> tuple[bool, Lent | None]:
        """End a lease, and do ``then`` in the same commit."""

        def end(now: int) -> tuple[bool, Lent | None] | None:
            rows: list[Any] = self.session.execute(_LEASED, (fence,)).fetchall()
            if not rows:
                return None
            self._files.guard.forbid_recovery()
            key, queue, last = rows[0]
            line = (now, "take", key, last, queue, queue, self.actor)
            self.session.execute(_DONE, (fence, *line, None, line_digest(*line), now, key, queue, 0, 1, 0, queue))
            return True, None if then is None else then(now)

        return self._at_once("done", end) or (False, None)

    def _at_once(self, label: str, work: Callable[[int], T | None], last: Callable[[], None] | None = None) -> T | None:
        """Do something in a commit of its own; None if its case needs the long way. ``work`` begins the transaction."""
        with self._mutex:
            self._enter()
            self._committing = False
            try:
                now = self.session.clock()
                self._take_turn(label)
                answer = work(now)
                if answer is None:
                    self.session.execute("ROLLBACK")
                else:
                    self._commit_express(label)
            except (Conflict, apsw.FullError):  # the long way has the reserve
                self._rollback()
                return None
            except BaseException as error:
                self._fail_express(label, error)
            finally:
                if last is not None:
                    last()
                self._leave()
            return answer

    def _commit_express(self, label: str) -> None:
        if faults.armed:  # the express lane begins and is about to commit in one breath
            faults.reach(f"{label}.begun")
            faults.reach(f"{label}.committing")
        self._files.guard.check_lock()
        self._committing = True
        self.session.execute("COMMIT")
        self._files.check()
        if faults.armed:
            faults.reach(f"{label}.committed")

    def _fail_express(self, label: str, error: BaseException) -> NoReturn:
        if self._committing or isinstance(error, StoreReplaced):
            self._raise_uncommitted(label, error)
        self._rollback()
        self._raise_ours(error)


def _late(message: int) -> OutputFailed:
    why = "it was not confirmed in time, and others can receive it again"
    return OutputFailed(key=key_text(message), queue="its queue", why=why)
