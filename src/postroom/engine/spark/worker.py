"""What a Python worker of Spark may take: memory, time, and a place behind the engine itself."""

from __future__ import annotations

import os
import resource
import signal
from itertools import count
from typing import NamedTuple

from postroom.engine.spark.garbage_collection import freeze_loaded
from postroom.limits import EVALUATION_SECONDS, WORKER_BYTES_MAX

_BYTES_A_SECOND = 100_000  # what a worker evaluates at the least
_NICE = 5  # of a worker beside the engine itself: others wait for what the engine commits
_tasks = count()


class Bounds(NamedTuple):
    """What a worker may take."""

    seconds: float = EVALUATION_SECONDS  # for a chunk, besides what its size allows
    memory: int = WORKER_BYTES_MAX
    nice: int = 0  # how much others go before it

    @classmethod
    def beside(cls, master: str) -> Bounds:
        """For workers of a master; one on this machine goes behind the engine."""
        return cls(nice=_NICE if master.startswith("local") else 0)

    def settle(self) -> None:
        """Begin a task within these bounds."""
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        memory = self.memory if most == resource.RLIM_INFINITY else min(self.memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, most))
        if next(_tasks) == 0:
            os.nice(self.nice)
        freeze_loaded()

    def deadline(self, size: int) -> Deadline:
        """For a chunk of so many bytes."""
        return Deadline(self.seconds + size / _BYTES_A_SECOND)


class Deadline:
    """Ends this process if a batch takes too long: what runs in it may not be stopped in any other way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
