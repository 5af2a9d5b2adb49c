"""Random spheres from several processes, with random recipients and kills: the invariants hold at the end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

import postroom

from .invariants import check
from .load import CHECK, QUEUES, finish

ROOT = Path(__file__).parents[2]


def start(what: str, url: str, seed: object, *more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spheres.load", what, url, str(seed), *map(str, more)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def load(url: str, seed: int, owners: int, spheres: int, seconds: float) -> None:
    """Some owners at once, two recipients, one engine that is killed and replaced."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        for queue in QUEUES:
            room.queues.create(queue)
        room.spheres.compensator(CHECK).announce()
    own = [start("own", url, f"{seed}-{number}", spheres) for number in range(owners)]
    helpers = [start("take", url, seed), start("take", url, seed + 1), start("engine", url, seed)]
    told: dict[str, str] = {}
    try:
        sleep(chance.uniform(0.3, 1.0) * seconds)
        end(helpers.pop())
        helpers.append(start("engine", url, seed))
        for process in own:
            said, errors = process.communicate(timeout=seconds * 20 + 60)
            assert process.returncode in (0, -signal.SIGKILL), errors
            told.update({id: state for state, id in (line.split() for line in said.splitlines())})
    finally:
        for process in (*own, *helpers):
            end(process)
    with postroom.open(url) as room:
        finish(room)
        found = check(room, over=True)
        for id, state in told.items():
            assert found.spheres[id] in (state, state.replace("ABORTING", "ABORTED")), id
        assert "COMMITTED" in found.spheres.values(), "else nothing was tested"
        assert "ABORTED" in found.spheres.values()
        assert found.waiting == 0


def test_random_spheres_under_load(url: str) -> None:
    load(url, seed=7, owners=3, spheres=8, seconds=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_more_random_spheres_under_load(url: str, seed: int) -> None:
    load(url, seed=100 * seed, owners=4, spheres=60, seconds=15)
