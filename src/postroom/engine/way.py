"""The two ways to evaluate: on Spark, or by a worker process of the engine's own, beside it.

A capability makes its work into chunks and says what is done with one (``Task``). Both ways run the very same task, and
both report in the same way that a chunk has killed its worker, so one search finds the message.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from postroom.engine.spark.executor_store import Bay
    from postroom.engine.spark.worker import Bounds
    from postroom.errors import EngineError
    from postroom.model.message import Stored

W = TypeVar("W")
#: The names of the ways, as steps are reported.
SPARK, WORKER = "spark", "worker"


class Task(Protocol[W]):
    """What a worker does with a chunk. It is sent to the worker as it is."""

    @property
    def origin(self) -> object:
        """The constant object that the task is made of, so that it is packed once; None if it may change."""

    def begin(self) -> None:
        """Load what evaluation needs, before the time limit counts."""

    def read(self, chunk: bytes) -> W:
        """Read the work of a chunk."""

    def keys(self, work: W) -> tuple[Collection[int], Collection[int]]:
        """For work without bodies: the keys of its messages, and of all messages that it needs."""

    def complete(self, work: W, messages: Mapping[int, Stored]) -> W:
        """The work with bodies."""

    def answer(self, work: W, bounds: Bounds | None, size: int) -> bytes:
        """Evaluate the work, which has ``size`` bytes, within bounds."""


class Way(Protocol):
    """Evaluates chunks somewhere."""

    @property
    def name(self) -> str:
        """``SPARK`` or ``WORKER``."""

    @property
    def parallelism(self) -> int:
        """How many chunks are evaluated at a time; it may change in a cluster."""

    def answers(self, task: Task[Any], chunks: Sequence[bytes], bay: Bay | None = None) -> Iterable[bytes]:
        """The answers to chunks; through the store if there is a bay."""

    def carry(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Pickle functions by value: workers cannot import their modules."""

    def reason(self, error: Exception) -> str:
        """Why evaluation failed, if a message may have caused it; else it raises the error."""

    def broken(self, error: Exception) -> EngineError:
        """The error to raise if every evaluation fails."""


def answered(task: Task[Any], chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to a chunk that is complete."""
    return task.answer(task.read(chunk), bounds, len(chunk))


def modules_of(functions: Iterable[Callable[..., Any]]) -> list[ModuleType]:
    """The imported modules that functions come from; those of the program itself are packed along anyway."""
    modules = [sys.modules.get(getattr(function, "__module__", None) or "") for function in functions]
    names = {module.__name__: module for module in modules if module is not None and module.__name__ != "__main__"}
    return [module for name, module in names.items() if not name.startswith("postroom")]
