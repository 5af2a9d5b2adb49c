"""Retention of records that grow with use: how long each kind is kept, counts, and deletion.

Nothing is deleted unless an operator has set a retention time. The journal still matches the store afterwards: each
deleted message has a line, and lines of heartbeats are replaced by one with their result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any, NamedTuple

from postroom.store.kernel.journal import FORGET, Journal, numbered
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.queues import ALIVE, META_SPACE, Queues
from postroom.store.kernel.session import Row, Session
from postroom.store.tables.spheres import ALIVE_QUEUE, MACHINE
from postroom.store.upkeep.retention import Retention

_SETTINGS = "SELECT kind, microseconds FROM retentions"
_SET = """
INSERT INTO retentions (kind, microseconds) VALUES (?, ?)
ON CONFLICT (kind) DO UPDATE SET microseconds = excluded.microseconds
"""
_UNSET = "DELETE FROM retentions WHERE kind = ?"

# A line that was archived is as old as the end of its archive, or older.
_ENDED = """
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1 JOIN spheres s ON s.token = m.key
    LEFT JOIN journal j ON j.seq = m.position
WHERE q.name IN ('COMMITTED', 'ABORTED')
    AND coalesce(j.at, (SELECT min(a.until) FROM archives a WHERE a.last >= m.position), 0) < ?
    AND NOT EXISTS (SELECT 1 FROM sends o WHERE o.sphere = s.id AND o.outcome IS NULL)
    AND NOT EXISTS (SELECT 1 FROM branches b WHERE b.sphere = s.id)
"""
_ENDED_SPHERES = "SELECT s.id, s.token, q.name " + _ENDED + " ORDER BY m.position LIMIT ?"
_COUNT_ENDED = "SELECT count(*) " + _ENDED
_LEFT_OF = """
SELECT m.key FROM sends s JOIN messages m ON m.key = s.remembered JOIN queues q ON q.id = m.queue AND q.kind = 'undo'
WHERE s.sphere = ? AND m.state = 1
"""
_FORGET_SPHERE = (
    "DELETE FROM tokens WHERE machine = 'sphere' AND entity = ?",
    "DELETE FROM sends WHERE sphere = ?",
    "DELETE FROM requirements WHERE sphere = ?",
    "DELETE FROM parts WHERE sphere = ?",
    "DELETE FROM spheres WHERE id = ?",
)

_RECEIPTS = "SELECT name FROM receipts WHERE at < ? AND substr(name, 1, 6) <> 'spark:' LIMIT ?"
_COUNT_RECEIPTS = "SELECT count(*) FROM receipts WHERE at < ? AND substr(name, 1, 6) <> 'spark:'"
_FORGET_RECEIPT = "DELETE FROM receipts WHERE name = ?"

_GONE_VISITS = """
SELECT v.message, v.hop FROM visits v LEFT JOIN departed d ON d.key = v.message LEFT JOIN journal j ON j.seq = d.last
WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.key = v.message)
    AND coalesce(j.at, (SELECT max(a.until) FROM archives a), 0) < ?
ORDER BY v.message, v.hop
"""
_FORGET_VISIT = "DELETE FROM visits WHERE message = ? AND hop = ?"

_META = """
FROM queues q JOIN messages m ON m.queue = q.id WHERE q.kind = 'meta' AND m.created < ? AND (m.state = 0 OR (m.state = 1
    AND NOT EXISTS (SELECT 1 FROM flowing f WHERE f.queue = q.id)
    AND NOT EXISTS (SELECT 1 FROM watchers w WHERE w.queue = q.id)))
"""
_META_EVENTS = "SELECT m.key, q.name, m.state " + _META + " ORDER BY m.key LIMIT ?"
_COUNT_META = "SELECT count(*) " + _META

# Undecided spheres, and recipients that take part, need the hearts that they depend on.
_SILENT = """
SELECT m.key FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1 LEFT JOIN beats h ON h.owner = m.body
WHERE q.name = 'ALIVE.Q' AND coalesce(h.at, m.created) < ?
    AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.owner = m.body AND p.done = 0)
    AND NOT EXISTS (
        SELECT 1 FROM spheres s JOIN messages t ON t.key = s.token JOIN queues w ON w.id = t.queue
        WHERE s.owner = m.body AND w.name NOT IN ('COMMITTED', 'ABORTED')
    )
