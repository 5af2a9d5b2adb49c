"""Processes that are killed and begun again while messages are under way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from random import Random
from time import monotonic, sleep


class Process:
    """A command, killed and begun again."""

    def __init__(self, *words: object) -> None:
        self._words = [*map(str, words)]
        self.kills = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.begin()

    @classmethod
    def of_ours(cls, *words: str) -> Process:
        """A command of this project."""
        return cls(sys.executable, "-m", "postroom", *words)

    def begin(self) -> None:
        self._process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.kills += 1

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


def killed_until(
    processes: Sequence[Process], done: Callable[[], bool], kills: int, random: Random, seconds: float
) -> None:
    """Kill each process so many times, at moments of chance, and go on until all is done."""
    end = monotonic() + seconds
    try:
        while min(process.kills for process in processes) < kills or not done():
            assert monotonic() < end, "it takes too long"
            sleep(0.3 + random.random() * 2)
            for process in processes:
                if process.kills < kills and random.random() < 0.7:
                    process.kill()
                    process.begin()
                elif process.ended:
                    process.begin()
    finally:
        for process in processes:
            process.kill()
