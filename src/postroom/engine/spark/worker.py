"""Limits of a Python worker: memory, time, priority below the engine, and the visible environment variables.

The workers of Spark and those of the engine's own (``engine/worker_process.py``) have the same limits.
"""

from __future__ import annotations

import os
import re
import resource
import signal
from itertools import count
from typing import NamedTuple

from postroom.engine.spark.garbage_collection import freeze_loaded
from postroom.limits import EVALUATION_SECONDS, WORKER_BYTES_MAX

_BYTES_A_SECOND = 100_000  # what a worker evaluates at the least
_NICE = 5  # of a worker beside the engine itself: others wait for what the engine commits
# What workers on this machine see of our environment: a rule's code must find no secrets. To workers of Spark the rest
# is blank, and more is given with spark.executorEnv.NAME.
_KEPT = re.compile(
    r"(HOME|HOSTNAME|LANG|LANGUAGE|LC_\w+|LD_LIBRARY_PATH|LOGNAME|PATH|PG(?!PASSWORD)\w+|PYTHON\w*|SHELL|TERM|TMPDIR|TZ"
    r"|USER|VIRTUAL_ENV|XDG_\w+|JAVA_\w+|HADOOP_\w+|_?SPARK_\w+|PYSPARK_\w+)$"
)
_tasks = count()


def is_shown(name: str) -> bool:
    """Whether workers see a variable of our environment."""
    return _KEPT.match(name) is not None


def environment() -> dict[str, str]:
    """The environment of workers."""
    return {name: value for name, value in os.environ.items() if is_shown(name)}


class Bounds(NamedTuple):
    """The limits of a worker."""

    seconds: float = EVALUATION_SECONDS  # for a chunk, besides what its size allows
    memory: int = WORKER_BYTES_MAX
    nice: int = 0  # how much others go before it

    @classmethod
    def beside(cls, master: str) -> Bounds:
        """The limits for workers of a master; local ones run at a lower priority than the engine."""
        return cls(nice=_NICE if master.startswith("local") else 0)

    def settle(self) -> None:
        """Apply the limits at the start of a task."""
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        memory = self.memory if most == resource.RLIM_INFINITY else min(self.memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, most))
        if next(_tasks) == 0:
            os.nice(self.nice)
        freeze_loaded()

    def deadline(self, size: int, *, processor: bool = False) -> Deadline:
        """The deadline for a chunk of so many bytes."""
        return Deadline(self.seconds + size / _BYTES_A_SECOND, processor=processor)


class Deadline:
    """Kills this process if a batch takes too long, because nothing else may stop it.

    With ``processor``, it counts processor time, so that a busy machine makes no batch late.
    """

    def __init__(self, seconds: float, *, processor: bool = False) -> None:
        self._seconds = seconds
        self._signal = signal.SIGPROF if processor else signal.SIGALRM
        self._timer = signal.ITIMER_PROF if processor else signal.ITIMER_REAL

    def __enter__(self) -> None:
        signal.signal(self._signal, signal.SIG_DFL)
        signal.setitimer(self._timer, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(self._timer, 0)
