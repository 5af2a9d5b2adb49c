"""Engines in processes of their own on one room: one is killed, one is frozen and comes too late; on both stores."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.engine.test_holding import NAMES, PROGRAM, are_shared
from tests.freezing import freeze

from postroom.engine.holding import engines
from postroom.room import Postroom

#: An engine that evaluates in its own process, and looks after others more often than usual.
ENGINE = """
import sys
from tests.engine import test_holding
from postroom.engine import beating, effects_lease, holding, runner
for module in (beating, effects_lease, holding, runner):
    module.ENGINE_LEASE_SECONDS = float(sys.argv[2])
with test_holding.engine(sys.argv[1]) as room:
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[2]
SENT = 40  # to each queue


@contextmanager
def process(url: str, seconds: float = 3.0) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", ENGINE, url, str(seconds)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=ROOT)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGCONT)
        assert child.stdin is not None
        child.stdin.close()
        child.wait(60)


def wait_until(true: Callable[[], object]) -> None:
    end = monotonic() + 90
    while not true():
        assert monotonic() < end, "it did not come about"
        sleep(0.05)


def is_worked_off(room: Postroom) -> bool:
    return all(not count.unprocessed for name in NAMES for count in room.count(name).queues)


def send_some(room: Postroom, first: int, count: int) -> None:
    for number in range(first, first + count):
        for name in NAMES:
            room.send(name, f"<m>{number}</m>", format="xml")


def check_once_and_in_order(room: Postroom, count: int) -> None:
    for name in NAMES:
        found = [message.body for message in room.peek(f"{name}-out")]
        assert found == [f"<r>{number}</r>" for number in range(count)], name
    assert room.journal.verify().differences == ()


@pytest.fixture
def divided(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    room.load(tmp_path / "p.demaq")
    return room


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["leader", "helper"])
def test_the_queues_of_a_killed_engine_are_taken_over(divided: Postroom, url: str, victim: str) -> None:
    with process(url) as first:
        wait_until(lambda: are_shared(divided, 1))
        with process(url) as second:
            wait_until(lambda: are_shared(divided, 2))
            send_some(divided, 0, SENT // 2)
            chosen = first if victim == "leader" else second
            chosen.kill()
            send_some(divided, SENT // 2, SENT // 2)
            wait_until(lambda: is_worked_off(divided))
            wait_until(lambda: [each.leads for each in divided.store.read(engines)] == [True])
    check_once_and_in_order(divided, SENT)


@pytest.mark.slow
def test_a_frozen_engine_comes_too_late(divided: Postroom, url: str) -> None:
    with process(url):
        wait_until(lambda: are_shared(divided, 1))
        with process(url) as second:
            wait_until(lambda: are_shared(divided, 2))
            send_some(divided, 0, SENT // 2)
            freeze(divided, second.pid)
            send_some(divided, SENT // 2, SENT // 2)
            wait_until(lambda: is_worked_off(divided))
            second.send_signal(signal.SIGCONT)
            wait_until(lambda: are_shared(divided, 2))
            send_some(divided, SENT, 2)
            wait_until(lambda: is_worked_off(divided))
    check_once_and_in_order(divided, SENT + 2)
