"""The journal: every state change, in the commit that made it. Locate, trace, history and audit are readings of it.

The events of one message are a chain: each knows the number of the one before it, and the message (or, once it is gone,
its row in ``departed``) the number of the last. So a trace costs its own length, and writing needs no second index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from postroom.limits import JOURNAL_PAGE_ROWS, PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.moment import to_datetime, to_iso
from postroom.model.place import place_of
from postroom.store.session import Row, Session

#: For many lines whose numbers were reserved.
APPEND_NUMBERED = """
INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_APPEND = (
    "INSERT INTO journal (at, verb, message, prior, source, target, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ARRIVED = """
INSERT INTO journal (seq, at, verb, message, source, target, actor)
SELECT position, ?, ?, key, ?, queue, ? FROM messages WHERE queue = ? AND state = 1 AND position >= ?
"""
_NEWEST = "SELECT coalesce(max(seq), 0) FROM journal"
_LAST_OF = "SELECT coalesce(last, position) FROM messages WHERE key = ?"
_LAST_OF_DEPARTED = "SELECT last FROM departed WHERE key = ?"
_SET_LAST = "UPDATE messages SET last = ? WHERE key = ?"
_SELECT = """
SELECT j.seq, j.at, j.verb, j.message, s.name, t.name, j.actor, j.detail
FROM journal j LEFT JOIN queues s ON s.id = j.source LEFT JOIN queues t ON t.id = j.target
"""
_CHAIN = """
WITH RECURSIVE chain (seq, prior) AS (
    SELECT seq, prior FROM journal WHERE seq = ?
    UNION ALL SELECT older.seq, older.prior FROM journal older JOIN chain ON older.seq = chain.prior
)
SELECT j.seq, j.at, j.verb, j.message, s.name, t.name, j.actor, j.detail
FROM chain JOIN journal j ON j.seq = chain.seq
     LEFT JOIN queues s ON s.id = j.source LEFT JOIN queues t ON t.id = j.target
ORDER BY chain.seq
"""
# All that one commit did has one time. Whoever acts for the engine is called by its kind and its name.
_STEPS = """
SELECT at, min(seq), sum(CASE WHEN verb = 'put' OR verb = 'create' THEN 0 ELSE 1 END),
       sum(CASE WHEN verb = 'put' OR verb = 'create' THEN 1 ELSE 0 END)
FROM journal WHERE seq > ? AND message IS NOT NULL AND (actor = 'engine' OR substr(actor, 1, 5) = 'rule '
    OR substr(actor, 1, 4) = 'arc ' OR substr(actor, 1, 10) = 'procedure ' OR substr(actor, 1, 8) = 'counter ')
GROUP BY at ORDER BY at
"""
_FIRST = "SELECT 1 FROM journal WHERE seq = ? AND prior IS NULL"
_SOURCE_OF = "SELECT source FROM journal WHERE seq = ?"
_TIME_OF = "SELECT at FROM journal WHERE seq = ?"
_ACTOR_OF = "SELECT actor FROM journal WHERE seq = ?"
_ONE = _SELECT + "WHERE j.seq = ?"
_AFTER = _SELECT + "WHERE j.seq > ? ORDER BY j.seq LIMIT ?"
_TAIL = _SELECT + "ORDER BY j.seq DESC LIMIT ?"
_LINES = """
SELECT seq, at, verb, message, prior, source, target, detail FROM journal WHERE seq > ? ORDER BY seq LIMIT ?
"""

#: What may happen to a message that stays where and as it is. Any other line but ``take``, ``set-aside``, ``reserve``
#: and ``give-back`` brings it to the end of its target, or lets it go if there is none.
NOTES = ("segment", "unlock", "dossier", "remove-dossier", "refused")


class Line(NamedTuple):
    """One line as it is written, with the numbers of queues and messages."""

    seq: int
    at: int
    verb: str
    message: int | None
    prior: int | None
    source: int | None
    target: int | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal."""

    seq: int
    time: datetime
    verb: str
    key: str | None
    source: str | None
    target: str | None
    by: str
    detail: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "time": to_iso(self.time),
            "verb": self.verb,
            "from": place_of(self.source),
            "to": place_of(self.target),
            "by": self.by,
        }
        if self.detail is not None:
            shape["detail"] = dict(self.detail)
        return shape


