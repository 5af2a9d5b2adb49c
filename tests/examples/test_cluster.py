"""The cluster of the demo: real processes, all of which end with it, and a worker that is killed half-way."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.faults.test_kill_engine import descendants, is_running

DEMO = Path(__file__).parents[2] / "examples" / "cluster" / "demo.py"

pytestmark = pytest.mark.slow


def wait_for_end(family: list[int]) -> None:
    until = monotonic() + 60
    while left := [each for each in family if is_running(each)]:
        assert monotonic() < until, f"still running: {left}"
        sleep(0.2)


def test_a_cluster_that_loses_a_worker_half_way_loses_and_doubles_nothing() -> None:
    ran = subprocess.run([sys.executable, str(DEMO), "volume", "800"], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    assert "half-way: worker 0 is killed, with its executor" in ran.stdout
    assert re.search(r"decided: 800\n  lost: 0\n  doubled or wrong: 0\n  errors: 0\n", ran.stdout), ran.stdout
    assert ran.stdout.endswith("One worker of two was killed, and nothing is lost or doubled.\n")


def test_every_capability_on_a_cluster_that_loses_a_worker() -> None:
    ran = subprocess.run([sys.executable, str(DEMO), "office", "20"], capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    assert "half-way: worker 0 is killed, with its executor" in ran.stdout
    assert re.search(r"claims: 20\n  orders: 21\n  returned: 1\n  letters: 20\n", ran.stdout), ran.stdout
    assert ran.stdout.endswith("One worker of two was killed, and nothing is lost or doubled.\n")


def test_everything_that_was_started_ends_when_the_demo_is_interrupted() -> None:
    demo = subprocess.Popen(
        [sys.executable, str(DEMO), "volume", "800"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert demo.stdout is not None
        while "claims wait" not in (line := demo.stdout.readline()):
            assert line, demo.stderr and demo.stderr.read()
        family = descendants(demo.pid)
        assert len(family) >= 3, "a master and two workers at least"
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=120)
    finally:
        demo.kill()
        demo.wait()
    assert demo.returncode != 0
    wait_for_end(family)


def test_a_word_that_means_nothing_is_refused() -> None:
    ran = subprocess.run([sys.executable, str(DEMO), "offices"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "scenarios: office, volume" in ran.stderr
