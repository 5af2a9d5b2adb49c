"""Producers and consumers of one queue on a server: processes that go on whatever happens, and what they wrote down."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import sleep, time
from typing import NamedTuple

import postroom
from postroom.errors import LeaseOver, PostroomError, StoreError
from postroom.room import Postroom

QUEUE, BODY = "q", "x" * 100
_WAIT_SECONDS, _AGAIN_SECONDS, _LEASE_SECONDS = 0.5, 0.05, 10.0


class Call(NamedTuple):
    """What one process wrote down of one call."""

    at: float  # when it ended
    verb: str  # "send", "take", or "error"
    value: str
    seconds: float


def produce(url: str, file: Path, name: str, pause: float) -> None:
    number = 0

    def call(room: Postroom) -> str:
        nonlocal number
        sleep(pause)
        number += 1
        room.send(QUEUE, f"{name}.{number} {BODY}")
        return f"{name}.{number}"

    _go_on(url, file, "send", call)


def consume(url: str, file: Path, name: str, pause: float) -> None:
    def call(room: Postroom) -> str | None:
        sleep(pause)
        message = room.receive(QUEUE, wait=_WAIT_SECONDS).message
        return None if message is None else message.body.partition(" ")[0]

    _go_on(url, file, "take", call)


def complete(url: str, file: Path, name: str, pause: float) -> None:
    """As ``consume``, with a lease that is ended when the work is done."""

    def call(room: Postroom) -> str | None:
        sleep(pause)
        message = room.receive(QUEUE, lease=_LEASE_SECONDS, wait=_WAIT_SECONDS).message
        if message is None:
            return None
        message.done()
        return message.body.partition(" ")[0]

    _go_on(url, file, "take", call)


def _go_on(url: str, file: Path, verb: str, call: Callable[[Postroom], str | None]) -> None:
    """Call until the end; after an error open the room anew."""
    with file.open("a", buffering=1) as written:
        while not (file.parent / "end").exists():
            try:
                with postroom.open(url, create=False) as room:
                    while not (file.parent / "end").exists():
                        start = time()
                        value = call(room)
                        if value is not None:
                            now = time()
                            written.write(f"{now} {verb} {value} {now - start}\n")
            except (StoreError, LeaseOver) as error:
                written.write(f"{time()} error {error.code} 0\n")
                sleep(_AGAIN_SECONDS)


@dataclass
class Load:
    """A room in which processes work until it is ended."""

    url: str
    folder: Path
    working: dict[str, BaseProcess] = field(default_factory=dict)
    kills: int = 0

    def start(self, what: Callable[[str, Path, str, float], None], count: int, pause: float = 0.0) -> None:
        for _ in range(count):
            name = f"{what.__name__[0]}{len(list(self.folder.glob('*.log')))}"
            file = self.folder / f"{name}.log"
            file.touch()
            process = multiprocessing.Process(target=what, args=(self.url, file, name, pause), daemon=True)
            process.start()
            self.working[name] = process

    def kill(self, kind: str) -> str:
        """Kill one producer (p) or consumer (c)."""
        name = next(name for name in self.working if name.startswith(kind))
        process = self.working.pop(name)
        process.kill()
        process.join()
        self.kills += 1
        return name

    def calls(self) -> list[Call]:
        found = []
        for file in self.folder.glob("*.log"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    at, verb, value, seconds = line.split()
                    found.append(Call(float(at), verb, value, float(seconds)))
        return sorted(found)

    def end(self) -> None:
        (self.folder / "end").touch()
        for process in self.working.values():
            process.join(30)

    def judged(self) -> str:
        """What is left is taken; then each value that was sent was taken once, unless whoever took it was killed."""
        self.end()
        left = []
        with postroom.open(self.url) as room:
            while (message := room.receive(QUEUE, lease=_LEASE_SECONDS, wait=_WAIT_SECONDS).message) is not None:
                left.append(message.body.partition(" ")[0])
                message.done()
            (count,) = room.count(QUEUE).queues
            assert (count.unprocessed, count.leased) == (0, 0), count
            assert room.journal.verify().differences == ()
        calls = self.calls()
        sent = {call.value for call in calls if call.verb == "send"}
        taken = Counter([*(call.value for call in calls if call.verb == "take"), *left])
        errors = Counter(call.value for call in calls if call.verb == "error")
        assert max(taken.values(), default=0) <= 1, [value for value, times in taken.items() if times > 1][:3]
        lost = sent - taken.keys()
        unsure = self.kills + sum(errors.values())  # takes whose answer nobody saw
        assert len(lost) <= unsure, f"{len(lost)} of {len(sent)} lost, {unsure} calls without an answer"
        told = ", ".join(f"{times} {code}" for code, times in errors.items()) or "no errors"
        return f"{len(sent):,} sent, {len(taken):,} taken, {len(lost)} taken without an answer, {told}"


@contextlib.contextmanager
def load(url: str, folder: Path) -> Iterator[Load]:
    with postroom.open(url) as room, contextlib.suppress(PostroomError):
        room.queues.create(QUEUE)
    folder.mkdir(parents=True, exist_ok=True)
    made = Load(url, folder)
    try:
        yield made
    finally:
        (folder / "end").touch()
        for process in made.working.values():
            process.join(30)
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, 9)


def rate(calls: list[Call], verb: str, since: float, until: float) -> tuple[float, float]:
    """Calls a second, and the 99th percentile of one in milliseconds."""
    some = sorted(call.seconds for call in calls if call.verb == verb and since <= call.at < until)
    return len(some) / (until - since), 1000 * some[int(len(some) * 0.99)] if some else float("inf")
