"""Timers: something to do at a time, stored until it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postroom.store.kernel.journal import JournaledTable

_INSERT = "INSERT INTO timers (due, kind, payload) VALUES (?, ?, ?) RETURNING id"
_DUE = "SELECT id, due, kind, payload FROM timers WHERE due <= ? AND kind = ? ORDER BY due, id LIMIT ?"
_NEXT = "SELECT min(due) FROM timers"
_NEXT_OF_KIND = "SELECT min(due) FROM timers WHERE kind = ?"
_DELETE = "DELETE FROM timers WHERE id = ?"


ECHO = "echo"  # the kind of a message of an echo queue


@dataclass(frozen=True, slots=True)
class Timer:
    id: int
    due: int
    kind: str
    payload: Mapping[str, Any]


class Timers(JournaledTable):
    def add(self, due: int, kind: str, payload: Mapping[str, Any]) -> int:
        id = self._session.number(_INSERT, (due, kind, json.dumps(payload, ensure_ascii=False)))
        self._journal.add("timer", detail={"timer": id, "kind": kind, "due": due})
        return id

    def due(self, kind: str, limit: int) -> list[Timer]:
        """The due timers, by time."""
        rows = self._session.rows(_DUE, (self._session.now, kind, limit))
        return [Timer(id, due, kind, json.loads(payload)) for id, due, kind, payload in rows]

    def next_due(self, kind: str | None = None) -> int | None:
        """When the next one is due, of one kind or all."""
        return self._session.value(_NEXT) if kind is None else self._session.value(_NEXT_OF_KIND, (kind,))

    def remove(self, timer: Timer) -> bool:
        """Remove a timer; False if it was gone: only the one who removes it acts on it."""
        removed = self._session.run(_DELETE, (timer.id,)) == 1
        if removed:
            self._journal.add("timer-done", detail={"timer": timer.id})
        return removed
