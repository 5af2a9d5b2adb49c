"""Working sets: each station's position, and the candidates that wait for others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from postroom.limits import CANDIDATE_ROWS
from postroom.store.kernel.session import Row, StoreTable
from postroom.store.kernel.statement import TEXTS

_ALL = "SELECT id, station, edition, turn, own, mail FROM desks ORDER BY id"
_NAMED = "SELECT id, station, edition, turn, own, mail FROM desks WHERE station = ?"
_OPEN = "INSERT INTO desks (station, edition, turn, own, mail) VALUES (?, ?, 0, 0, 0) RETURNING id"
_BEGIN = "UPDATE desks SET edition = ?, turn = 0, own = 0, mail = 0 WHERE id = ?"
_ADVANCE = "UPDATE desks SET turn = ?, own = ?, mail = ? WHERE id = ? AND edition = ?"
_CLOSE = "DELETE FROM desks WHERE id = ?"
_FORGET = "DELETE FROM candidates WHERE desk = ?"
_READMIT = "DELETE FROM withdrawn WHERE desk = ?"
# Which desks have messages behind those that were looked at, in the queues whose names begin so.
_OWN_NEWS, _MAIL_NEWS = (
    f"""
SELECT d.id FROM desks d JOIN queues q ON q.name = ? || d.station
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.queue = q.id AND m.state = 1 AND m.position > d.{looked_at})
"""
    for looked_at in ("own", "mail")
)
_COUNT_NEWS = """
SELECT count(*) FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1 AND m.position > ? WHERE q.name = ?
"""
_ADD = """
INSERT INTO candidates (desk, slot, value, turn, message, position, mail, since, said)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_REMOVE = "DELETE FROM candidates WHERE desk = ? AND slot = ? AND value = ? AND turn = ? AND message = ?"
_REMOVE_REMOTE = "DELETE FROM candidates WHERE desk = ? AND message = ? AND mail = 1"
_CANDIDATES = """
SELECT c.slot, c.value, c.turn, c.message, c.position, c.mail, c.since, c.said, m.position
FROM candidates c LEFT JOIN messages m ON m.key = c.message AND m.state = 1 WHERE c.desk = ? AND """
_OF_SLOT = _CANDIDATES + "c.slot = ? AND c.value "
_LOOK_UP = _OF_SLOT + "= ? AND c.turn > ? ORDER BY c.turn, c.message LIMIT ?"
_LOOK_UP_ALL = _OF_SLOT + "IN " + TEXTS + " ORDER BY c.value, c.turn, c.message LIMIT ?"
_OF_DESK = _CANDIDATES + "(c.turn, c.message) > (?, ?) ORDER BY c.turn, c.message, c.slot LIMIT ?"
_WITHDRAW = """
INSERT INTO withdrawn (desk, message, procedure, position) VALUES (?, ?, ?, ?)
ON CONFLICT (desk, message, procedure) DO UPDATE SET position = excluded.position
"""
_ANY_WITHDRAWN = "SELECT 1 FROM withdrawn WHERE desk = ? LIMIT 1"
_WITHDRAWN = "SELECT procedure, position FROM withdrawn WHERE desk = ? AND message = ?"
_KEEP_WITHDRAWN = "UPDATE withdrawn SET position = ? WHERE desk = ? AND message = ? AND position = ?"
_STALE = """
DELETE FROM candidates WHERE desk = ? AND mail = 0 AND NOT EXISTS (
    SELECT 1 FROM messages m WHERE m.key = candidates.message AND m.state = 1 AND m.position = candidates.position
)
"""
_STALE_WITHDRAWN = """
DELETE FROM withdrawn WHERE desk = ? AND NOT EXISTS (
    SELECT 1 FROM messages m WHERE m.key = withdrawn.message AND m.position = withdrawn.position
)
"""


APART = "\x1f"  # between values; no field holds this character


class Reached(NamedTuple):
    """A station's position: turns, and positions in its two queues."""

    id: int
    station: str
    edition: str
    turn: int
    own: int
    mail: int


class Candidate(NamedTuple):
    """A message that matches a sketch, under a slot where others find it."""

    slot: str
    value: str
    turn: int  # in which it was looked at: who came first is the older one
    message: int
    position: int
    remote: int  # it is mail in another store
    since: int
    values: tuple[str, ...]
    is_there: bool = True  # the message is still where it was


