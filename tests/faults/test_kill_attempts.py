"""An engine that is killed while messages fail: attempts are counted right; on both stores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import postroom
from postroom.faults import MOMENTS
from postroom.room import Postroom

ROOT = Path(__file__).parents[2]
PROGRAM = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue errors kind basic mode persistent
create rule divide for in errorqueue errors if (/m) then do enqueue <r>{60 div xs:integer(/m)}</r> into out
"""
#: Works off what waits, one message at a time, in its own process.
ENGINE = """
import sys, postroom
from tests.faults.here import evaluate_here
with postroom.open(sys.argv[1]) as room:
    evaluate_here(room).engine.run_totals(until_idle=True, step_messages=1)
"""
NUMBERS = (1, 0, 2, 0, 3)
#: The first failure, a second attempt, and the last of one message.
NTHS = (2, 4, 6)
POINTS = [f"{label}.{moment}:kill:{nth}" for label in ("claim", "step") for moment in MOMENTS for nth in NTHS]
FEW = ["step.committing:kill:6"]


@pytest.fixture
def dividing(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    room.load(tmp_path / "p.demaq")
    room.consumers.set_policy("in", attempts=3, backoff=0.001, retry="all")
    for number in NUMBERS:
        room.send("in", f"<m>{number}</m>", format="xml")
    return room


def run(url: str, fault: str = "") -> int:
    environment = {**os.environ, "POSTROOM_FAULT": fault} if fault else os.environ
    return subprocess.run([sys.executable, "-c", ENGINE, url], cwd=ROOT, env=environment, timeout=120).returncode


def check(room: Postroom) -> None:
    assert sorted(message.body for message in room.peek("out")) == ["<r>20</r>", "<r>30</r>", "<r>60</r>"]
    dead = list(room.peek("in.dead"))
    assert [message.properties["dead.attempts"] for message in dead] == [3, 3]
    for message in dead:
        verbs = [event.verb for event in room.trace(message.key)]
        assert [verb for verb in verbs if verb != "due"] == ["put", *["lease", "fail"] * 2, "lease", "dead-letter"]
    assert sorted(message.cause or "" for message in room.peek("errors")) == sorted(message.key for message in dead)
    assert room.journal.verify().differences == ()


@pytest.mark.parametrize("point", FEW)
def test_attempts_outlive_a_kill(dividing: Postroom, url: str, point: str) -> None:
    assert run(url, point) == -signal.SIGKILL
    assert run(url) == 0
    check(dividing)


@pytest.mark.slow
@pytest.mark.parametrize("point", [point for point in POINTS if point not in FEW])
def test_attempts_outlive_a_kill_anywhere(dividing: Postroom, url: str, point: str) -> None:
    assert run(url, point) == -signal.SIGKILL
    assert run(url) == 0
    check(dividing)


@pytest.mark.slow
def test_an_undisturbed_engine_counts_the_same(dividing: Postroom, url: str) -> None:
    assert run(url) == 0
    with postroom.open(url) as other:
        check(other)
