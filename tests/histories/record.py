"""What processes did to a room and what they were told: each call when it was begun, and how it ended.

A line for the beginning and a line for the end, in a file of each process. A call without an end is *unknown*: its
process was killed, or it was told that nobody knows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postroom.errors import PostroomError

OK, FAIL, UNKNOWN = "ok", "fail", "unknown"


@dataclass(frozen=True)
class Operation:
    """One call of one process. Times are nanoseconds of a clock that all processes share."""

    process: str
    verb: str  # send: values to queues; take: of a queue; read: of queues; exchange: read, then send
    asked: Any
    begun: float
    ended: float = math.inf
    outcome: str = UNKNOWN
    answer: Any = None

    @property
    def happened(self) -> bool:
        return self.outcome == OK

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Queues and values, in their order, that this call puts there all at once."""
        return [(queue, value) for queue, value in self.asked] if self.verb in ("send", "exchange") else []

    @property
    def seen(self) -> dict[str, list[str]]:
        """What it read in queues that nobody takes from."""
        return dict(self.answer) if self.happened and self.verb in ("read", "exchange") else {}


class Recorder:
    def __init__(self, file: Path) -> None:
        self._file = file.open("a", buffering=1)

    def call(self, verb: str, asked: Any, work: Callable[[], Any]) -> Any:
        self._say([verb, asked, time.monotonic_ns()])
        try:
            answer, outcome = work(), OK
        except PostroomError as error:
            answer, outcome = error.code, {"no": FAIL, "unknown": UNKNOWN}[error.happened]
        self._say([outcome, answer, time.monotonic_ns()])
        return answer

    def close(self) -> None:
        self._file.close()

    def _say(self, words: list[Any]) -> None:
        self._file.write(json.dumps(words) + "\n")


def recorded(files: Iterable[Path]) -> list[Operation]:
    """The history of all processes, in the order in which calls were begun."""
    found = []
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        for begun, ended in zip(lines[::2], [*lines[1::2], None], strict=False):
            verb, asked, at = begun
            if ended is None or ended[0] == UNKNOWN:
                found.append(Operation(file.name, verb, asked, at))
            else:
                found.append(Operation(file.name, verb, asked, at, ended[2], ended[0], ended[1]))
    return sorted(found, key=lambda each: each.begun)
