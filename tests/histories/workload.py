"""Processes that send, take, read and exchange at random in one room, some of them killed, and what it comes to."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.histories import lists, queues
from tests.histories.record import UNKNOWN, Operation, Recorder, recorded

import postroom
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.transaction import Transaction

TAKEN = ("t0", "t1", "t2")  # queues that are taken from
LISTS, EPOCH = 6, 200  # queues that are only read, and after how many calls of a process there are others

PAUSE_SECONDS = 0.004  # at the most, before a call: about as long as one takes


def kept(number: int) -> list[str]:
    """The queues that are read at a process's n-th call: some for each epoch, so that they do not grow too long."""
    return [f"k{number // EPOCH}_{each}" for each in range(LISTS)]


_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["tests.histories.workload", "postroom.store.sqlite.store", "postroom.store.postgres.store"]
)


@dataclass(frozen=True)
class Run:
    """A history, and what was in the room at the end."""

    history: Sequence[Operation]
    taken: dict[str, list[tuple[str, bool]]]
    kept: dict[str, list[str]]
    kills: int

    @property
    def overlapped(self) -> int:
        """How many calls began while one of another process was under way."""
        found, under_way = 0, dict[str, float]()
        for each in sorted(self.history, key=lambda one: one.begun):
            found += any(ended > each.begun for process, ended in under_way.items() if process != each.process)
            under_way[each.process] = each.ended if each.outcome != UNKNOWN else each.begun
        return found

    def wrong(self) -> list[str]:
        return queues.check(self.history, self.taken) + lists.check(self.history, self.kept)


def run(url: str, folder: Path, seed: int, *, operations: int, processes: int = 8, kills: int = 0) -> Run:
    """Let processes work until together they have done so many operations; one that is killed has a successor."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        share = operations // processes
        lists_ = [name for number in range(0, share, EPOCH) for name in kept(number)]
        for name in (*TAKEN, *lists_):
            room.queues.create(name)
    numbers = iter(range(100_000))
    working = [_started(url, folder, next(numbers), seed, share) for _ in range(processes)]
    while not all(file.exists() for _, file, _ in working):
        assert all(process.exitcode is None for process, _, _ in working)
        time.sleep(0.01)
    (folder / "go").touch()  # all at once
    killed = 0
    while working:
        time.sleep(chance.uniform(0.005, 0.05) if killed < kills else 0.02)
        for process, file, left in list(working):
            if process.exitcode is not None:
                assert process.exitcode == 0, f"{file}: exit {process.exitcode}"
                working.remove((process, file, left))
        busy = [each for each in working if each[1].exists() and each[1].stat().st_size]
        if killed < kills and busy:
            killed += 1
            process, file, left = chance.choice(busy)
            process.kill()
            process.join()
            working.remove((process, file, left))
            done = file.read_text().count("\n") // 2
            if process.exitcode and done < left:
                working.append(_started(url, folder, next(numbers), seed, left - done))
    with postroom.open(url) as room:
        found = room.store.read(lambda tx: _all(tx, (*TAKEN, *lists_)))
    taken = {name: found[name] for name in TAKEN}
    seen = {name: [value for value, _ in found[name]] for name in lists_}
    return Run(recorded(sorted(folder.glob("p*"))), taken, seen, killed)


def _started(url: str, folder: Path, number: int, seed: int, share: int) -> tuple[Any, Path, int]:
    file = folder / f"p{number:04d}"
    process = _SERVER.Process(target=work, args=(url, file, seed * 100_000 + number, share), daemon=True)
    process.start()
    return process, file, share


def work(url: str, file: Path, seed: int, share: int) -> None:
    """One process: so many calls, each written down before and after."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        record = Recorder(file)
        while not (file.parent / "go").exists():
            time.sleep(0.001)
        for number in range(share):
            time.sleep(chance.uniform(0, PAUSE_SECONDS))  # so that none does all of its calls while others sleep
            _call(room, record, chance, kept(number), f"{file.name}.{number}")


def _call(room: Postroom, record: Recorder, chance: random.Random, names: Sequence[str], value: str) -> None:
    kind = chance.randrange(10)
    queue, some = chance.choice(TAKEN), chance.sample(names, chance.choice((1, 2, 2, 3)))
    if kind < 2:
        record.call("send", [(queue, value)], lambda: room.send(queue, value).key)
    elif kind < 3:
        pair = [(queue, f"{value}a"), (queue, f"{value}b")]
        record.call("send", pair, lambda: len(room.send_many(queue, [each for _, each in pair]).keys))
    elif kind < 6:
        record.call("take", queue, lambda: _body(room.receive(queue)))
    elif kind < 8:
        record.call(
            "send", [(each, value) for each in some], lambda: len(room.queues.distribute(some, value).deliveries)
        )
    elif kind < 9:
        record.call("read", some, lambda: room.store.read(lambda tx: _seen(tx, some)))
    else:
        record.call(
            "exchange",
            [(each, value) for each in some],
            lambda: room.store.transact("send", lambda tx: _exchanged(tx, some, value)),
        )


def _body(received: Any) -> str | None:
    return received.message.body if received.message is not None else None


def _exchanged(tx: Transaction, names: Sequence[str], value: str) -> dict[str, list[str]]:
    """Read queues under their locks and append to them: as a step does."""
    locked = tx.queues.locked_all(names)
    seen = _seen(tx, names)
    for name in names:
        tx.messages.put(locked[name], Draft(value, "text", None, "{}"))
    return seen


def _seen(tx: Transaction, names: Sequence[str]) -> dict[str, list[str]]:
    found = {}
    for name in names:
        queue = tx.queues.named_to_read(name)
        assert queue is not None
        found[name] = [each.body for each in tx.messages.page(queue, State.UNPROCESSED, 0, 10**9)]
    return found


def _all(tx: Transaction, names: Sequence[str]) -> dict[str, list[tuple[str, bool]]]:
    """Every message that ever was in a queue, in the order in which they came."""
    found = {}
    for name in names:
        queue = tx.queues.named_to_read(name)
        assert queue is not None
        rows = [
            *tx.messages.page(queue, State.PROCESSED, 0, 10**9),
            *tx.messages.page(queue, State.UNPROCESSED, 0, 10**9),
        ]
        rows.sort(key=lambda each: each.number)
        found[name] = [(each.body, each.processed is None) for each in rows]
    return found
