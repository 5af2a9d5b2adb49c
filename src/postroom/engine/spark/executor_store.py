"""Exchange with executors through the store: they read bodies by key and write answers there.

Then only keys and receipts go through the engine's Spark. Answers are known by the lease, step, job and chunk that they
are for: a second attempt at a task writes nothing, and answers that no step commits are removed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import TypeVar

from postroom.errors import ArgumentInvalid, PostroomError, StoreUnavailable
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.store import open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T")

#: Says who hands messages to executors and takes their answers: the store, or the driver.
SETTING = "spark.postroom.exchange"
_WAYS = ("store", "driver")
_jobs = count(1)
_steps = count(1)


def exchange(store: Store, master: str, conf: Mapping[str, str]) -> str | None:
    """The URL of the store for executors; None if the engine sends everything through Spark."""
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
    """Spark's settings without our own."""
    return {name: value for name, value in conf.items() if name != SETTING}


class Damaged(Exception):
    """Executors found damaged messages."""

    def __init__(self, keys: Sequence[int]) -> None:
        super().__init__(keys)
        self.keys = keys


def misread(key: int) -> StoreUnavailable:
    """The error if executors found a message damaged and the engine does not."""
    return StoreUnavailable(why=f"an executor read message {key_text(key)} otherwise than the engine does")


def unreached(why: str) -> StoreUnavailable:
    """The error if executors could not use the store."""
    return StoreUnavailable(why=f"an executor could not use the room: {why}")


# --- in the driver -----------------------------------------------------------------------------------------------


class AnswerStore:
    """Where an engine reads the answers of its executors, over a connection of its own, because others commit
    meanwhile."""

    def __init__(self, url: str, fence: int) -> None:
        self.url = url
        self.fence = fence
        self.store = open_store(url, actor="engine", create=False)
        self.under_way: set[int] = set()  # the steps whose answers someone may yet ask for

    def bay(self) -> Bay:
        """A new bay, for one more step."""
        bay = Bay(self, next(_steps))
        self.under_way.add(bay.step)
        return bay

    def close(self) -> None:
        self.store.close()


@dataclass(frozen=True)
class Bay:
    """The exchange of one step with its executors."""

    answer_store: AnswerStore
    step: int

    def ticket(self) -> Ticket:
        """A ticket for one more job, whose answers are kept apart from those of earlier jobs."""
        return Ticket(self.answer_store.url, self.answer_store.fence, self.step, next(_jobs))

    def answers(self, ticket: Ticket, receipts: Iterable[Receipt]) -> list[bytes]:
        """The answers to a job in the order of chunks; raises if an executor had trouble."""
        chunks = set()
        damaged: list[int] = []
        for receipt in receipts:
            if receipt.trouble:
                raise unreached(receipt.trouble)
            if receipt.gone:
                raise Stale  # someone has received or removed a message since it was claimed
            damaged += receipt.damaged
            chunks.add(receipt.chunk)
        if damaged:
            raise Damaged(damaged)
        store = self.answer_store.store
        answers = store.read(lambda tx: tx.staging.answers(ticket.fence, ticket.step, ticket.job))
        if not chunks <= answers.keys():
            raise Stale  # the database crashed meanwhile, and begins with an empty table
        return [answers[chunk] for chunk in sorted(chunks)]

    def fetched(self, keys: Sequence[int]) -> dict[int, Stored]:
        """The claimed messages with bodies, for the few that the engine itself has to read."""
        messages = self.answer_store.store.read(lambda tx: tx.messages.find_many(keys)) if keys else {}
        if len(messages) < len(set(keys)):
            raise Stale  # someone has received or removed one since it was claimed
        return messages

    def clear(self, tx: Transaction) -> None:
        """Remove the answers for this step and for abandoned steps."""
        others = self.answer_store.under_way - {self.step}
        tx.staging.clear(self.answer_store.fence, self.step, min(others, default=self.step))

    def close(self) -> None:
        """End it: the step is committed or abandoned."""
        self.answer_store.under_way.discard(self.step)


# --- in the worker -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Receipt:
    """What a worker reports of a chunk: the answer is written, or why not."""

    chunk: int
    gone: bool = False
    damaged: Sequence[int] = ()
    trouble: str = ""

    def packed(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def unpacked(packed: bytes) -> Receipt:
        return Receipt(**json.loads(packed))


@dataclass(frozen=True)
class Ticket:
    """What a worker needs to read messages and write its answer; sent along with the task."""

    url: str = field(repr=False)  # it may hold a password
    fence: int
    step: int
    job: int

    @classmethod
    def of(cls, url: str, packed: str) -> Ticket:
        """A ticket that was sent as a property of a job."""
        return cls(url, *map(int, packed.split()))

    def __str__(self) -> str:
        """Without the URL: properties of a job are public."""
        return f"{self.fence} {self.step} {self.job}"

    def fetched(self, keys: Sequence[int]) -> dict[int, Stored]:
        return _tried(self.url, lambda store: store.read(lambda tx: tx.messages.find_many(keys)))

    def leave(self, chunk: int, answer: bytes) -> bool:
        """Write the answer to a chunk; False if another attempt has already done so."""
        about = (self.fence, self.step, self.job, chunk)
        return _tried(self.url, lambda store: store.transact("stage", lambda tx: tx.staging.add(*about, answer)))

    def worked_off(
        self, chunk: int, keys: Collection[int], ours: Collection[int], work: Callable[[dict[int, Stored]], bytes]
    ) -> Receipt:
        """Read the messages that a chunk needs, and write what ``work`` answers.

        All messages must be there, and ``ours`` must match their hash. Errors of the store are reported in the receipt;
        errors of ``work`` are raised.
        """
        try:
            messages = self.fetched(sorted(keys))
        except PostroomError as error:
            return Receipt(chunk, trouble=str(error))
        damaged = [key for key in ours if key in messages and not messages[key].sound]
        if len(messages) < len(keys) or damaged:
            return Receipt(chunk, gone=len(messages) < len(keys), damaged=damaged)
        return self.left(chunk, work(messages))

    def left(self, chunk: int, answer: bytes) -> Receipt:
        """The receipt for an answer that is written now, or was before."""
        try:
            self.leave(chunk, answer)
        except PostroomError as error:
            return Receipt(chunk, trouble=str(error))
        return Receipt(chunk)


_lock = threading.Lock()
_opened: dict[tuple[int, str], Store] = {}  # one connection of each worker process, kept from task to task


def _tried(url: str, work: Callable[[Store], T]) -> T:
    """Try twice: an idle connection may be closed, and an answer is written at most once."""
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
    """Close all connections of this process."""
    while _opened:
        _, store = _opened.popitem()
        store.close()