class WorkingSetTable(StoreTable):
    # --- stations ---

    def all(self) -> list[Reached]:
        return [Reached(*row) for row in self._session.rows(_ALL)]

    def named(self, station: str) -> Reached | None:
        return self._session.one(Reached._make, _NAMED, (station,))

    def open(self, station: str, edition: str) -> Reached:
        return Reached(self._session.number(_OPEN, (station, edition)), station, edition, 0, 0, 0)

    def begin(self, desk: Reached, edition: str) -> Reached:
        """Its procedures have changed: examine everything again."""
        self._forget(desk)
        self._session.run(_BEGIN, (edition, desk.id))
        return desk._replace(edition=edition, turn=0, own=0, mail=0)

    def close(self, desk: Reached) -> None:
        """It has no procedures any more."""
        self._forget(desk)
        self._session.run(_CLOSE, (desk.id,))

    def _forget(self, desk: Reached) -> None:
        self._session.run(_FORGET, (desk.id,))
        self._session.run(_READMIT, (desk.id,))

    def advance(self, desk: Reached) -> bool:
        """Store the position; False if the procedures have changed since."""
        return self._session.run(_ADVANCE, (desk.turn, desk.own, desk.mail, desk.id, desk.edition)) == 1

    def with_news(self, prefix: str) -> set[int]:
        """The stations with unexamined messages, in queues whose names begin with ``prefix``."""
        return {row[0] for row in self._session.rows(_OWN_NEWS, (prefix,))}

    def with_mail(self, prefix: str) -> set[int]:
        """The stations with unexamined mail in this store."""
        return {row[0] for row in self._session.rows(_MAIL_NEWS, (prefix,))}

    def count_news(self, queue: str, after: int) -> int:
        """How many messages of a queue are after a position."""
        return self._session.number(_COUNT_NEWS, (after, queue))

    # --- candidates ---

    def add(self, desk: int, candidates: Iterable[Candidate]) -> None:
        self._session.many(_ADD, [(desk, *candidate[:7], APART.join(candidate.values)) for candidate in candidates])

    def remove(self, desk: int, candidates: Iterable[tuple[str, str, int, int]]) -> None:
        """Remove candidates by slot, value, turn and message."""
        self._session.many(_REMOVE, [(desk, *candidate) for candidate in candidates])

    def remove_remote(self, desk: int, messages: Iterable[int]) -> None:
        """Remove mail of another store that was fetched, or is gone."""
        self._session.many(_REMOVE_REMOTE, [(desk, message) for message in messages])

    def look_up(self, desk: int, wanted: Sequence[tuple[str, str, int]]) -> list[list[Candidate]]:
        """The next candidates of each slot and value, after a turn, page by page."""
        answers = self._session.each(_LOOK_UP, [(desk, *slot, CANDIDATE_ROWS) for slot in wanted])
        return [[_candidate(row) for row in rows] for rows in answers]

    def look_up_all(self, desk: int, slot: str, values: Sequence[str], limit: int) -> dict[str, list[Candidate]] | None:
        """All candidates of a slot with any of these values, by value; None if there are more than ``limit``."""
        rows = self._session.rows(_LOOK_UP_ALL, (desk, slot, json.dumps(values), limit + 1))
        if len(rows) > limit:
            return None
        by_value: dict[str, list[Candidate]] = {}
        for row in rows:
            by_value.setdefault(row[1], []).append(_candidate(row))
        return by_value

    def candidates(self, desk: int, after: tuple[int, int], limit: int) -> list[Candidate]:
        """The candidates of a station, oldest first."""
        return [_candidate(row) for row in self._session.rows(_OF_DESK, (desk, *after, limit))]

    # --- what could not be handled ---

    def withdraw(self, desk: int, procedure: str, messages: Iterable[tuple[int, int]]) -> None:
        """Exclude messages, by key and position, from a procedure until they change."""
        self._session.many(_WITHDRAW, [(desk, key, procedure, position) for key, position in messages])

    def withdrawn(self, desk: int, messages: Sequence[int]) -> dict[tuple[str, int], int]:
        """By procedure and message: the position at which it was excluded."""
        if not self.any_withdrawn(desk):
            return {}
        answers = self._session.each(_WITHDRAWN, [(desk, key) for key in messages])
        return {(row[0], key): row[1] for key, rows in zip(messages, answers, strict=True) for row in rows}

    def any_withdrawn(self, desk: int) -> bool:
        return self._session.row(_ANY_WITHDRAWN, (desk,)) is not None

    def keep_withdrawn(self, desk: int, messages: Sequence[tuple[int, int, int]]) -> None:
        """Keep messages excluded that another procedure has moved, by key, old and new position."""
        if messages:
            self._session.many(_KEEP_WITHDRAWN, [(new, desk, key, old) for key, old, new in messages])

    def tidy(self, desk: Reached) -> int:
        """Remove candidates that have moved on; returns how many."""
        self._session.run(_STALE_WITHDRAWN, (desk.id,))
        return self._session.run(_STALE, (desk.id,))


def _candidate(row: Row) -> Candidate:
    slot, value, turn, message, position, remote, since, text, there = row
    values = tuple(text.split(APART)) if text else ()
    is_there = bool(remote) or there == position
    return Candidate(slot, value, turn, message, position, remote, since, values, is_there)
