"""The two ways to evaluate: on Spark, or by a worker process of the engine's own, beside it.

A capability makes its work into chunks and says what is done with one (``Task``). Both ways run the very same task, and
both tell in the same way that a chunk has ended its worker: so the message that did it is found by the same search.
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
    """What a worker does with a chunk. It travels there as it is."""

    @property
    def origin(self) -> object:
        """What the task is made of, if that never changes: then it need not be packed again. None if it may."""

    def begin(self) -> None:
        """Load what evaluation needs, before time counts."""

    def read(self, chunk: bytes) -> W:
        """The work in a chunk."""

    def keys(self, work: W) -> tuple[Collection[int], Collection[int]]:
        """Of work without bodies: the messages that it is about, and all that it needs."""

    def complete(self, work: W, messages: Mapping[int, Stored]) -> W:
        """The same with bodies."""

    def answer(self, work: W, bounds: Bounds | None, size: int) -> bytes:
        """What the work leads to, evaluated within bounds; it has so many bytes."""


class Way(Protocol):
    """Evaluates chunks somewhere."""

    @property
    def name(self) -> str:
        """``SPARK`` or ``WORKER``."""

    @property
    def parallelism(self) -> int:
        """How many chunks are evaluated at a time; those of a cluster come and go."""

    def answers(self, task: Task[Any], chunks: Sequence[bytes], bay: Bay | None = None) -> Iterable[bytes]:
        """The answers to chunks; by the store, if there is a bay."""

    def carry(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Have functions go to workers as they are, and not as the name of a module that is only here."""

    def reason(self, error: Exception) -> str:
        """Why evaluation failed, if that can be a message's fault; else it raises what it is."""

    def broken(self, error: Exception) -> EngineError:
        """What to raise if it fails whatever is evaluated."""


def answered(task: Task[Any], chunk: bytes, bounds: Bounds | None = None) -> bytes:
    """The answer to a chunk that has all it needs."""
    return task.answer(task.read(chunk), bounds, len(chunk))


def modules_of(functions: Iterable[Callable[..., Any]]) -> list[ModuleType]:
    """The modules of others that functions are from; what a program itself has goes along in any case."""
    modules = [sys.modules.get(getattr(function, "__module__", None) or "") for function in functions]
    names = {module.__name__: module for module in modules if module is not None and module.__name__ != "__main__"}
    return [module for name, module in names.items() if not name.startswith("postroom")]
