"""A circuit breaker: hosts that do not respond are left alone for a while, so that queues do not use up their
attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from postroom.limits import CIRCUIT_FAILURES, CIRCUIT_SECONDS


@dataclass
class _Circuit:
    failures: int = 0
    opens: float = 0.0  # when it may be tried again
    probing: bool = False  # one message is trying whether the host is back


class Circuits:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_host: dict[str, _Circuit] = {}

    def wait_seconds(self, host: str) -> float:
        """How long to leave a host alone; 0 if it may be tried.

        After that time one message is tried, while the others wait.
        """
        with self._lock:
            circuit = self._by_host.get(host)
            if circuit is None or circuit.failures < CIRCUIT_FAILURES:
                return 0.0
            left = circuit.opens - self._clock()
            if left > 0:
                return left
            if circuit.probing:
                return 1.0
            circuit.probing = True
            return 0.0

    def note(self, host: str, answered: bool) -> None:
        """Note whether a host responded; a response that refuses a message counts."""
        with self._lock:
            if answered:
                self._by_host.pop(host, None)
                return
            circuit = self._by_host.setdefault(host, _Circuit())
            circuit.failures += 1
            circuit.probing = False
            circuit.opens = self._clock() + CIRCUIT_SECONDS
