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
from postroom.store.kernel.queues import MEND
from postroom.store.kernel.session import Session
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T")
#: What a program raises that is given something else than was written.
_OF_DAMAGE = (ValueError, TypeError, LookupError, OverflowError, AssertionError, AttributeError)
#: Of queues: how many of those who wait in their lines are to be woken.
Lines = Mapping[int, int]


class Conflict(Exception):
    """Another transaction was in the way; nothing happened, and the same work may be tried again."""


class Unprepared(Exception):
    """Something must be worked out before this transaction, which may take its time; nothing happened.

    What raises it finds the result there when the same work is done again.
    """

    def __init__(self, prepare: Callable[[], None]) -> None:
        super().__init__()
        self.prepare = prepare


class Receipt(NamedTuple):
    """What makes a repeated send known: its idempotency key, and what it asked for."""

    name: str
    fingerprint: bytes


class Lent(NamedTuple):
    """A message that was given out: under which number, for the how manieth time, and until when."""

    stored: Stored
    fence: int
    attempts: int
    until: int


class Sending(NamedTuple):
    """One send among several: who sends what, and where to."""

    queue: int
    draft: Draft
    receipt: Receipt | None
    actor: str
    confirms: tuple[int, str] | None = None  # a message that its sender had, and under which owner: now it is final


class Waiter(Protocol):
    """Sleeps until something may have changed. Made before looking, so that no change falls in between."""

    def wait(self, seconds: float) -> bool:
        """True if woken, False if the time is up."""

    def wake(self) -> None:
        """End the wait of another thread."""

    def pass_on(self) -> None:
        """There is more than this one takes: have the next of its line woken when it leaves."""


class _Acting(threading.local):
    """For whom a thread acts, if not for the room's user."""

    name: str | None = None


