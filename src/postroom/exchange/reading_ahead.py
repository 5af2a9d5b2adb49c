"""Reads ahead in a thread, while what was read is written: the store waits for the disk, and so needs no processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Event, Thread
from typing import Generic, TypeVar

T = TypeVar("T")
_AHEAD = 1  # items that wait; one more is in the making


@contextmanager
def read_ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """The same items. Whatever their reader raises comes in its place; at the end of the block it has stopped."""
    reader = _Reader(items)
    reader.thread.start()
    try:
        yield reader.items()
    finally:
        reader.stop()


class _Reader(Generic[T]):
    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._read: Queue[tuple[T] | BaseException | None] = Queue(_AHEAD)
        self._unwanted = Event()
        self.thread = Thread(target=self._work, name="postroom-reading", daemon=True)

    def _work(self) -> None:
        try:
            for item in self._items:
                self._read.put((item,))
                if self._unwanted.is_set():
                    return
            self._read.put(None)
        except BaseException as error:  # whatever it is: it is told to who reads
            self._read.put(error)

    def items(self) -> Iterator[T]:
        while (read := self._read.get()) is not None:
            if isinstance(read, BaseException):
                raise read
            yield read[0]

    def stop(self) -> None:
        self._unwanted.set()
        while self.thread.is_alive():
            try:  # it may wait for room
                self._read.get(timeout=0.01)
            except Empty:
                continue
        self.thread.join()
