"""Python's search for garbage, kept away from work that makes very many objects and no cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_TASKS_LOADING = 3  # after so many tasks a worker has loaded what Spark and we need
_tasks = count()
_lock = threading.Lock()
_absent: list[bool] = []  # an entry for each who has switched the search off


@contextmanager
def collector_off() -> Iterator[None]:
    """No search meanwhile: it took a fifth of a commit, and half of the time of making a long answer.

    Several threads may want it at a time; the last one to leave switches the search on again.
    """
    with _lock:
        if not _absent and gc.isenabled():
            _absent.append(True)
            gc.disable()
        elif _absent:
            _absent.append(True)
        counted = bool(_absent)
    try:
        yield
    finally:
        with _lock:
            if counted:
                _absent.pop()
                if not _absent:
                    gc.enable()


def set_loaded_apart() -> None:
    """At the beginning of a task: what the first tasks of a worker load is not searched any more.

    Spark looks for garbage after every task. Among what was loaded there is none, and the search took 40 ms.
    """
    if next(_tasks) < _TASKS_LOADING:
        gc.freeze()
