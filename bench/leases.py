"""Leases on SQLite beside two queue libraries that can do the same, and sends that share commits or a room.

A lease and its end are two commits by two calls; in a loop (``each``) the end of one and the lease of the next are one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import persistqueue
from litequeue import LiteQueue

import postroom
import postroom.aio
from contenders import PEERS, PLAIN, Contender, Durability, durability_of, open_plain
from rounds import SLICES, Round, run_round, timed

CALLS, LOOP = "postroom, two calls", "postroom, a loop"
TASKS = "postroom"
BODY = "x" * 100
READY_SECONDS, DONE_SECONDS = 60, 200


class Leasing(NamedTuple):
    """A lease and its end, in a queue that is filled."""

    work: Callable[[], object]
    close: Callable[[], object]
    durability: Durability | None = None  # of who does not see to it itself


def open_calls(folder: Path, messages: int) -> Leasing:
    room = _filled(folder / "calls.db", messages)

    def work() -> None:
        message = room.receive("q", lease=30).message
        assert message is not None
        message.done()

    return Leasing(work, room.close)


def open_loop(folder: Path, messages: int) -> Leasing:
    room = _filled(folder / "loop.db", messages + 1)
    each: Any = room.consumers.each("q", lease=30)  # a generator, which is ended by its close

    def close() -> None:
        each.close()
        room.close()

    return Leasing(lambda: next(each), close)


def _filled(file: Path, messages: int) -> postroom.Postroom:
    room = postroom.open(file)
    room.queues.create("q")
    room.send_many("q", [BODY] * messages)
    return room


def open_persist_queue(folder: Path, messages: int) -> Leasing:
    queue = persistqueue.SQLiteAckQueue(str(folder / "persist-queue"), auto_commit=True)
    putter: Any = queue._putter
    getter: Any = queue._getter
    for connection in (putter, getter):
        _full(connection)
    for _ in range(messages):
        queue.put(BODY)

    def work() -> None:
        queue.ack(queue.get(block=False))

    return Leasing(work, queue.close, durability_of(getter))


def open_litequeue(folder: Path, messages: int) -> Leasing:
    queue = LiteQueue(folder / "litequeue.db")
    _full(queue.conn)
    for _ in range(messages):
        queue.put(BODY)

    def work() -> None:
        message = queue.pop()
        assert message is not None
        queue.done(message.message_id)

    return Leasing(work, queue.conn.close, durability_of(queue.conn))


def _full(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")


OPENERS = {CALLS: open_calls, LOOP: open_loop, PEERS[0]: open_persist_queue, PEERS[1]: open_litequeue}


def beside_peers(folder: Path, numbers: Iterable[int], messages: int, notes: list[str]) -> list[Round]:
    """In new files each round, so that no round inherits from another."""
    found: list[Round] = []
    kept: dict[str, str] = {}
    for number in numbers:
        place = folder / f"leases-{number}"
        place.mkdir()
        leasing = {name: opener(place, messages) for name, opener in OPENERS.items()}
        kept = {name: each.durability.told() for name, each in leasing.items() if each.durability is not None}
        found.append(run_round({name: (each.work, [()] * messages) for name, each in leasing.items()}, number))
        for each in leasing.values():
            each.close()
        shutil.rmtree(place)
    notes += [f"{name}, get and ack or pop and done: {told}" for name, told in kept.items()]
    return found


# --- tasks that share commits ---


def together(folder: Path, numbers: Iterable[int], tasks: int, messages: int) -> list[Round]:
    """Seconds of a send: of tasks that send at once, and of one plain insert after another."""
    size = -(-messages // SLICES)
    found: list[Round] = []
    for number in numbers:
        place = folder / f"together-{number}"
        place.mkdir()
        plain = open_plain(place)
        with _tasks(place / "tasks.db", tasks) as send:
            senders: dict[str, Callable[[int], None]] = {TASKS: send, PLAIN: partial(_one_by_one, plain)}
            for each in senders.values():
                each(size)  # the first ones warm up
            taken = run_round({name: (each, [(size,)] * SLICES) for name, each in senders.items()}, number)
        plain.close()
        found.append({name: seconds / size for name, seconds in taken.items()})
        shutil.rmtree(place)
    return found


def _one_by_one(plain: Contender, count: int) -> None:
    for _ in range(count):
        plain.send(BODY)


@contextmanager
def _tasks(file: Path, tasks: int) -> Iterator[Callable[[int], None]]:
    """Sends so many messages by tasks that share commits; each of them waits until its own is on disk."""
    with asyncio.Runner() as runner:
        room = runner.run(_opened(file))

        async def some(count: int) -> None:
            for _ in range(count):
                await room.send("q", BODY)

        async def all_of_them(count: int) -> None:
            shares = [count // tasks + (number < count % tasks) for number in range(tasks)]
            await asyncio.gather(*map(some, shares))

        yield lambda count: runner.run(all_of_them(count))
        runner.run(room.close())


async def _opened(file: Path) -> postroom.aio.AsyncRoom:
    room = await postroom.aio.open(file)
    await room.queues.create("q")
    return room


# --- processes that share a room ---


class Shared(NamedTuple):
    """What processes that send into one room have done."""

    rate: float  # sends a second of all
    longest: float  # seconds that one of them has waited


def side_by_side(file: Path, clients: int, calls: int) -> Shared:
    with postroom.open(file) as room:
        room.queues.create("q")
    ready = multiprocessing.Barrier(clients)
    told: Any = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=_send, args=(file, calls, ready, told)) for _ in range(clients)]
    for process in processes:
        process.start()
    took = [told.get(timeout=DONE_SECONDS) for _ in processes]
    for process in processes:
        process.join()
    return Shared(clients * calls / max(map(sum, took)), max(map(max, took)))


def _send(file: Path, calls: int, ready: Barrier, told: Any) -> None:
    with postroom.open(file) as room:
        room.send("q", BODY)
        ready.wait(READY_SECONDS)
        told.put([timed(lambda: room.send("q", BODY), [()]) for _ in range(calls)])
