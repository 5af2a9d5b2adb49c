"""Threads that do what may take long. The end of a server waits for them only so long."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any


class RequestThreads(ThreadPoolExecutor):
    """A pool that knows what is being done, so that its end can be given a time."""

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count, name)
        self._doing: set[Future[Any]] = set()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future = super().submit(work, *args, **named)
        self._doing.add(future)
        future.add_done_callback(self._doing.discard)
        return future

    def end(self, seconds: float) -> bool:
        """Begin nothing more; answers with whether all that was begun has ended in this time."""
        self.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._doing), seconds).not_done
