"""Dry runs: which stored messages are tried, and the actions that they would cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from postroom.engine.steps.effects import Action, Effects, Enqueue, ResetSlice
from postroom.model.message import Draft, Stored
from postroom.model.moment import to_microseconds
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Tried:
    """What one message would cause."""

    key: str
    queue: str
    effects: Effects

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "queue": self.queue, "actions": [_action(effect) for effect in self.effects]}


def unsent(tx: Transaction, queue: str, draft: Draft) -> Stored:
    """A message as it would wait in a queue if it were sent now. It has no key yet."""
    return Stored(0, queue, tx.now, None, draft.type, draft.format, draft.body, b"", draft.properties, None, 0, 0, 0)


def begins(since: datetime | None) -> int:
    """The time from which on messages are tried, in store units."""
    return 0 if since is None else to_microseconds(since)


def _action(action: Action) -> dict[str, Any]:
    if isinstance(action, Enqueue):
        kind = "error" if action.failed else "enqueue"
        return {"action": kind, "rule": action.rule, "queue": action.queue, "body": action.body}
    assert isinstance(action, ResetSlice), "nothing is tried again in a dry run"
    return {"action": "reset", "rule": action.rule, "slicing": action.slicing, "slicekey": action.value}
