"""Extends leases during long work: one thread for all of a room."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from postroom.errors import LeaseOver, PostroomError
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.leasing import Leasing

_PART = 3  # a lease is extended when this part of its time is over


class Keeper:
    """Extends the leases of messages that are being worked on."""

    def __init__(self, leasing: Leasing) -> None:
        self._leasing = leasing
        self._kept: dict[int, LeasedMessage] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keeping(self, message: LeasedMessage) -> Iterator[None]:
        """In this block the lease does not expire, as long as this process and its store work."""
        try:
            with self._changed:
                self._kept[message.lease] = message
                if self._thread is None or not self._thread.is_alive():  # Ctrl-C may have come while it started
                    self._thread = threading.Thread(target=self._run, name="postroom-leases", daemon=True)
                    self._thread.start()
                self._changed.notify()
            yield
        finally:
            with self._changed:
                self._kept.pop(message.lease, None)
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._kept and not self._changed.wait(1.0):
                    self._thread = None
                    return
                pause = min((message.seconds for message in self._kept.values()), default=1.0) / _PART
                self._changed.wait(pause)
                kept = list(self._kept.values())
            for message in kept:
                self._extend(message)

    def _extend(self, message: LeasedMessage) -> None:
        try:
            message.extend()
        except LeaseOver:  # its worker is told when it ends the lease
            with self._changed:
                self._kept.pop(message.lease, None)
        except PostroomError:  # busy or gone for a moment: there are more turns before the lease runs out
            return
