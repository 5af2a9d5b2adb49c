"""The engine's own workers are killed at random under load: every message leads to what it should, once."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

import postroom
from postroom.engine import worker_process
from postroom.room import Postroom

RULES = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create rule pass for in if (/m) then do enqueue <r>{string(/m)}</r> into out
"""
ARCS = """domain d
space S : [n: int]
space T : [n: int]
space U : [n: int]
arc a : S -> T transform [n: x] => [n: x + 1]
arc b : T -> U select [n: x > 0]
"""


def kill_some(ended: threading.Event, chance: random.Random, killed: list[int]) -> None:
    """Kill workers that have answered once: a message that ends its worker alone, twice, would be guilty."""
    while not ended.wait(chance.uniform(0.01, 0.4)):
        for each in list(worker_process._processes._idle)[:1]:
            process = each._process
            if process is not None:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                killed.append(process)


def work_under_fire(room: Postroom, seed: int, count: int) -> list[int]:
    chance, killed, ended = random.Random(seed), list[int](), threading.Event()
    killer = threading.Thread(target=kill_some, args=(ended, chance, killed))
    killer.start()
    try:
        for number in range(count):
            room.send("in", f"<m>{number}</m>", format="xml")
            room.publish("S", {"n": number})
            if number % 5 == 4:
                room.run_until_idle(spark="auto", step_messages=chance.choice([1, 3, 8]))
                sleep(chance.uniform(0, 0.05))
        room.run_until_idle(spark="auto", step_messages=8)
    finally:
        ended.set()
        killer.join()
    return killed


@pytest.mark.parametrize("count", [40, pytest.param(2_000, marks=pytest.mark.slow)])
def test_workers_that_are_killed_lose_and_double_nothing(url: str, tmp_path: Path, count: int) -> None:
    for name, text in (("p.demaq", RULES), ("g.flow", ARCS)):
        (tmp_path / name).write_text(text)
    with postroom.open(url) as room:
        room.load(tmp_path / "p.demaq")
        room.load(tmp_path / "g.flow")
        killed = work_under_fire(room, count, count)
        assert killed
        assert [message.body for message in room.queues.info("out")] == [f"<r>{n}</r>" for n in range(count)]
        assert [message.body for message in room.queues.info("U")] == [f'{{"n":{n + 1}}}' for n in range(count)]
        assert room.queues.info("postroom-errors").messages == []
        assert room.journal.verify().differences == ()