class Commit(NamedTuple):
    """What one commit of the engine did."""

    at: int
    first: int  # its first number
    messages: int  # that were processed or moved
    created: int


class Journal:
    def __init__(self, session: Session, actor: str) -> None:
        self._session = session
        self.actor = actor  # whoever acts; a rule or a station may stand in for the room's user

    def add(
        self,
        verb: str,
        *,
        message: int | None = None,
        prior: int | None = None,
        source: int | None = None,
        target: int | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> int:
        """Append one event; its number is also the position of a message that arrived by it."""
        session = self._session
        said = None if detail is None else json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
        return session.append(_APPEND, (session.now, verb, message, prior, source, target, self.actor, said))

    def add_to(self, message: int, verb: str, queue: int, detail: Mapping[str, Any]) -> None:
        """An event that leaves the message where it is; one of ``NOTES``."""
        prior = self._last_number(message)
        seq = self.add(verb, message=message, prior=prior, source=queue, target=queue, detail=detail)
        self._session.run(_SET_LAST, (seq, message))

    def add_arrivals(self, verb: str, *, target: int, since: int, source: int | None = None) -> None:
        """One event for each message that lies in a queue from a position on; inside the database, set at a time."""
        self._session.run(_ARRIVED, (self._session.now, verb, source, self.actor, target, since))

    def trace(self, message: int) -> list[Event]:
        """Everything that happened to one message, oldest first."""
        last = self._last_number(message)
        return [] if last is None else [_event(row) for row in self._session.rows(_CHAIN, (last,))]

    def attempts(self, message: int) -> int:
        """How often a message was given out to someone who may have given it back."""
        return sum(event.verb == "reserve" for event in self.trace(message))

    def last(self, message: int) -> Event | None:
        last = self._last_number(message)
        row = None if last is None else self._session.row(_ONE, (last,))
        return None if row is None else _event(row)

    def _last_number(self, message: int) -> int | None:
        row = self._session.row(_LAST_OF, (message,)) or self._session.row(_LAST_OF_DEPARTED, (message,))
        return None if row is None else row[0]

    def is_first(self, seq: int) -> bool:
        """Whether a line is the first of its message: one that stands there by it has never been elsewhere."""
        return self._session.row(_FIRST, (seq,)) is not None

    def source_of(self, seq: int) -> int | None:
        """The queue that a message came from, by the number of the line; None if it was new."""
        row = self._session.row(_SOURCE_OF, (seq,))
        return None if row is None else row[0]

    def time_of(self, seq: int) -> int | None:
        """When an event was, by its number."""
        row = self._session.row(_TIME_OF, (seq,))
        return None if row is None else int(row[0])

    def actor_of(self, seq: int) -> str | None:
        """Whose event it was, by its number."""
        row = self._session.row(_ACTOR_OF, (seq,))
        return None if row is None else str(row[0])

    def newest(self) -> int:
        """The highest number so far; what comes to a queue that is locked now will have a higher one."""
        row = self._session.row(_NEWEST)
        return 0 if row is None else int(row[0])

    def steps(self, since: int) -> list[Commit]:
        """What the engine has committed behind a number, oldest first."""
        return [Commit(at, first, int(old), int(new)) for at, first, old, new in self._session.rows(_STEPS, (since,))]

    def after(self, seq: int, limit: int = PAGE_ROWS) -> list[Event]:
        return [_event(row) for row in self._session.rows(_AFTER, (seq, limit))]

    def lines(self) -> Iterator[Line]:
        """The whole journal as it is written."""
        after = 0
        while page := self._session.rows(_LINES, (after, JOURNAL_PAGE_ROWS)):
            yield from (tuple.__new__(Line, row) for row in page)
            after = page[-1][0]

    def tail(self, count: int) -> Iterator[Event]:
        return (_event(row) for row in reversed(self._session.rows(_TAIL, (count,))))


def _event(row: Row) -> Event:
    seq, at, verb, message, source, target, actor, detail = row
    return Event(
        seq=seq,
        time=to_datetime(at),
        verb=verb,
        key=None if message is None else key_text(message),
        source=source,
        target=target,
        by=actor,
        detail=None if detail is None else json.loads(detail),
    )
