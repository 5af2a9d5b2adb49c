"""Hosts that do not answer are left alone for a while, so that queues that share one do not use up their attempts."""

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
        """How long to leave a host alone; 0 if it may be tried. After a while one message may, and the others wait."""
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
        """Whether a host answered; an answer that refuses a message is one."""
        with self._lock:
            if answered:
                self._by_host.pop(host, None)
                return
            circuit = self._by_host.setdefault(host, _Circuit())
            circuit.failures += 1
            circuit.probing = False
            circuit.opens = self._clock() + CIRCUIT_SECONDS
