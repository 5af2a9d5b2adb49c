"""The outbox: an effect on the outside is a row before it is an act."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.session import Row, Session

_INSERT = """
INSERT INTO outbox (kind, payload, created, due, attempts, state, note, destination)
VALUES (?, ?, ?, ?, 0, 'pending', NULL, ?) RETURNING id
"""
_COLUMNS = "SELECT o.id, o.kind, o.payload, o.created, o.due, o.attempts, o.state, o.note FROM outbox o "
_DUE = f"""{_COLUMNS}
WHERE o.state = 'pending' AND o.due <= ? AND NOT EXISTS (
    SELECT 1 FROM outbox b WHERE b.destination = o.destination AND b.state = 'pending' AND b.id < o.id
) ORDER BY o.due, o.id LIMIT ?
"""
_NEXT = "SELECT min(due) FROM outbox WHERE state = 'pending'"
_FIND = _COLUMNS + "WHERE o.id = ?"
_ALL = _COLUMNS + "ORDER BY o.id"
_ATTEMPT = "UPDATE outbox SET attempts = attempts + 1 WHERE id = ?"
_RETRY = "UPDATE outbox SET due = ?, state = ?, note = ? WHERE id = ?"
_REVIVE = "UPDATE outbox SET due = ?, state = 'pending', attempts = 0, payload = ? WHERE id = ?"
_HAPPENED = "SELECT at, verb, detail FROM journal WHERE seq > ? AND verb IN ('effect', 'attempt') ORDER BY seq"
_DELETE = "DELETE FROM outbox WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Effect:
    """One action outside the room: what, since when, how often it was tried."""

    id: int
    kind: str
    payload: Mapping[str, Any]
    created: int
    due: int
    attempts: int
    state: str  # pending, or failed once its attempts are used up
    note: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "effect": self.id,
            "kind": self.kind,
            "payload": dict(self.payload),
            "created": to_iso(to_datetime(self.created)),
            "due": to_iso(to_datetime(self.due)),
            "attempts": self.attempts,
            "state": self.state,
            "note": self.note,
        }


class Outbox:
    def __init__(self, session: Session, journal: Journal) -> None:
        self._session = session
        self._journal = journal

    def add(self, kind: str, payload: Mapping[str, Any], destination: str) -> int:
        """Note an effect; those with one destination are tried one after another."""
        now = self._session.now
        id = self._session.number(_INSERT, (kind, json.dumps(payload, ensure_ascii=False), now, now, destination))
        self._journal.add("effect", detail={"outbox": id, "kind": kind, **payload})
        return id

    def due(self, limit: int) -> list[Effect]:
        """Those to be tried now: of each destination the oldest that is pending."""
        return [_effect(row) for row in self._session.rows(_DUE, (self._session.now, limit))]

    def next_due(self) -> int | None:
        """When the next pending effect is to be tried; None if there is none."""
        return self._session.value(_NEXT)

    def find(self, id: int) -> Effect | None:
        return self._session.one(_effect, _FIND, (id,))

    def all(self) -> list[Effect]:
        return [_effect(row) for row in self._session.rows(_ALL)]

    def ran_since(self, seq: int) -> set[tuple[int, str]]:
        """The effects behind a number of the journal that were tried: when they were noted, and for which queue."""
        noted: dict[int, tuple[int, str]] = {}
        tried: set[tuple[int, str]] = set()
        for at, verb, detail in self._session.rows(_HAPPENED, (seq,)):
            told = json.loads(detail)
            if verb == "effect":
                noted[told["outbox"]] = (at, told.get("queue", ""))
            elif told["outbox"] in noted:
                tried.add(noted[told["outbox"]])
        return tried

    def attempt(self, effect: Effect) -> None:
        """Recorded before the act: after a crash the row says that it may have been done."""
        self._session.run(_ATTEMPT, (effect.id,))
        self._journal.add("attempt", detail={"outbox": effect.id, "attempt": effect.attempts + 1})

    def done(self, effect: Effect, result: Mapping[str, Any]) -> None:
        self._session.run(_DELETE, (effect.id,))
        self._journal.add("done", detail={"outbox": effect.id, **effect.payload, **result})

    def failed(self, effect: Effect, result: Mapping[str, Any], retry_at: int | None) -> None:
        state = "failed" if retry_at is None else "pending"
        due = effect.due if retry_at is None else retry_at
        self._session.run(_RETRY, (due, state, str(result.get("outcome", "")), effect.id))
        self._journal.add(
            "failed", detail={"outbox": effect.id, "retry": state == "pending", **effect.payload, **result}
        )

    def revive(self, effect: Effect, payload: Mapping[str, Any]) -> None:
        """New attempts, perhaps with what has been corrected since."""
        self._session.run(_REVIVE, (self._session.now, json.dumps(payload, ensure_ascii=False), effect.id))
        self._journal.add("retry", detail={"outbox": effect.id, **payload})

    def drop(self, effect: Effect) -> None:
        self._session.run(_DELETE, (effect.id,))
        self._journal.add("drop", detail={"outbox": effect.id, **effect.payload})


def _effect(row: Row) -> Effect:
    id, kind, payload, created, due, attempts, state, note = row
    return Effect(id, kind, json.loads(payload), created, due, attempts, state, note)
