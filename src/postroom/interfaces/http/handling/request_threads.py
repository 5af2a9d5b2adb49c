"""Threads for slow work. The server waits only a limited time for them at its end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any


class RequestThreads(ThreadPoolExecutor):
    """A thread pool that can be shut down with a timeout."""

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count, name)
        self._doing: set[Future[Any]] = set()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future = super().submit(work, *args, **named)
        self._doing.add(future)
        future.add_done_callback(self._doing.discard)
        return future

    def end(self, seconds: float) -> bool:
        """Start nothing more; returns whether all running work ended in this time."""
        self.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._doing), seconds).not_done
