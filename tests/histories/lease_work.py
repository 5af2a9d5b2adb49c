"""Processes that send to one queue, lease from it and end their leases at random, some of them killed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.histories.leases import Line, Promise, Told, check
from tests.histories.record import Operation, Recorder, recorded
from tests.histories.workload import _SERVER

import postroom
from postroom.errors import PostroomError
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.store.kernel.journal import Event

ATTEMPTS, KEYS, LEASE_SECONDS = 6, 5, 0.4
RUN_SECONDS_MAX = 600  # after which a run has failed


@dataclass(frozen=True)
class Run:
    history: list[Operation]
    killed: set[str]
    wrong: list[str]


def run(url: str, folder: Path, seed: int, *, calls: int, processes: int, kills: int, **policy: Any) -> Run:
    """Let processes work until each has made its calls and nothing is left; answers with what is wrong."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        room.queues.create("q")
        room.consumers.set_policy("q", attempts=ATTEMPTS, lease=LEASE_SECONDS, backoff=0.001, **policy)
        room.send_many("q", [str(number) for number in range(processes)], properties={"k": 0})
    numbers = iter(range(100_000))
    working = [_started(url, folder, next(numbers), seed, calls) for _ in range(processes)]
    killed: set[str] = set()
    end = time.monotonic() + RUN_SECONDS_MAX
    while working and time.monotonic() < end:
        time.sleep(chance.uniform(0.01, 0.06))
        for process, file, _ in [each for each in working if each[0].exitcode is not None]:
            assert process.exitcode == 0, f"{file}: exit {process.exitcode}"
        working = [each for each in working if each[0].exitcode is None]
        busy = [each for each in working if each[1].exists() and each[1].stat().st_size]
        if len(killed) < kills and busy:
            process, file, left = victim = chance.choice(busy)
            process.kill()
            process.join()
            working.remove(victim)
            killed.add(file.name)
            working.append(_started(url, folder, next(numbers), seed, left // 2))
    for process, _, _ in working:
        process.kill()
    history = recorded(sorted(folder.glob("p*")))
    wrong = [f"{len(working)} processes were not done"] * bool(working)
    with postroom.open(url) as room:
        wrong += _checked(room, Told(history, killed), Promise(policy.get("order", "free"), policy.get("by"), ATTEMPTS))
    return Run(history, killed, wrong)


def _checked(room: Postroom, told: Told, promise: Promise) -> list[str]:
    wrong = [str(difference) for difference in room.journal.verify().differences]
    offset = time.time_ns() - time.monotonic_ns()
    lines = [
        Line(each.seq, each.verb, each.key, each.detail or {}, int(each.time.timestamp() * 1e9) - offset)
        for each in _events(room)
        if each.key is not None and "q" in (each.source, each.target)
    ]
    keys = {line.key for line in lines}
    gone = {line.key for line in lines if line.verb == "expire"}
    values = {key: room.journal.show(key).properties["k"] for key in keys - gone}
    wrong += check(told, lines, values, promise)
    last = {line.key: line.verb for line in lines}
    odd = {key: verb for key, verb in last.items() if verb not in ("take", "dead-letter", "expire", "block", "unblock")}
    count = {each.queue: each for each in room.count().queues}
    if odd or count["q"].unprocessed + count["q"].leased + count["q"].delayed + count["q"].blocked:
        wrong.append(f"left: {count['q']}, {list(odd.items())[:5]}")
    ends = [list(last.values()).count(verb) for verb in ("take", "dead-letter")]
    if ends != [count["q"].processed, count["q.dead"].unprocessed if "q.dead" in count else 0]:
        wrong.append(f"the journal has {ends} done and dead, and the counts are {count}")
    return wrong


def _events(room: Postroom) -> Iterator[Event]:
    last = 0
    while page := room.journal.after(last):
        yield from page
        last = page[-1].seq


def _started(url: str, folder: Path, number: int, seed: int, calls: int) -> tuple[Any, Path, int]:
    file = folder / f"p{number:04d}"
    process = _SERVER.Process(target=work, args=(url, file, seed * 1_000 + number, calls))
    process.start()
    return process, file, calls


def work(url: str, file: Path, seed: int, calls: int) -> None:
    """Some calls at random, and then all that is left of the queue."""
    with postroom.open(url) as room:
        worker = _Worker(room, Recorder(file), random.Random(seed))
        for number in range(calls):
            worker.call(f"{file.name}.{number}")
        while worker.work_off():
            pass


class _Worker:
    def __init__(self, room: Postroom, record: Recorder, chance: random.Random) -> None:
        self.room = room
        self.record = record
        self.chance = chance
        self.offset = time.time_ns() - time.monotonic_ns()

    def call(self, value: str) -> None:
        chance = self.chance
        kind = chance.randrange(10)
        if kind < 4:
            key = chance.randrange(KEYS)
            wish: dict[str, Any] = {"priority": chance.choice((3, 9))} if chance.random() < 0.15 else {}
            wish |= {"expires": 0.03} if chance.random() < 0.04 else {}
            send: Callable[[], str] = lambda: self.room.send("q", value, properties={"k": key}, **wish).key  # noqa: E731
            self.record.call("send", {"value": value, "k": key}, send)
        else:
            self.end(
                self.lease(**chance.choice(({}, {}, {"wait": 0.05}, {"count": 3}, {"where": chance.randrange(KEYS)})))
            )

    def lease(self, count: int = 1, where: int | None = None, wait: float | None = None) -> list[LeasedMessage]:
        found: list[LeasedMessage] = []
        chosen = None if where is None else f"k = {where}"

        def receive() -> list[Any]:
            found.extend(self.room.receive_many("q", count=count, lease=LEASE_SECONDS, where=chosen, wait=wait))
            return [[each.key, each.lease, each.attempts, self.moment(each)] for each in found]

        asked = {"count": count, "where": where, "wait": wait}
        self.record.call("lease", {name: value for name, value in asked.items() if value is not None}, receive)
        return found

    def moment(self, message: LeasedMessage) -> int:
        return int(message.until.timestamp() * 1e9) - self.offset

    def end(self, messages: list[LeasedMessage]) -> None:
        if len(messages) > 1 and self.chance.random() < 0.5:
            self.said("done", messages, partial(self.room.consumers.done_many, messages))
            return
        for message in messages:
            verb = self.chance.choice(("done", "done", "done", "fail", "release", "delay", "extend", "late", "leave"))
            if verb == "leave" and self.chance.random() < 0.3:
                continue  # time ends it
            more: list[LeasedMessage] = []
            if verb == "late" and self.chance.random() < 0.6:
                time.sleep(1.2 * LEASE_SECONDS)
                more = self.lease()  # whoever leases gives back what is over, so that this one comes too late
            if verb == "extend":
                self.record.call("extend", message.lease, partial(self.extended, message))
            if verb == "fail":
                self.said("fail", [message], partial(message.fail, "by chance"))
            elif verb in ("release", "delay"):
                self.said("release", [message], partial(message.release, 0.01 if verb == "delay" else 0.0))
            else:
                self.said("done", [message], message.done)
            self.end(more)

    def extended(self, message: LeasedMessage) -> int:
        message.extend(2)
        return self.moment(message)

    def said(self, verb: str, messages: list[LeasedMessage], work: Callable[[], object]) -> None:
        self.record.call(verb, [each.lease for each in messages], lambda: bool(work()))

    def work_off(self) -> bool:
        """End what there is; False if nothing is left that anyone could get."""
        for message in self.lease(count=3, wait=0.5):
            self.said("done", [message], message.done)
        try:
            count = self.room.count("q").queues[0]
        except PostroomError:
            return True
        return bool(count.unprocessed + count.leased + count.delayed + count.blocked)
