"""Python's garbage collector, kept from interrupting work that makes very many objects and no cycles."""

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
    """Collect rarely meanwhile: collections took a fifth of a commit, and half of the time of making a long answer.

    It is a setting of the whole process, so it ends before anything is handed to a caller who may keep it waiting: no
    ``yield`` inside. Several threads may ask for it at a time; the last one to leave sets back what was before.
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
    """At the beginning of a task: take what the first tasks of a worker load out of all later collections.

    Spark collects after every task. Among what was loaded there is no garbage, and looking at it took 40 ms.
    """
    if next(_tasks) < _TASKS_LOADING:
        gc.freeze()
