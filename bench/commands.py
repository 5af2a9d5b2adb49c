"""Commands: how long a person or a script waits for the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import postroom
from contenders import QUEUE
from lines import Line

COMMANDS = {"help": ("--help",), "send-command": ("send", QUEUE, "--body", "x")}  # by their bounds


def measure_commands(directory: Path, runs: int) -> list[Line]:
    directory.mkdir()
    room = directory / "room.db"
    with postroom.open(room) as opened:
        opened.queues.create(QUEUE)
    seconds: dict[str, list[float]] = {bound: [] for bound in COMMANDS}
    for _ in range(runs + 1):
        for bound, taken in seconds.items():
            taken.append(_seconds(COMMANDS[bound], room))
    return [_line(bound, taken[1:]) for bound, taken in seconds.items()]  # the first was the warm-up


def _seconds(arguments: tuple[str, ...], room: Path) -> float:
    program = Path(sys.executable).with_name("postroom")
    # As it is installed: what Python has compiled once, it keeps.
    environment = {**os.environ, "POSTROOM_URL": str(room), "PYTHONDONTWRITEBYTECODE": ""}
    start = perf_counter()
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    return perf_counter() - start


def _line(bound: str, seconds: list[float]) -> Line:
    middle = median(seconds)
    command = " ".join(("postroom", COMMANDS[bound][0]))
    return Line(f"`{command}`", middle, "s", middle, min(seconds), max(seconds), bound)
