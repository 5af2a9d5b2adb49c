"""Keeps Python's garbage collector from interrupting work that makes many objects and no cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

#: So many new objects between two collections instead of 700. It is a bound: whatever makes cycles meanwhile, and
#: however long a step takes, memory does not grow without end.
RARE_OBJECTS = 1_000_000
_TASKS_LOADING = 3  # after so many tasks a worker has loaded what Spark and we need
_tasks = count()
_lock = threading.Lock()
_usual: list[tuple[int, int, int]] = []  # the thresholds to go back to, once for each who has asked for others


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Collect rarely during the block: collections took a fifth of a commit, and half the time of making a long answer.

    It is a setting of the whole process, so do not ``yield`` inside the block. Several threads may use it at a time;
    the last one restores the setting.
    """
    with _lock:
        _usual.append(_usual[0] if _usual else gc.get_threshold())
        if len(_usual) == 1 and _usual[0][0]:
            gc.set_threshold(max(RARE_OBJECTS, _usual[0][0]), *_usual[0][1:])
    try:
        yield
    finally:
        with _lock:
            before = _usual.pop()
            if not _usual:
                gc.set_threshold(*before)


def freeze_loaded() -> None:
    """At the start of a task, exclude loaded modules from later collections.

    Spark collects after every task, and scanning them took 40 ms.
    """
    if next(_tasks) < _TASKS_LOADING:
        gc.freeze()
