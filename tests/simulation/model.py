"""What must be in a room after each commit, by plain lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

KEEPING, DISCARDING = ("a", "b"), ("c",)
QUEUES = (*KEEPING, *DISCARDING)


class Asked(NamedTuple):
    """One call of a client."""

    verb: str  # send, send-many, distribute, receive, wait, look
    queues: tuple[str, ...]
    values: tuple[str, ...] = ()
    once: str | None = None  # an idempotency key


#: The label of the transaction in which each verb does its work.
LABELS = {"send": "send", "send-many": "send-many", "distribute": "distribute", "receive": "receive", "wait": "receive"}


@dataclass
class Model:
    waiting: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in QUEUES})
    done: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in KEEPING})
    receipts: set[str] = field(default_factory=set)

    def commit(self, asked: Asked) -> Any:
        """What a call does when it is committed; the answer that it must give."""
        if asked.verb in ("receive", "wait"):
            return self._take(asked.queues[0])
        if asked.once is not None and asked.once in self.receipts:
            return None
        if asked.once is not None:
            self.receipts.add(asked.once)
        for queue in asked.queues:
            self.waiting[queue] += asked.values
        return None

    def _take(self, queue: str) -> str | None:
        if not self.waiting[queue]:
            return None
        value = self.waiting[queue].pop(0)
        if queue in KEEPING:
            self.done[queue].append(value)
        return value
