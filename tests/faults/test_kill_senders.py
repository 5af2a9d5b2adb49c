"""Senders in a process of their own, killed, frozen and stopped, beside an engine: nothing is lost, all in order.

The partner is a script that writes down what it gets, and the number that it is told. Only what was done and not yet
recorded when a process was killed comes twice, with the same number.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.freezing import freeze

import postroom
from postroom.engine.effects_lease import EFFECTS
from postroom.room import Postroom

PROGRAM = ("-m", "postroom")
QUEUES = ("a", "b", "c")
SCRIPT = """#!/bin/sh
echo "begin $POSTROOM_NUMBER" >> {file}
read -r body
echo "$POSTROOM_NUMBER $body" >> {file}
"""


@pytest.fixture
def partners(url: str, tmp_path: Path) -> Iterator[Postroom]:
    """A room with queues to three partners, and nothing that would be evaluated."""
    with postroom.open(url) as room:
        program = ""
        for name in QUEUES:
            script = tmp_path / f"{name}.sh"
            script.write_text(SCRIPT.format(file=tmp_path / name))
            script.chmod(0o700)
            room.gateways.add(f"to-{name}", "command", command=str(script))
            program += f"create queue {name} kind outgoingGateway mode persistent interface command port to-{name}\n"
        (tmp_path / "p.demaq").write_text(program)
        room.load(tmp_path / "p.demaq")
        yield room


class Started:
    """A ``postroom run`` in a process of its own."""

    def __init__(self, url: str, folder: Path, *words: str, fault: str = "", program: Sequence[str] = PROGRAM) -> None:
        with (folder / f"said-{len(list(folder.glob('said-*')))}").open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", *program, "--room", url, "run", *words],
                cwd=folder,
                env={**os.environ, "POSTROOM_FAULT": fault},
                stderr=said,
                stdout=said,
            )
        self._said = Path(said.name)

    @property
    def said(self) -> str:
        return self._said.read_text()

    def end(self, number: int = 0) -> int:
        if number:
            self.process.send_signal(number)
        return self.process.wait(timeout=90)


@contextmanager
def started(
    url: str, folder: Path, *words: str, fault: str = "", program: Sequence[str] = PROGRAM
) -> Iterator[Started]:
    it = Started(url, folder, *words, fault=fault, program=program)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.wait()


def wait_until(true: Callable[[], object], seconds: float = 90) -> None:
    end = monotonic() + seconds
    while not true():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


def put(room: Postroom, first: int, last: int) -> None:
    for name in QUEUES:
        room.send_many(name, [f"{number}\n" for number in range(first, last)])


class Feeding:
    """Messages to every partner, one after another, in a thread."""

    def __init__(self, room: Postroom) -> None:
        self.count = 0
        self._room = room
        self._between = threading.Lock()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.02):
            with self._between:
                put(self._room, self.count, self.count + 1)
                self.count += 1

    def pause(self, look: Callable[[], None]) -> None:
        """Look when everything has been sent."""
        with self._between:
            wait_until(lambda: self._room.engine.outbox() == [])
            look()

    def end(self) -> None:
        self._ended.set()


@contextmanager
def feeding(url: str) -> Iterator[Feeding]:
    with postroom.open(url) as room:
        feed = Feeding(room)
        thread = threading.Thread(target=feed.run)
        thread.start()
        try:
            yield feed
        finally:
            feed.end()
            thread.join()


def goes_on(folder: Path) -> None:
    """Wait until more has been sent."""
    before = sent(folder)
    wait_until(lambda: sent(folder) > before + 20)


def pid_of(room: Postroom, lease_name: str) -> int:
    """The process that has a lease; 0 if nobody has."""
    lease = room.store.read(lambda tx: tx.leases.named(lease_name))
    return 0 if lease is None or lease.released else int(lease.owner.split("/")[1])


def lines(folder: Path, name: str) -> list[list[str]]:
    file = folder / name
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def sent(folder: Path) -> int:
    return sum(len(lines(folder, name)) for name in QUEUES)


def check(room: Postroom, folder: Path, count: int, doubled: int = 0) -> None:
    """Each partner has all in order; at most so many of each came again, with the number that they had."""
    assert room.engine.outbox() == []
    assert room.journal.verify().differences == ()
    for name in QUEUES:
        got = [(words[1], words[0]) for words in lines(folder, name) if words[0] != "begin"]
        bodies = [int(body) for body, _ in got]
        assert list(dict.fromkeys(bodies)) == list(range(count)), f"{name}: lost, or not in order"
        assert len(bodies) - count <= doubled, f"{name}: doubled"
        assert len(set(got)) == count, f"{name}: the number of a message has changed"
        assert [message.body for message in room.queues.info(name)] == [], "what was sent is processed"
        if not doubled:
            begun = [words[0] == "begin" for words in lines(folder, name)]
            assert begun == [True, False] * count, f"{name}: two were under way at a time"


@pytest.mark.parametrize(
    "point", ["gateway.ran:kill:3", "outbox-attempt.committed:kill:1", "outbox-result.committing:kill:2"]
)
def test_killed_between_attempt_and_record(partners: Postroom, url: str, tmp_path: Path, point: str) -> None:
    put(partners, 0, 12)
    with started(url, tmp_path, "--senders", fault=point) as killed:
        assert killed.end() == -signal.SIGKILL, killed.said
    assert partners.engine.outbox(), "it was killed before the end"
    with started(url, tmp_path, "--senders", "--until-idle") as second:
        assert second.end() == 0, second.said
    assert second.said.splitlines()[-1].endswith("effect(s) done")
    check(partners, tmp_path, 12, doubled=12)


def test_hand_over_in_both_directions_and_kills_of_both(partners: Postroom, url: str, tmp_path: Path) -> None:
    with feeding(url) as fed, started(url, tmp_path) as engine:
        wait_until(lambda: pid_of(partners, EFFECTS) == engine.process.pid)
        with started(url, tmp_path, "--senders") as senders:
            wait_until(lambda: pid_of(partners, EFFECTS) == senders.process.pid)
            goes_on(tmp_path)
            assert senders.end(signal.SIGTERM) == 0, senders.said
            assert "stopping after the current work" in senders.said
        wait_until(lambda: pid_of(partners, EFFECTS) == engine.process.pid)
        goes_on(tmp_path)
        with started(url, tmp_path, "--senders") as senders:
            wait_until(lambda: pid_of(partners, EFFECTS) == senders.process.pid)
            engine.process.kill()
            engine.process.wait()
            goes_on(tmp_path)
            fed.pause(lambda: check(partners, tmp_path, fed.count))  # nobody noticed that the engine was killed
            with started(url, tmp_path) as second:
                wait_until(lambda: pid_of(partners, "engine") == second.process.pid)
                goes_on(tmp_path)
                assert pid_of(partners, EFFECTS) == senders.process.pid
                senders.process.kill()
                wait_until(lambda: pid_of(partners, EFFECTS) == second.process.pid)
                goes_on(tmp_path)
                fed.pause(lambda: check(partners, tmp_path, fed.count, doubled=32))
                assert second.end(signal.SIGTERM) == 0, second.said


#: The command, with a lease that runs out soon.
SHORT = """
from postroom.engine import beating, effects_lease, senders
for module in (beating, effects_lease, senders):
    module.ENGINE_LEASE_SECONDS = 2.0
from postroom.interfaces.cli.main import main
main()
"""


def test_frozen_senders_come_too_late(partners: Postroom, url: str, tmp_path: Path) -> None:
    with feeding(url) as fed, started(url, tmp_path) as engine:
        wait_until(lambda: pid_of(partners, EFFECTS) == engine.process.pid)
        with started(url, tmp_path, "--senders", program=("-c", SHORT)) as late:
            wait_until(lambda: pid_of(partners, EFFECTS) == late.process.pid)
            goes_on(tmp_path)
            freeze(partners, late.process.pid)
            wait_until(lambda: pid_of(partners, EFFECTS) == engine.process.pid)
            goes_on(tmp_path)
            assert late.end(signal.SIGCONT) == 1, late.said
        assert "postroom: lease-lost: effects was taken over" in late.said
        goes_on(tmp_path)
        fed.pause(lambda: check(partners, tmp_path, fed.count, doubled=32))
