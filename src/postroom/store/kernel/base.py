"""The store: transactions over queues, messages and the journal. SQLite and PostgreSQL subclass it."""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, TypeVar

from postroom import faults
from postroom.errors import (
    ArgumentInvalid,
    CommitUnknown,
    PostroomError,
    RoomForked,
    RoomReentered,
    StoreBusy,
    StoreCorrupt,
    StoreReplaced,
    StoreStopped,
)
from postroom.limits import BUSY_SECONDS, CONFLICT_RETRIES_MAX
from postroom.model.message import Draft, Message, Stored
from postroom.model.progress import OnProgress
from postroom.store.kernel import interrupts
from postroom.store.kernel.queues import MEND
from postroom.store.kernel.session import Session
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T")
#: What a program raises that is given something else than was written.
_OF_DAMAGE = (ValueError, TypeError, LookupError, OverflowError, AssertionError, AttributeError)
#: Of queues: how many of those who wait in their lines are to be woken.
Lines = Mapping[int, int]


class Conflict(Exception):
    """Another transaction conflicts; nothing happened, and the work may be retried."""


class Unprepared(Exception):
    """Something must be computed before this transaction, because it may be slow; nothing happened.

    The result is available when the work is repeated.
    """

    def __init__(self, prepare: Callable[[], None]) -> None:
        super().__init__()
        self.prepare = prepare


class Receipt(NamedTuple):
    """Recognises a repeated send: its idempotency key and the hash of its content."""

    name: str
    fingerprint: bytes


class Lent(NamedTuple):
    """A leased message: lease number, attempt, and end."""

    stored: Stored
    fence: int
    attempts: int
    until: int


class Sending(NamedTuple):
    """A send among several: sender, content, queue."""

    queue: int
    draft: Draft
    receipt: Receipt | None
    actor: str
    confirms: tuple[int, str] | None = None  # a message that its sender had, and under which owner: now it is final


class Waiter(Protocol):
    """Sleeps until something may have changed. Create it before looking, so that no change is missed."""

    def wait(self, seconds: float) -> bool:
        """Wait; True if woken, False after a timeout."""

    def wake(self) -> None:
        """End the wait of another thread."""

    def pass_on(self) -> None:
        """There is more than this waiter takes: wake the next in line when it leaves."""


class _Acting(threading.local):
    """The acting user of a thread, if not the room's."""

    name: str | None = None


