"""Killed at random moments under load, again and again on one room: the acknowledged is there, once, in order."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import sleep

import pytest

import postroom
from postroom.model.key import key_number

CHILD = """
import sys, postroom
url, name = sys.argv[1], sys.argv[2]
with postroom.open(url) as room:
    number = 0
    while True:
        number += 1
        print("begin", f"{name}-{number}", flush=True)
        if number % 7 == 0:
            room.send_many("q", [f"{name}-{number}", f"{name}-{number}-twin"])
        else:
            room.send("q", f"{name}-{number}")
        print("sent", f"{name}-{number}", flush=True)
        if number % 3:
            received = room.receive("q", segment=number % 5 == 0)
            if received.message and received.end_of_message:
                print("received", received.message.key, received.message.body, flush=True)
"""


def run_and_kill(url: str, name: str, seconds: float, said: Path) -> list[list[str]]:
    """What the child said before it was killed, ``seconds`` after its first word."""
    with said.open("w") as file:
        child = subprocess.Popen([sys.executable, "-c", CHILD, url, name], stdout=file)
        while not said.stat().st_size:
            assert child.poll() is None
            sleep(0.005)
        sleep(seconds)
        child.kill()
        child.wait()
    return [line.split() for line in said.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("rounds", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_doubled(url: str, tmp_path: Path, rounds: int) -> None:
    chance = random.Random(rounds)
    begun: set[str] = set()
    sent: list[str] = []
    received: list[tuple[str, str]] = []
    with postroom.open(url) as room:
        room.queues.create("q")
        for number in range(rounds):
            for words in run_and_kill(url, f"r{number}", chance.uniform(0.001, 0.15), tmp_path / "said"):
                if words[0] == "begin":
                    begun |= {words[1], f"{words[1]}-twin"}
                elif words[0] == "sent":
                    sent.append(words[1])
                else:
                    received.append((words[1], words[2]))
        assert len(sent) > rounds
        waiting, history = room.queues.info("q").messages, room.queues.history("q").messages
        stored = Counter(message.body for message in [*waiting, *history])
        assert set(stored.values()) == {1}, "a message was doubled"
        assert set(stored) <= begun, "a message was invented"
        assert set(sent) <= set(stored), "an acknowledged message was lost"
        batches = [body for body in stored if re.fullmatch(r"r\d+-\d+", body) and int(body.split("-")[1]) % 7 == 0]
        assert all(f"{body}-twin" in stored for body in batches), "half of a batch was stored"
        assert len(set(received)) == len(received), "a message was received twice"
        assert {key for key, _ in received} <= {message.key for message in history}
        order = [key_number(message.key) for message in history]
        assert order == sorted(order), "not first in, first out"
        (count,) = room.queues.accept().queues
        assert (count.unprocessed, count.processed) == (len(waiting), len(history))
