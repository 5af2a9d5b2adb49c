"""Python's search for garbage, kept away from work that makes very many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_TASKS_LOADING = 3  # after so many tasks a worker has loaded what Spark and we need
_tasks = count()


@contextmanager
def collector_off() -> Iterator[None]:
    """No search meanwhile: it took a fifth of a commit, and half of the time of making a long answer."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def set_loaded_apart() -> None:
    """At the beginning of a task: what the first tasks of a worker load is not searched any more.

    Spark looks for garbage after every task. Among what was loaded there is none, and the search took 40 ms.
    """
    if next(_tasks) < _TASKS_LOADING:
        gc.freeze()