class Store(ABC):
    """An open store. Threads may share it; they take turns."""

    made = False  # whether its room was not there before it was opened

    def __init__(self, session: Session, actor: str) -> None:
        self.session = session
        self._transaction = Transaction(session, actor)
        self._actor = actor
        self._acting = _Acting()
        self._mutex = threading.RLock()
        self._process = os.getpid()
        self._unusable: Callable[[], PostroomError] | None = None  # why no call may come in now
        self._defers = False  # whether the call that is in defers interrupts
        _open_stores.add(self)

    # --- for everyone above ---

    def transact(self, label: str, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit what it did, all or nothing; run it again if another transaction was in the way."""
        return _prepared(partial(self._retried, partial(self._once, label, work)))

    def _retried(self, once: Callable[[], T]) -> T:
        with self._mutex:
            for _ in range(CONFLICT_RETRIES_MAX):
                with self._entered():
                    try:
                        return once()
                    except Conflict as conflict:
                        why = str(conflict)
            raise StoreBusy(seconds=BUSY_SECONDS, why=why)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run read-only ``work`` on one consistent snapshot of the store."""
        return _prepared(partial(self._retried, partial(self._read_once, work)))

    def _read_once(self, work: Callable[[Transaction], T]) -> T:
        try:
            self._transaction.journal.actor = self.actor
            self._transaction.counts.clear()
            self._begin_reading()
            result = self._interruptibly(work)
            self._check_reading()
            return result
        except Exception as error:
            if not isinstance(error, Conflict):
                self._check_reading()  # what was read may be to blame
            self._raise_ours(error)
        finally:
            self._rollback()

    def _interruptibly(self, work: Callable[[Transaction], T]) -> T:
        """Reads may take long, and leave nothing half done but a transaction."""
        if not self._defers:
            return work(self._transaction)
        try:
            interrupts.allow()
            return work(self._transaction)
        finally:
            interrupts.defer()

    @contextmanager
    def acting(self, actor: str) -> Iterator[None]:
        """In this block, this thread acts as another user."""
        before = self._acting.name
        self._acting.name = actor
        try:
            yield
        finally:
            self._acting.name = before

    @property
    def user(self) -> str | None:
        """The user as whom this thread acts; None if it acts as whoever has opened the room."""
        return self._acting.name

    def send_one(self, queue: int, draft: Draft, receipt: Receipt | None = None) -> int | None:
        """The fast path of a send; None if the general path is needed.

        It covers open queues without a command line, with exactly the effect of ``Messages.put``. For a known receipt
        it returns the first message.
        """
        return None

    def answer_one(self, queue: int, draft: Draft, confirms: tuple[int, str] | None) -> int | None:
        """The fast path of a send that also confirms an earlier receive, given as message and owner."""
        return None

    def send_each(self, sends: Sequence[Sending]) -> list[int | PostroomError | None]:
        """The fast path of several independent sends, in as few commits as possible.

        Each gets a key, an error, or None if it needs the general path.
        """
        return [None] * len(sends)

    def send_some(self, queue: int, drafts: Sequence[Draft]) -> Sequence[int] | None:
        """The fast path of many messages without types, all or none, in order; returns their keys."""
        return None

    def reserve_keys(self, count: int) -> None:  # noqa: B027  on SQLite whoever writes has the file alone anyway
        """Reserve keys in a commit of its own, before a transaction that needs so many.

        Else it would keep the counter locked until it has committed, and senders without keys would wait for it.
        """

    def receive_one(self, queue: int) -> Message | None:
        """The fast path of a receive; None if the general path is needed.

        It covers queues that keep processed messages, are neither on hold nor locked, and have a sound head.
        """
        return None

    def hand_one(self, queue: int, owner: str, fits: Callable[[Stored], bool]) -> tuple[Stored, str] | None:
        """The fast path of a receive that must be confirmed, if the message fits; also returns the queue's path.

        The commit need not be durable: if it is lost, the message is back in its place, as if the receiver had died.
        """
        return None

    def lease_one(self, queue: int, owner: str, microseconds: int) -> Lent | None:
        """The fast path of a lease; None if the general path is needed.

        It covers queues in free order whose next message is sound and without priority, if nothing else is due there.
        """
        return None

    def lease_some(self, queue: int, owner: str, microseconds: int, most: int) -> list[Lent] | None:
        """The fast path of several leases, at most ``most``, in one commit."""
        return None

    def done_one(self, fence: int) -> bool:
        """The fast path of acknowledging a lease; False if the general path is needed."""
        return False

    def turn_one(self, fence: int, queue: int, owner: str, microseconds: int) -> tuple[bool, Lent | None]:
        """The fast path of ending a lease and taking the next in one commit: whether it was ended, and the new lease.

        If not, nothing happened, and the general path is needed.
        """
        return False, None

    def done_some(self, fences: Sequence[int]) -> bool:
        """The fast path of acknowledging several leases, all or none, in one commit."""
        return False

    @property
    def address(self) -> str | None:
        """The URL of this store for other machines; None for a file."""
        return None

    def scrub(self) -> None:
        """Rewrite the file, so that no deleted or changed data is left in it."""
        with self._mutex, self._entered():
            try:
                self._rewrite()
            except Exception as error:
                self._raise_ours(error)

    @property
    def actor(self) -> str:
        """The acting user, for the journal."""
        return self._acting.name or self._actor

    @property
    def stopped(self) -> bool:
        return self._unusable not in (None, RoomReentered)

    def check_usable(self) -> None:
        """Raise if this store has stopped."""
        unusable = self._unusable
        if unusable is not None and unusable is not RoomReentered:
            raise unusable()

    @abstractmethod
    def waiter(self, line: int | None = None) -> AbstractContextManager[Waiter]:
        """A waiter for the next relevant commit.

        Waiters for one queue form a line: a commit wakes as many as it has messages, first come, first served. One that
        is woken and leaves without looking wakes the next.
        """

    def close(self) -> None:
        """Close the connection; a child's copy after a fork is not closed."""
        if self._process == os.getpid():
            with self._mutex:
                if self._unusable is RoomReentered:
                    raise RoomReentered
                self._stop("it was closed")

    # --- one transaction ---

    def _once(self, label: str, work: Callable[[Transaction], T]) -> T:
        transaction = self._transaction
        transaction.clear()
        transaction.journal.actor = self.actor
        try:
            self._begin()
            if faults.armed:
                faults.reach(f"{label}.begun")
            result = work(transaction)
            everyone = transaction.settle()
            lines = None if everyone else transaction.lines
            wake = everyone or bool(lines)
            if faults.armed:
                faults.reach(f"{label}.committing")
            if wake:
                self._wake_with_commit(lines)
        except BaseException as error:
            self._rollback()
            transaction.keys.rolled_back()
            self._raise_ours(error)
        finally:
            transaction.ended()
        self._finish(label)
        if wake:
            self._wake_after_commit(lines)
        return result

    def _finish(self, label: str) -> None:
        try:
            self._commit()
            if faults.armed:
                faults.reach(f"{label}.committed")
        except BaseException as error:
            self._transaction.keys.rolled_back()
            self._raise_uncommitted(label, error)
        self._transaction.keys.committed()

    def _raise_uncommitted(self, label: str, error: BaseException) -> NoReturn:
        refusal = self._refused_commit(error)
        if refusal is not None:
            self._rollback()
            raise refusal from error
        if isinstance(error, StoreReplaced):
            self._stop(str(error))
            raise error
        # Neither yes nor no. Going on would build on sand, so this store takes no more work.
        self._settle(label)
        self._stop(f"a commit was not confirmed ({error})")
        raise CommitUnknown(label=label, why=str(error)) from error

    def _raise_ours(self, error: BaseException) -> NoReturn:
        ours = self._translated(error)
        if isinstance(error, UnicodeEncodeError):  # what no look at a name or a text has stopped before
            why = f"character {error.start + 1} is half of a surrogate pair, which no store can hold"
            ours = ArgumentInvalid(argument=ascii(error.object[:40]), why=why)
        if ours is not error:
            raise ours from error
        if isinstance(error, _OF_DAMAGE) and self._is_damaged():
            raise StoreCorrupt(why=f"what was read makes no sense ({type(error).__name__}: {error}). {MEND}") from error
        raise error

    def _is_damaged(self) -> bool:
        """Whether the store does not match its journal. Checked after an unexpected error."""
        from postroom.store.proof.verification import verified  # which nothing else that is common needs

        self._rollback()
        try:
            self._begin_reading()
            return bool(self.session.damage() or verified(self._transaction).differences)
        except Exception as failure:  # whatever it is: a sound store can be read
            return isinstance(failure, _OF_DAMAGE) or isinstance(self._translated(failure), StoreCorrupt)
        finally:
            self._rollback()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Refuse re-entry: a call from a signal handler would corrupt this one."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        if self._unusable is not None:
            raise self._unusable()
        self._defers = interrupts.defer()
        self._unusable = RoomReentered

    def _leave(self) -> None:
        if self._unusable is RoomReentered:
            self._unusable = None
        if self._defers:
            self._defers = False
            if interrupts.forced():
                self._stop("a call was interrupted twice, and cut off")
            interrupts.allow()

    def _stop(self, why: str) -> None:
        self._unusable = partial(StoreStopped, why=why)

    def _forked(self) -> None:
        """In a child process: the connection belongs to the parent, and its lock may never be released."""
        self._mutex = threading.RLock()
        self._unusable = partial(RoomForked, opened=self._process, used=os.getpid())

    # --- what a database must do ---

    @abstractmethod
    def copy_to(self, file: Path, progress: OnProgress) -> None:
        """Write a consistent snapshot into a SQLite file while others use the store."""

    @abstractmethod
    def copy_from(self, file: Path, progress: OnProgress) -> None:
        """Take over the content of a SQLite file of this version in one commit; then this store stops."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _begin_reading(self) -> None: ...

    def _check_reading(self) -> None:  # noqa: B027  a server needs no such check
        """Raise ``Conflict`` if the reads were not one consistent snapshot."""

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _settle(self, label: str) -> None:
        """After an unconfirmed commit: make it visible to all or to nobody, if possible now.

        Never raises; what cannot be settled is marked.
        """

    @abstractmethod
    def _rollback(self) -> None:
        """Roll back an open transaction; never raises."""

    @abstractmethod
    def _translated(self, error: BaseException) -> BaseException:
        """A driver's error as ours (or as ``Conflict``); any other is returned unchanged."""

    @abstractmethod
    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        """The error if the database certainly did not commit; else None."""

    @abstractmethod
    def _rewrite(self) -> None: ...

    def _wake_with_commit(self, lines: Lines | None = None) -> None:  # noqa: B027  a database wakes by one of the two
        """Have the next commit wake waiters: all, or so many of each of ``lines``."""

    def _wake_after_commit(self, lines: Lines | None = None) -> None:  # noqa: B027
        """Wake waiters after the commit, in the same way."""


def _prepared(work: Callable[[], T]) -> T:
    """Run work, computing what it asks for (``Unprepared``) outside of the transaction."""
    for _ in range(CONFLICT_RETRIES_MAX):
        try:
            return work()
        except Unprepared as unprepared:
            prepare = unprepared.prepare
        prepare()
    raise StoreBusy(seconds=BUSY_SECONDS, why="it conflicted with another change each time")


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    for store in _open_stores:
        store._forked()


os.register_at_fork(after_in_child=_after_fork)
