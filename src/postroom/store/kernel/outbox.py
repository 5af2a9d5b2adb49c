"""The outbox: an effect outside the room is a row before it is performed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from postroom.model.key import key_text
from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.session import Row
from postroom.store.kernel.statement import Statement

SENDING = "gateway"  # the kind of effects that send a message of a queue

_INSERT = """
INSERT INTO outbox (kind, payload, created, due, attempts, state, note, destination, message)
VALUES (?, ?, ?, ?, 0, 'pending', NULL, ?, ?) RETURNING id
"""
_COLUMNS = """
SELECT o.id, o.kind, o.payload, o.created, o.due, o.attempts, o.state, o.note, o.destination, o.message FROM outbox o
"""
_HELD = "(SELECT 'queue ' || q.name FROM queues q WHERE q.hold >= 2)"  # they release nothing
# From one destination to the next, however many rows each has.
_HEADS = f"""
WITH RECURSIVE d (destination) AS (
    SELECT min(a.destination) FROM outbox a WHERE a.state = 'pending'
    UNION ALL
    SELECT (SELECT min(b.destination) FROM outbox b WHERE b.state = 'pending' AND b.destination > d.destination)
    FROM d WHERE d.destination IS NOT NULL
)
{_COLUMNS} JOIN d ON o.id = (
    SELECT min(h.id) FROM outbox h WHERE h.state = 'pending' AND h.destination = d.destination
) WHERE o.destination NOT IN {_HELD} ORDER BY o.due, o.id
"""
_RUN = f"{_COLUMNS} WHERE o.destination = ? AND o.state = 'pending' ORDER BY o.id LIMIT ?"
# Those that have come since the counts were read; where messages are not numbered by counting, since they were noted.
_NEW = (
    "SELECT m.key FROM messages m WHERE m.queue = ? AND m.state = ? AND "
    + Statement(
        "m.number > ?",
        """CAST(? AS BIGINT) IS NOT NULL AND m.number > coalesce((
        SELECT t.upto FROM tallies t WHERE t.queue = m.queue ORDER BY t.upto DESC LIMIT 1
    ), 0)""",
    )
    + " ORDER BY m.position DESC LIMIT ?"
)
_WAITING = "SELECT m.key FROM messages m WHERE m.queue = ? AND m.state = 1 ORDER BY m.position"
_NEXT = f"SELECT min(o.due) FROM outbox o WHERE o.state = 'pending' AND o.destination NOT IN {_HELD}"
_FIND = _COLUMNS + "WHERE o.id = ?"
_ALL = _COLUMNS + "ORDER BY o.id"
_ATTEMPT = "UPDATE outbox SET attempts = ? WHERE id = ?"
_POSTPONE = "UPDATE outbox SET attempts = ?, due = ?, note = ? WHERE id = ?"
_RETRY = "UPDATE outbox SET due = ?, state = ?, note = ? WHERE id = ?"
_REVIVE = "UPDATE outbox SET due = ?, state = 'pending', attempts = 0, payload = ? WHERE id = ?"
_HAPPENED = "SELECT at, verb, detail FROM journal WHERE seq > ? AND verb IN ('effect', 'attempt') ORDER BY seq"
_NOTE_CHARS = 200  # of what a command has printed; the journal has all that is kept
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
    destination: str = ""
    message: int | None = None  # of a gateway queue, if that is what is to be sent

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


class Outbox(JournaledTable):
    def add(self, kind: str, payload: Mapping[str, Any], destination: str, message: int | None = None) -> int:
        """Add an effect; those with one destination are tried in order."""
        now, text = self._session.now, json.dumps(payload, ensure_ascii=False)
        id = self._session.number(_INSERT, (kind, text, now, now, destination, message))
        self._journal.add("effect", detail={"outbox": id, "kind": kind, **payload})
        return id

    def arrived(self, queue: Queue, count: int) -> list[int]:
        """The newest messages of a queue, all from this transaction."""
        keys: list[int] = []
        for state in (State.UNPROCESSED, State.PROCESSED):
            if len(keys) < count:
                some = self._session.rows(_NEW, (queue.id, int(state), queue.arrivals, count - len(keys)))
                keys += [row[0] for row in some]
        return keys

    def add_waiting(self, queue: Queue) -> None:
        """Add effects for messages that waited in a queue before it became a gateway."""
        for row in self._session.rows(_WAITING, (queue.id,)):
            self._add_message(queue, row[0])

    def add_messages(self, arrived: Iterable[tuple[int, Queue]]) -> None:
        """Add messages to be sent, in creation order across queues, which may share a destination."""
        for key, queue in sorted(arrived, key=lambda one: one[0]):
            self._add_message(queue, key)

    def _add_message(self, queue: Queue, key: int) -> None:
        self.add(SENDING, {"queue": queue.name, "message": key_text(key)}, f"queue {queue.name}", key)

    def heads(self) -> list[Effect]:
        """The oldest pending effect of each destination by due time, without queues on hold."""
        return [_effect(row) for row in self._session.rows(_HEADS)]

    def run_of(self, destination: str, limit: int) -> list[Effect]:
        """The oldest pending effects of a destination."""
        return [_effect(row) for row in self._session.rows(_RUN, (destination, limit))]

    def next_due(self) -> int | None:
        """When the next pending effect is due; None if there is none, except for queues on hold."""
        return self._session.value(_NEXT)

    def find(self, id: int) -> Effect | None:
        return self._session.one(_effect, _FIND, (id,))

    def all(self) -> list[Effect]:
        return [_effect(row) for row in self._session.rows(_ALL)]

    def ran_since(self, seq: int) -> set[tuple[int, str]]:
        """The effects tried after a journal number: when they were added, and for which queue."""
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
        """Record an attempt before it is made: after a crash the row shows that it may have happened."""
        self._session.run(_ATTEMPT, (effect.attempts + 1, effect.id))
        self._journal.add("attempt", detail={"outbox": effect.id, "attempt": effect.attempts + 1})

    def postpone(self, effect: Effect, due: int, why: str) -> None:
        """Undo a recorded attempt that was not made."""
        self._session.run(_POSTPONE, (effect.attempts, due, why, effect.id))
        self._journal.add("attempt", detail={"outbox": effect.id, "attempt": effect.attempts, "outcome": why})

    def done(self, effect: Effect, result: Mapping[str, Any]) -> None:
        self._session.run(_DELETE, (effect.id,))
        self._journal.add("done", detail={"outbox": effect.id, **effect.payload, **result})

    def failed(self, effect: Effect, result: Mapping[str, Any], retry_at: int | None) -> None:
        state = "failed" if retry_at is None else "pending"
        due = effect.due if retry_at is None else retry_at
        self._session.run(_RETRY, (due, state, _noted(result), effect.id))
        self._journal.add(
            "failed", detail={"outbox": effect.id, "retry": state == "pending", **effect.payload, **result}
        )

    def revive(self, effect: Effect, payload: Mapping[str, Any]) -> None:
        """Give a failed effect new attempts, optionally with a corrected payload."""
        self._session.run(_REVIVE, (self._session.now, json.dumps(payload, ensure_ascii=False), effect.id))
        self._journal.add("retry", detail={"outbox": effect.id, **payload})

    def drop(self, effect: Effect) -> None:
        self._session.run(_DELETE, (effect.id,))
        self._journal.add("drop", detail={"outbox": effect.id, **effect.payload})


def _effect(row: Row) -> Effect:
    id, kind, payload, created, due, attempts, state, note, destination, message = row
    return Effect(id, kind, json.loads(payload), created, due, attempts, state, note, destination, message)


def _noted(result: Mapping[str, Any]) -> str:
    """How an attempt ended, with the first line of what a command has printed: it mostly says why."""
    printed = str(result.get("output", "")).strip().splitlines()
    return ": ".join([str(result.get("outcome", "")), *(line[:_NOTE_CHARS] for line in printed[:1])])
