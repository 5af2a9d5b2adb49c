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

SECONDS_MAX = {("--help",): 0.5, ("send", QUEUE, "--body", "x"): 0.7}


def measure_commands(directory: Path, runs: int) -> list[Line]:
    directory.mkdir()
    room = directory / "room.db"
    with postroom.open(room) as opened:
        opened.create_queue(QUEUE)
    seconds: dict[tuple[str, ...], list[float]] = {arguments: [] for arguments in SECONDS_MAX}
    for _ in range(runs + 1):
        for arguments, taken in seconds.items():
            taken.append(_seconds(arguments, room))
    return [_line(arguments, taken[1:]) for arguments, taken in seconds.items()]  # the first was the warm-up


def _seconds(arguments: tuple[str, ...], room: Path) -> float:
    program = Path(sys.executable).with_name("postroom")
    environment = {**os.environ, "POSTROOM_URL": str(room)}
    start = perf_counter()
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    return perf_counter() - start


def _line(arguments: tuple[str, ...], seconds: list[float]) -> Line:
    middle = median(seconds)
    return Line(
        measure=" ".join(("postroom", *arguments)),
        measured=middle,
        unit="s",
        result=middle,
        lowest=min(seconds),
        highest=max(seconds),
        relation="<",
        bound=SECONDS_MAX[arguments],
    )