"""
_STILL = "DELETE FROM beats WHERE owner = ?"
_BEATS_DONE = "SELECT value FROM counters WHERE name = 'beats'"
_SET_BEATS_DONE = """
INSERT INTO counters (name, value) VALUES ('beats', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_LAST_BEAT = """
SELECT max(seq) FROM journal WHERE seq > ? AND at < ? AND message IS NOT NULL AND (source = ? OR target = ?)
"""
_COUNT_BEATS = """
SELECT count(*) FROM journal WHERE seq > ? AND seq < ? AND message IS NOT NULL AND (source = ? OR target = ?)
"""
_LATER = """
SELECT message, min(seq), sum(CASE WHEN target IS NULL THEN 0 ELSE 1 END),
       sum(CASE WHEN source IS NULL THEN 0 ELSE 1 END)
FROM journal WHERE seq > ? AND message IS NOT NULL AND (source = ? OR target = ?) GROUP BY message
"""
_PRIOR = "SELECT prior FROM journal WHERE seq = ?"
_HEARTS = "SELECT key, position, number FROM messages WHERE queue = ? AND state = 1 AND position <= ? ORDER BY key"
_STILLED = "SELECT message FROM journal WHERE seq <= ? AND source = ? AND target IS NULL AND message IS NOT NULL"
_REMOVE_BEATS = """
DELETE FROM journal WHERE seq >= ? AND seq <= ? AND (source = ? OR target = ?)
    AND (message IS NOT NULL OR verb = 'beats')
"""
_DIGEST = "SELECT digest FROM journal WHERE seq = ?"

_ROWS = {
    "spheres": "SELECT count(*) FROM spheres",
    "receipts": "SELECT count(*) FROM receipts",
    "visits": "SELECT count(*) FROM visits",
    "meta-events": "SELECT count(*) FROM messages m JOIN queues q ON q.id = m.queue WHERE q.kind = 'meta'",
    "journal": "SELECT count(*) FROM journal",
}


class Kind(StrEnum):
    """A kind of record with a retention time."""

    SPHERES = "spheres"
    HEARTBEATS = "heartbeats"
    VISITS = "visits"
    RECEIPTS = "receipts"
    META_EVENTS = "meta-events"


class Swept(NamedTuple):
    """How many records of a kind are, or would be, deleted."""

    kind: str
    number: int


class Upkeep:
    def __init__(
        self, session: Session, journal: Journal, queues: Queues, messages: Messages, retention: Retention
    ) -> None:
        self._session = session
        self._journal = journal
        self._queues = queues
        self._messages = messages
        self._retention = retention

    # --- how long ---

    def retentions(self) -> dict[str, int]:
        """The kinds with a limited retention time."""
        return dict(self._session.rows(_SETTINGS))

    def retain(self, kind: Kind, microseconds: int | None) -> None:
        """Set the retention time of a kind; None for ever."""
        if microseconds is None:
            self._session.run(_UNSET, (kind.value,))
        else:
            self._session.run(_SET, (kind.value, microseconds))
        self._journal.add("retention", detail={"kind": kind.value, "microseconds": microseconds})

    # --- how much ---

    def rows(self) -> dict[str, int]:
        """The number of records of each kind."""
        return {kind: self._number(statement) for kind, statement in _ROWS.items()}

    def count(self, kind: Kind, before: int, pending: Collection[int] = ()) -> int:
        """How many records of a kind are older than a moment and not needed."""
        if kind is Kind.SPHERES:
            return self._number(_COUNT_ENDED, self._settled_before(before))
        if kind is Kind.RECEIPTS:
            return self._number(_COUNT_RECEIPTS, before)
        if kind is Kind.META_EVENTS:
            return self._number(_COUNT_META, before)
        if kind is Kind.VISITS:
            return len(self._visits(before, pending))
        return len(self._session.rows(_SILENT, (before,))) + self._beats(before)

    # --- removing ---

    def sweep(self, kind: Kind, before: int, limit: int, pending: Collection[int] = ()) -> int:
        """Delete up to ``limit`` records older than a moment; returns how many.

        ``pending`` are messages in transit, whose visits are needed.
        """
        removing: dict[Kind, Callable[[], int]] = {
            Kind.SPHERES: lambda: self._sweep_spheres(before, limit),
            Kind.RECEIPTS: lambda: self._sweep_receipts(before, limit),
            Kind.META_EVENTS: lambda: self._sweep_meta(before, limit),
            Kind.VISITS: lambda: self._sweep_visits(before, limit, pending),
            Kind.HEARTBEATS: lambda: self._sweep_beats(before),
        }
        gone = removing[kind]()
        if gone:
            self._journal.add("upkeep", detail={"kind": kind.value, "removed": gone})
        return gone

    def _settled_before(self, before: int) -> int:
        """A bound on deletions, because an undecided sphere may involve any that ended since it began."""
        oldest = self._journal.archives.unsettled()
        return before if oldest is None else min(before, oldest[1])

    def _sweep_spheres(self, before: int, limit: int) -> int:
        ended = self._session.rows(_ENDED_SPHERES, (self._settled_before(before), limit))
        queues = self._queues.locked_all({*(row[2] for row in ended), "COMP.Q"})
        for id, token, state in ended:
            for (key,) in self._session.rows(_LEFT_OF, (id,)):
                left = self._messages.find(key)
                if left is not None:
                    self._messages.remove(queues["COMP.Q"], left, FORGET)
            stored = self._messages.find(token)
            assert stored is not None, "it was read in this transaction, under the lock of its queue"
            about = {"machine": MACHINE, "entity": id}
            self._messages.remove(queues[state], stored, FORGET, about)
            for statement in _FORGET_SPHERE:
                self._session.run(statement, (id,))
        return len(ended)

    def _sweep_receipts(self, before: int, limit: int) -> int:
        receipts = self._session.rows(_RECEIPTS, (before, limit))
        return self._session.many(_FORGET_RECEIPT, receipts) if receipts else 0

    def _sweep_meta(self, before: int, limit: int) -> int:
        events = self._session.rows(_META_EVENTS, (before, limit))
        queues = self._queues.locked_all({row[1] for row in events})
        for key, name, state in events:
            stored = self._messages.find(key) if state else None
            if stored is not None and queues[name].kind == META_SPACE:
                self._messages.remove(queues[name], stored, FORGET)
        self._retention.remove([(key, queues[name].id) for key, name, state in events if not state])
        return len(events)

    def _visits(self, before: int, pending: Collection[int]) -> list[Row]:
        return [row for row in self._session.rows(_GONE_VISITS, (before,)) if row[0] not in pending]

    def _sweep_visits(self, before: int, limit: int, pending: Collection[int]) -> int:
        visits = self._visits(before, pending)[:limit]
        return self._session.many(_FORGET_VISIT, visits) if visits else 0

    # --- heartbeats ---

    def _beats(self, before: int) -> int:
        """How many lines of heartbeats would be replaced by one."""
        alive = self._queues.named_to_read(ALIVE_QUEUE)
        last = None if alive is None else self._last_beat(alive.id, before)
        if alive is None or last is None:
            return 0
        return self._number(_COUNT_BEATS, self._beats_done(), last, alive.id, alive.id)

    def _sweep_beats(self, before: int) -> int:
        """Delete an idle owner of nothing; if there is none, old beats of live ones.

        One at a time, because the replacing line needs exact counts.
        """
        return self._sweep_silent(before) or self._sweep_lines(before)

    def _sweep_silent(self, before: int) -> int:
        silent = [row[0] for row in self._session.rows(_SILENT, (before,))]
        alive = self._queues.named(ALIVE_QUEUE) if silent else None
        for key in silent if alive is not None else ():
            stored = self._messages.find(key)
            if alive is not None and stored is not None:
                self._messages.remove(alive, stored, FORGET)
                self._session.run(_STILL, (stored.body,))
        return len(silent)

    def _sweep_lines(self, before: int) -> int:
        """Replace lines of heartbeats by one line with their result."""
        alive = self._queues.named(ALIVE_QUEUE)  # its lock: nobody beats now
        last = None if alive is None or alive.kind != ALIVE else self._last_beat(alive.id, before)
        count = self._beats(before)
        if alive is None or last is None or not count:
            return 0
        later = self._session.rows(_LATER, (last, alive.id, alive.id))
        hearts = [list(row) for row in self._session.rows(_HEARTS, (alive.id, last))]
        for message, first, _, _ in later:
            prior = self._session.value(_PRIOR, (first,))
            if prior is not None:  # it lived already; its next line gives it a new number
                hearts.append([message, prior, 0])
        about: dict[str, Any] = {
            "hearts": sorted(hearts),
            "arrivals": alive.arrivals - sum(int(row[2]) for row in later),
            "departed": alive.departed - sum(int(row[3]) for row in later),
        }
        at = self._journal.time_of(last) or 0
        covered = self._session.value(_DIGEST, (last,)) is not None
        self._messages.forget_departed(row[0] for row in self._session.rows(_STILLED, (last, alive.id)))
        self._session.run(_REMOVE_BEATS, (self._beats_done(), last, alive.id, alive.id))
        actor, detail = self._journal.actor, self._journal.detail_text(about)
        line = numbered(last, at, "beats", None, None, alive.id, None, actor, detail)
        self._journal.add_lines([line if covered else (*line[:-1], None)])
        self._session.run(_SET_BEATS_DONE, (last,))
        return count

    def _last_beat(self, alive: int, before: int) -> int | None:
        return self._session.value(_LAST_BEAT, (self._beats_done(), before, alive, alive))

    def _beats_done(self) -> int:
        """The number of the line that replaces all before it."""
        return self._number(_BEATS_DONE)

    def _number(self, statement: str, *values: int) -> int:
        return self._session.value(statement, values) or 0
