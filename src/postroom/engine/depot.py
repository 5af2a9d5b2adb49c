"""The store as the place of exchange with executors: they fetch what messages say by their keys, and leave answers.

Then only keys and receipts go through the engine's Spark. Answers are known by the lease, step, job and chunk that they
are for: an attempt that comes second leaves nothing, and what no step commits is swept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from postroom.errors import ArgumentInvalid, PostroomError, StoreUnavailable
from postroom.model.message import Stored
from postroom.store import open_store
from postroom.store.base import Store
from postroom.store.batch import Stale

T = TypeVar("T")

#: Says who hands messages to executors and takes their answers: the store, or the driver.
SETTING = "spark.postroom.exchange"
_WAYS = ("store", "driver")
_jobs = count(1)
_steps = count(1)


def exchange(store: Store, master: str, conf: Mapping[str, str]) -> str | None:
    """The URL under which executors are to read and write; None if the engine hands everything over itself."""
    wish = conf.get(SETTING)
    if wish is None:
        return None if master.startswith("local") else store.address
    if wish not in _WAYS:
        raise ArgumentInvalid(argument=SETTING, why=f"{wish!r} is not one of: {', '.join(_WAYS)}")
    if wish == "driver":
        return None
    if store.address is None:
        raise ArgumentInvalid(argument=SETTING, why="a room in a file cannot be opened by executors; use PostgreSQL")
    return store.address


def settings_of_spark(conf: Mapping[str, str]) -> dict[str, str]:
    """Without our own setting, of which Spark need not know."""
    return {name: value for name, value in conf.items() if name != SETTING}


class Damaged(Exception):
    """Executors found messages that no longer say what was sent."""

    def __init__(self, keys: Sequence[int]) -> None:
        super().__init__(keys)
        self.keys = keys


# --- in the driver -----------------------------------------------------------------------------------------------


class Depot:
    """Where an engine finds what its executors left. It looks by a connection of its own: others commit meanwhile."""

    def __init__(self, url: str, fence: int) -> None:
        self.url = url
        self.fence = fence
        self.store = open_store(url, actor="engine", create=False)

    def bay(self) -> Bay:
        """For one more step."""
        return Bay(self, next(_steps))

    def close(self) -> None:
        self.store.close()


@dataclass(frozen=True)
class Bay:
    """The place of one step."""

    depot: Depot
    step: int

    def ticket(self) -> Ticket:
        """For one more job: what an earlier one left is not mixed with what this one leaves."""
        return Ticket(self.depot.url, self.depot.fence, self.step, next(_jobs))

    def answers(self, ticket: Ticket, receipts: Iterable[Receipt]) -> list[bytes]:
        """What executors left, in the order of chunks."""
        chunks = set()
        damaged: list[int] = []
        for receipt in receipts:
            if receipt.trouble:
                raise StoreUnavailable(why=f"an executor could not use the room: {receipt.trouble}")
            if receipt.gone:
                raise Stale  # someone has received or removed a message since it was claimed
            damaged += receipt.damaged
            chunks.add(receipt.chunk)
        if damaged:
            raise Damaged(damaged)
        store = self.depot.store
        found = store.read(lambda tx: tx.staging.answers(ticket.fence, ticket.step, ticket.job))
        if not chunks <= found.keys():
            raise Stale  # the database crashed meanwhile, and begins with an empty table
        return [found[chunk] for chunk in sorted(chunks)]


# --- in the worker -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Receipt:
    """What a worker tells of a chunk: it left the answer, or could not."""

    chunk: int
    gone: bool = False
    damaged: Sequence[int] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Ticket:
    """What a worker needs to fetch messages and to leave its answer; it travels as the code of a task does."""

    url: str = field(repr=False)  # it may hold a password
    fence: int
    step: int
    job: int

    def fetched(self, keys: Sequence[int]) -> dict[int, Stored]:
        return _tried(self.url, lambda store: store.read(lambda tx: tx.messages.find_many(keys)))

    def leave(self, chunk: int, answer: bytes) -> bool:
        """Keep the answer to a chunk; False if another attempt has left it before."""
        about = (self.fence, self.step, self.job, chunk)
        return _tried(self.url, lambda store: store.transact("stage", lambda tx: tx.staging.add(*about, answer)))


_lock = threading.Lock()
_opened: dict[tuple[int, str], Store] = {}  # one connection of each worker process, kept from task to task


def _tried(url: str, work: Callable[[Store], T]) -> T:
    """Twice: a connection that was idle for long may have been ended, and an answer is left at most once."""
    with _lock:
        try:
            return work(_store(url))
        except PostroomError:
            leave_all()
            return work(_store(url))


def _store(url: str) -> Store:
    place = (os.getpid(), url)
    if place not in _opened:
        _opened[place] = open_store(url, actor="executor", create=False)
    return _opened[place]


def leave_all() -> None:
    """Close the connections of this process."""
    while _opened:
        _, store = _opened.popitem()
        store.close()
