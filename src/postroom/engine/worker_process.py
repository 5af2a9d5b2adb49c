"""Evaluates small steps in a worker process of the engine's own: where starting a job of Spark would take longer.

A task is packed by value and sent once, as with Spark; then only chunks go out, and answers come back as plain data.
The limits are the same; a process that exceeds them or dies is replaced.

``python -m postroom.engine.worker_process MODULE…`` is that process; it loads these modules before it is asked.
"""

from __future__ import annotations

import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from postroom.engine.bounded_process import BoundedProcesses, Ended, Lesson, attend
from postroom.engine.packing import packed, take_along, unpacked
from postroom.engine.spark.garbage_collection import rarely_collecting
from postroom.engine.spark.isolation import GUILT
from postroom.engine.spark.worker import Bounds, environment
from postroom.engine.way import WORKER, Task, answered, modules_of
from postroom.errors import WorkerUnavailable
from postroom.limits import WORKER_START_SECONDS

if TYPE_CHECKING:
    from postroom.engine.spark.executor_store import Bay

_TASK, _CHUNK = b"T", b"C"  # what a request begins with; the name of the task follows
_BOUNDS = struct.Struct(">dQi")  # and before a chunk, what its evaluation may take
_NAME_BYTES = 16
_PACKED_MAX = 8  # tasks that are kept packed
_WARM_UP = "warm_up"  # the function of a module that loads what its first task would load

_processes = BoundedProcesses("postroom.engine.worker_process", environment)


class InWorker:
    """Evaluation by a worker process. Each caller has one to itself; all rooms of this program share the pool."""

    name = WORKER
    parallelism = 1

    def start(self, modules: Sequence[str]) -> None:
        """Start a process that loads modules in the background."""
        try:
            _processes.start(*modules)
        except OSError as error:
            raise self.broken(error) from error

    def answers(self, task: Task[Any], chunks: Sequence[bytes], bay: Bay | None = None) -> Iterator[bytes]:
        assert bay is None, "what executors read in the store is for Spark"
        lesson, bounds = _lessons.of(task), _BOUNDS.pack(*Bounds.beside(WORKER))
        for chunk in chunks:
            try:
                yield _processes.ask(_CHUNK + lesson.name + bounds + chunk, tries=1, lesson=lesson)
            except OSError as error:  # no more processes, or no more memory
                raise self.broken(error) from error

    def carry(self, functions: Iterable[Callable[..., Any]]) -> None:
        for module in modules_of(functions):
            take_along(module)

    def reason(self, error: Exception) -> str:
        if not isinstance(error, Ended):
            raise error
        return GUILT

    def broken(self, error: Exception) -> WorkerUnavailable:
        return WorkerUnavailable(why=str(error) if isinstance(error, OSError) else "it ends whatever it evaluates")


class _Lessons:
    """Packed tasks. One with a constant origin is packed once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._packed: OrderedDict[int, tuple[object, Lesson]] = OrderedDict()

    def of(self, task: Task[Any]) -> Lesson:
        origin = task.origin
        if origin is None:
            return _lesson(task)
        with self._lock:
            known = self._packed.get(id(origin))  # it is kept, so nothing else has its number
            if known is None:
                known = self._packed[id(origin)] = (origin, _lesson(task))
                if len(self._packed) > _PACKED_MAX:
                    self._packed.popitem(last=False)
            self._packed.move_to_end(id(origin))
            return known[1]


_lessons = _Lessons()


def _lesson(task: Task[Any]) -> Lesson:
    text = packed(task)
    name = blake2b(text, digest_size=_NAME_BYTES).digest()
    return Lesson(name, _TASK + name + text)


# --- in the worker -----------------------------------------------------------------------------------------------

_tasks: dict[bytes, Task[Any]] = {}


def _answer(request: bytes, tell: object) -> bytes:
    kind, name, rest = request[:1], request[1 : 1 + _NAME_BYTES], request[1 + _NAME_BYTES :]
    if kind == _TASK:
        _tasks[name] = unpacked(rest)
        _tasks[name].begin()
        return b""
    task, bounds = _tasks[name], Bounds(*_BOUNDS.unpack_from(rest))
    bounds.settle()
    task.begin()  # others may have been here meanwhile
    with rarely_collecting():
        return answered(task, rest[_BOUNDS.size :], bounds)


def _seconds(request: bytes) -> float | None:
    """None: a task limits the time of its chunks itself."""
    return WORKER_START_SECONDS if request.startswith(_TASK) else None


if __name__ == "__main__":
    for word in sys.argv[1:]:
        getattr(import_module(word), _WARM_UP, lambda: None)()
    attend(_answer, _seconds)