class Store(ABC):
    """One open store. Threads may share it: they take turns."""

    def __init__(self, session: Session, actor: str) -> None:
        self.session = session
        self._transaction = Transaction(session, actor)
        self._actor = actor
        self._acting = _Acting()
        self._mutex = threading.RLock()
        self._process = os.getpid()
        self._unusable: Callable[[], PostroomError] | None = None  # why no call may come in now
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
        """Run ``work`` on one unchanging picture of the store; it must not write."""
        return _prepared(partial(self._retried, partial(self._read_once, work)))

    def _read_once(self, work: Callable[[Transaction], T]) -> T:
        try:
            self._transaction.journal.actor = self.actor
            self._begin_reading()
            result = work(self._transaction)
            self._check_reading()
            return result
        except Exception as error:
            if not isinstance(error, Conflict):
                self._check_reading()  # what was read may be to blame
            self._raise_ours(error)
        finally:
            self._rollback()

    @contextmanager
    def acting(self, actor: str) -> Iterator[None]:
        """What this thread does inside is done by someone else than the room's user."""
        before = self._acting.name
        self._acting.name = actor
        try:
            yield
        finally:
            self._acting.name = before

    def send_one(self, queue: int, draft: Draft, receipt: Receipt | None = None) -> int | None:
        """The commonest send in as few calls as the database allows; None if the case needs the long way.

        It answers for an open queue without a command line, with exactly the effect of ``Messages.put``. With a receipt
        it answers with the message that this receipt was given for, if there is one.
        """
        return None

    def answer_one(self, queue: int, draft: Draft, confirms: tuple[int, str] | None) -> int | None:
        """The same for whoever had a message that is final with this send: the message, and the owner that had it."""
        return None

    def send_each(self, sends: Sequence[Sending]) -> list[int | PostroomError | None]:
        """Several such sends that have nothing to do with each other, in as few commits as can be.

        Each answers for itself: a key, a refusal, or None if its case needs the long way.
        """
        return [None] * len(sends)

    def send_some(self, queue: int, drafts: Sequence[Draft]) -> Sequence[int] | None:
        """Likewise of many messages without types, all or none, in their order: their keys."""
        return None

    def receive_one(self, queue: int) -> Message | None:
        """The commonest receive likewise: the taken message; None if the case needs the long way.

        It answers for a queue that keeps its processed messages, is neither held nor locked, and has a sound head.
        """
        return None

    def hand_one(self, queue: int, owner: str, fits: Callable[[Stored], bool]) -> tuple[Stored, str] | None:
        """The same of a message that is not final before its receiver confirms it, if it fits; and its queue's path.

        The commit need not be on disk: if it is lost, the message is where it would be had the receiver died.
        """
        return None

    def lease_one(self, queue: int, owner: str, microseconds: int) -> Lent | None:
        """The commonest lease likewise; None as above.

        It answers for a queue in free order whose next message is sound and not urgent, if nothing else is to be done
        there first.
        """
        return None

    def lease_some(self, queue: int, owner: str, microseconds: int, most: int) -> list[Lent] | None:
        """Likewise of the next messages, at most so many, in one commit."""
        return None

    def done_one(self, fence: int) -> bool:
        """The commonest end of a lease likewise; False if the case needs the long way."""
        return False

    def turn_one(self, fence: int, queue: int, owner: str, microseconds: int) -> tuple[bool, Lent | None]:
        """The end of a lease and the next one in one commit: whether it was ended, and what was given out.

        If it was not, nothing has happened, and the case needs the long way.
        """
        return False, None

    def done_some(self, fences: Sequence[int]) -> bool:
        """Likewise of several leases, all or none, in one commit."""
        return False

    @property
    def address(self) -> str | None:
        """The URL by which other machines open this store; None if it is a file of this one."""
        return None

    def scrub(self) -> None:
        """Write anew what there is, so that nothing of what was changed or deleted before is left in the file."""
        with self._mutex, self._entered():
            try:
                self._rewrite()
            except Exception as error:
                self._raise_ours(error)

    @property
    def actor(self) -> str:
        """Who acts, as the journal tells it."""
        return self._acting.name or self._actor

    @property
    def stopped(self) -> bool:
        return self._unusable not in (None, RoomReentered)

    def check_usable(self) -> None:
        """Raise what anyone would get who uses this store, if it has stopped."""
        unusable = self._unusable
        if unusable is not None and unusable is not RoomReentered:
            raise unusable()

    @abstractmethod
    def waiter(self, line: int | None = None) -> AbstractContextManager[Waiter]:
        """A waiter for the next commit that wakes.

        One who waits for a message of one queue stands in its line: of those a commit wakes as many as it has
        messages for, the first of them first. Whoever is woken and leaves without a look has the next one woken.
        """

    def close(self) -> None:
        """Close the connection; a child's copy of it after a fork is not its own to close."""
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
            transaction.definitions.changing = False
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
        """Whether the store is not what its journal comes to. Asked after an error that nobody has foreseen."""
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
        """Nothing of this store may be called again before this call is over: a signal handler would wreck it."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        if self._unusable is not None:
            raise self._unusable()
        self._unusable = RoomReentered

    def _leave(self) -> None:
        if self._unusable is RoomReentered:
            self._unusable = None

    def _stop(self, why: str) -> None:
        self._unusable = partial(StoreStopped, why=why)

    def _forked(self) -> None:
        """In a child process: the connection is the parent's, and its lock may be held by a thread that is not here."""
        self._mutex = threading.RLock()
        self._unusable = partial(RoomForked, opened=self._process, used=os.getpid())

    # --- what a database must do ---

    @abstractmethod
    def copy_to(self, file: Path, progress: OnProgress) -> None:
        """Write all that is stored, as it is in one moment, into a SQLite file; others go on meanwhile."""

    @abstractmethod
    def copy_from(self, file: Path, progress: OnProgress) -> None:
        """Take over all that a SQLite file of this version holds, in one commit; then this store takes no more work."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _begin_reading(self) -> None: ...

    def _check_reading(self) -> None:  # noqa: B027  a server needs no such check
        """A ``Conflict`` if what was read is not one picture of the store."""

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _settle(self, label: str) -> None:
        """After a commit that was not confirmed: let it be there for all or for nobody, if that can be done now.

        Never raises. What cannot be settled is left so that others notice.
        """

    @abstractmethod
    def _rollback(self) -> None:
        """End the transaction if one is open; never raises."""

    @abstractmethod
    def _translated(self, error: BaseException) -> BaseException:
        """A driver's error as ours (or as ``Conflict``); any other comes back as it is."""

    @abstractmethod
    def _refused_commit(self, error: BaseException) -> PostroomError | Conflict | None:
        """Ours, if the database said for certain that the commit did not happen; else None."""

    @abstractmethod
    def _rewrite(self) -> None: ...

    def _wake_with_commit(self, lines: Lines | None = None) -> None:  # noqa: B027  a database wakes by one of the two
        """Have those who wait be woken by the commit that follows: all, or of ``lines`` so many."""

    def _wake_after_commit(self, lines: Lines | None = None) -> None:  # noqa: B027
        """Wake those who wait, likewise."""


def _prepared(work: Callable[[], T]) -> T:
    """What comes of work, with all that it asks for worked out first, while nobody waits for the store."""
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
