"""Puts messages back whose receiver was gone, and says so in the journal.

A ``deliver`` function confirms by returning. A receive in another thread may be cancelled without the thread's
knowledge (``asyncio.to_thread``): there, a result that is dropped unread counts as not received.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from postroom.errors import OutputFailed
from postroom.model.key import key_text
from postroom.model.message import IN_SPHERE, Message, Stored
from postroom.queues.results import Received
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import own_token
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.handouts import Handout

ENDED = "its process ended before it was confirmed"
LOST = "its session lost the database before it was confirmed"
#: Is given what was received; the take is final when it returns.
Deliver = Callable[[Received], None]


class Taken(NamedTuple):
    """What a receive delivered."""

    queue: int
    stored: Stored
    segment: int | None = None  # its place among the segments, if the message was asked for in segments
    last: bool = True
    locked: bool = False  # by its receiver, who had read segments before
    then: tuple[int, int] = (0, 0)  # segments and characters that were given out when it is confirmed


class Unconfirmed:
    """What a program has received and not confirmed: its next call confirms it, in the same commit.

    If the program ends before, the message is back in its place.
    """

    def __init__(self) -> None:
        self.taken: list[Taken] = []

    def confirm(self, tx: Transaction) -> None:
        """Make the receive final; raises if the message was given to another meanwhile, and then changes nothing."""
        for taken in self.taken:
            if not tx.handouts.confirm(taken.stored.key, own_token()):
                why = "it was not confirmed in time, and others can receive it again"
                raise OutputFailed(key=key_text(taken.stored.key), queue=taken.stored.queue, why=why)

    def give_back(self, store: Store, why: str) -> None:
        """Put back what was not confirmed."""
        handouts = [Handout(taken.stored.key, taken.queue, own_token(), 0) for taken in self.taken]
        self.taken = []
        if handouts:
            give_back(store, handouts, why)


class Unread(Received):
    """A result that reports when it is dropped unread."""

    _give_back: Callable[[], None] | None = None

    @classmethod
    def of(cls, received: Received, give_back: Callable[[], None]) -> Unread:
        made: Unread = tuple.__new__(cls, tuple(received))
        made._give_back = give_back
        return made

    @property
    def message(self) -> Message | None:
        """The message; reading it counts as receiving."""
        return self[0]

    def __getitem__(self, place: Any) -> Any:
        self._give_back = None
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Any]:
        self._give_back = None
        return super().__iter__()

    def __bool__(self) -> bool:
        self._give_back = None
        return True

    def __eq__(self, other: object) -> bool:
        self._give_back = None
        return super().__eq__(other)

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return "Received(a message that was not read yet)" if self._give_back else tuple.__repr__(self)

    def __del__(self) -> None:
        if self._give_back is not None:
            self._give_back()


def is_main() -> bool:
    """Whether this is the main thread, whose caller certainly gets the result."""
    return threading.get_ident() == threading.main_thread().ident


class Returns:
    """Puts back what was dropped unread, in separate threads, because dropping may happen during any call."""

    def __init__(self, store: Store, again: Callable[[], Store]) -> None:
        self._store = store
        self._again = again  # opens the store once more, should the room be closed by then
        self._running: set[threading.Thread] = set()

    def watched(self, received: Received, taken: Taken) -> Received:
        """The result for a caller who may be gone."""
        return Unread.of(received, partial(self._start, taken))

    def finish(self) -> None:
        """Wait for running ones."""
        for thread in list(self._running):
            thread.join()

    def _start(self, taken: Taken) -> None:
        thread = threading.Thread(target=self._run, args=(taken,), name="postroom returns")
        self._running.add(thread)
        thread.start()

    def _run(self, taken: Taken) -> None:
        try:
            if not self._store.stopped:
                undo(self._store, taken, "nobody looked at it")
            else:
                with closing(self._again()) as store:
                    undo(store, taken, "nobody looked at it")
        finally:
            self._running.discard(threading.current_thread())


def undo(store: Store, taken: Taken, why: str) -> None:
    """Undo a receive, or the step to the next segment."""

    def work(tx: Transaction) -> None:
        queue, stored = tx.queues.locked(taken.queue), taken.stored
        if taken.last:
            if tx.handouts.put_back(queue.id, stored, why):
                _withdrawn(tx, queue.id, stored)
        elif queue.lock_message == stored.key and (queue.lock_segment, queue.lock_char) == taken.then:
            tx.queues.unlock(queue, why)  # it starts again at its first segment
        tx.wake()

    store.transact("give-back", work)


def give_back(store: Store, handouts: list[Handout], why: str) -> None:
    """Put messages back whose output was not confirmed."""

    def work(tx: Transaction) -> None:
        for handout in handouts:
            restore(tx, handout, why)
        tx.wake()

    store.transact("give-back", work)


def restore(tx: Transaction, handout: Handout, why: str) -> bool:
    """Put a message back, within a transaction; True if it is in its place now."""
    stored = tx.handouts.copy(handout.message)
    if stored is None or not tx.handouts.give_back(handout, why):
        return False
    return not _withdrawn(tx, handout.queue, stored)


def _withdrawn(tx: Transaction, queue: int, stored: Stored) -> bool:
    """Whether a message that is back belongs to a sphere that has failed meanwhile, and was withdrawn."""
    if IN_SPHERE not in stored.properties:
        return False
    from postroom.engine.spheres import withdraw

    return withdraw(tx, queue, stored)


def take_back(store: Store) -> None:
    """Put back the unconfirmed messages of this process after its room lost the store, and unlock its queues.

    Only for a process with no other users of that store.
    """
    own = own_token()

    def work(tx: Transaction) -> None:
        for handout in tx.handouts.all():
            if handout.owner == own:
                restore(tx, handout, LOST)
        for queue in tx.queues.all():
            if queue.lock_owner is not None and queue.lock_owner.startswith(f"{own}/"):
                tx.queues.unlock(tx.queues.locked(queue.id), LOST)
        tx.wake()

    store.transact("give-back", work)
