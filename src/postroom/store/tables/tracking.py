"""Snapshots for queries over many stores.

A query is opened at a place in one short transaction and read later, repeatedly: old versions of messages that change
or leave are kept as ghosts until the query is closed. The argument for the rules is in
``docs/decisions/0018-movement.md``.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.errors import QueryExpired, QueryOvertaken
from postroom.model.message import Stored
from postroom.model.moment import in_microseconds
from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.message_rows import columns, image, record
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.statement import Statement

STATIONS, MAILBOXES = "stations", "mailboxes"  # the two places of a store; only the control node has mailboxes
_NUMBERED = "numbered"  # at the control node: a query that has its number and is being opened elsewhere
_DONE = {STATIONS: "done stations", MAILBOXES: "done mailboxes"}

# A queue of those who wait, so that whoever opens a query is not passed by ever more writers. SQLite has one writer.
_WITH_OTHERS = Statement("", "SELECT pg_advisory_xact_lock_shared(hashtext(current_schema() || ' ' || ?))")
_ALONE = Statement("", "SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' ' || ?))")
_LAST = "SELECT value FROM counters WHERE name = ?"
_SET_DONE = "UPDATE counters SET value = ? WHERE name = ?"
_NUMBER = "UPDATE counters SET value = value + 1 WHERE name = 'queries' RETURNING value"
_HIDDEN = "SELECT seen FROM hidden WHERE place = ? AND message = ?"
_HIDDEN_FROM = "SELECT message FROM hidden WHERE place = ? AND seen >= ?"
_ANY_HIDDEN = "SELECT 1 FROM hidden LIMIT 1"
_HIDE = """
INSERT INTO hidden (place, message, seen) VALUES (?, ?, ?)
ON CONFLICT (place, message) DO UPDATE SET seen = excluded.seen
"""
_UNHIDE = "DELETE FROM hidden WHERE place = ? AND message = ?"
_FORGET_HIDDEN = "DELETE FROM hidden WHERE place = ? AND seen < ?"
_SHOW = """
INSERT INTO shown (station, seen, until, since, key, created, type, format, body, hash, properties, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_NOWHERE = {"processed": "NULL", "position": "0", "number": "0", "last": "0"}  # an image stands in no queue
_SHOWN = f"""
SELECT {columns("s", queue="s.station", **_NOWHERE)} FROM shown s
WHERE s.seen < ? AND s.until > ? AND s.since <= ? ORDER BY s.id
"""
_FORGET_SHOWN = """
DELETE FROM shown WHERE NOT EXISTS (
    SELECT 1 FROM queries q WHERE q.number > shown.seen AND q.number < shown.until
)
"""
_OPEN = "INSERT INTO queries (number, place, opened, owner, expires) VALUES (?, ?, ?, ?, ?)"
_OPENED = "SELECT opened, expires FROM queries WHERE number = ? AND place = ?"
_RUNNING = "SELECT number, place, opened, owner, expires FROM queries ORDER BY number"
_FIRST = "SELECT min(number), min(opened) FROM queries WHERE place = ?"
_EXPIRED = "DELETE FROM queries WHERE expires < ?"
_CLOSE = "DELETE FROM queries WHERE number = ?"
_LATEST = "SELECT max(expires) FROM queries WHERE place = ?"
_GHOST = """
INSERT INTO ghosts (place, queue, came, gone, seen, key, created, type, format, body, hash, properties, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_GHOSTS = f"""
SELECT {columns("g", queue="q.name", **_NOWHERE)} FROM ghosts g JOIN queues q ON q.id = g.queue
WHERE g.place = ? AND g.came <= ? AND g.gone > ? AND g.seen < ? ORDER BY g.id
"""
_FORGET_GHOSTS = "DELETE FROM ghosts WHERE place = ? AND gone <= ?"
_FORGET_ALL_GHOSTS = "DELETE FROM ghosts WHERE place = ?"


class Running(NamedTuple):
    number: int
    place: str
    opened: int
    owner: str
    expires: int


class Tracking(JournaledTable):
    def number(self, owner: str, seconds: float) -> int:
        """The next query's number, from the control node's store, which records it until it is closed."""
        self._clean(0)
        number = self._session.number(_NUMBER)
        self._session.run(_OPEN, (number, _NUMBERED, 0, owner, self._session.now + in_microseconds(seconds)))
        return number

    def latest(self) -> int:
        """The last query number."""
        return self._last("queries")

    def begin_behind(self, number: int) -> None:
        """For a store that joins a network: queries up to a number did not see it."""
        self._session.run(_SET_DONE, (number, _DONE[STATIONS]))

    def check_numbered(self, number: int) -> None:
        """Raise unless the control node still has a query."""
        self.opened(number, _NUMBERED)

    # --- whoever changes what is at a place ---

    def enter(self, place: str) -> int:
        """Lock a place against new queries until this commit; returns the last one."""
        self._session.lock(_WITH_OTHERS, place)
        return self._last(_DONE[place])

    def _last(self, counter: str) -> int:
        return self._session.number(_LAST, (counter,))

    def exclude(self) -> None:
        """Lock both places exclusively until this commit."""
        for place in (STATIONS, MAILBOXES):
            self._session.lock(_ALONE, place)

    def calm(self) -> bool:
        """Whether no query is open here and all have seen everything: then moves need no tracking."""
        if self._is_read(STATIONS) or self._is_read(MAILBOXES):
            return False
        same = self._last(_DONE[STATIONS]) == self._last(_DONE[MAILBOXES])
        return same and self._session.row(_ANY_HIDDEN) is None

    def leave(self, place: str, stored: Stored, queue: int, gone: int, *, stays: bool = False) -> int:
        """A message leaves or changes; returns the last query that has seen it. ``stored`` is the old version."""
        done = self.enter(place)
        hidden = self._session.value(_HIDDEN, (place, stored.key))
        seen = -1 if hidden is None else hidden
        if self._is_read(place):
            columns = (place, queue, stored.position, gone, seen)
            self._session.run(_GHOST, (*columns, *image(stored)))
        if hidden is not None and not stays:
            self._session.run(_UNHIDE, (place, stored.key))
        return max(done, seen)

    def come(self, place: str, message: int, seen: int) -> int:
        """A message arrives that queries up to ``seen`` have seen; returns the last query that has run here."""
        done = self.enter(place)
        if seen > done:
            self._session.run(_HIDE, (place, message, seen))
        return done

    def show(self, stored: Stored, station: str, seen: int, done: int, since: int) -> None:
        """A message has left the mailboxes for a node: queries that have already read that node find it here."""
        if done > seen:
            self._session.run(_SHOW, (station, seen, done + 1, since, *image(stored)))

    def _is_read(self, place: str) -> bool:
        latest = self._session.value(_LATEST, (place,))
        if latest is None:
            return False
        if latest >= self._session.now:
            return True
        self._clean(0)
        return False

    # --- queries ---

    def open(self, number: int, place: str, owner: str, seconds: float) -> int:
        """Open a query at a place; returns the journal number up to which it reads.

        Raises if a later one has been opened here: queries run everywhere in the same order.
        """
        self._session.lock(_ALONE, place)
        self._clean(number)
        done = self._last(_DONE[place])
        if done >= number:
            raise QueryOvertaken(query=number, by=done)
        self._session.run(_SET_DONE, (number, _DONE[place]))
        opened = self._journal.add("query", detail={"query": number, "place": place})
        expires = self._session.now + in_microseconds(seconds)
        self._session.run(_OPEN, (number, place, opened, owner, expires))
        return opened

    def opened(self, number: int, place: str) -> int:
        """The journal number up to which a query reads; raises if it is not open, because ghosts may be gone."""
        row = self._session.row(_OPENED, (number, place))
        if row is None or row[1] < self._session.now:
            raise QueryExpired(query=number, limit="")
        return int(row[0])

    def hidden_from(self, number: int, place: str) -> set[int]:
        return {row[0] for row in self._session.rows(_HIDDEN_FROM, (place, number))}

    def ghosts(self, number: int, place: str, opened: int) -> list[Stored]:
        """Messages that have changed or left since a query was opened, each with its queue at that time."""
        return list(map(record, self._session.rows(_GHOSTS, (place, opened, opened, number))))

    def shown(self, number: int, opened: int) -> list[Stored]:
        """Messages that have left the mailboxes for nodes already read; ``queue`` is the station."""
        return list(map(record, self._session.rows(_SHOWN, (number, number, opened))))

    def close(self, number: int) -> None:
        """Close a query, and delete the ghosts that only it needed."""
        if self._session.run(_CLOSE, (number,)):
            self._tidy()

    def running(self) -> list[Running]:
        return [Running(*row) for row in self._session.rows(_RUNNING)]

    def _clean(self, number: int) -> None:
        """Close queries that have timed out, or whose process has ended."""
        changed = self._session.run(_EXPIRED, (self._session.now,))
        for query in self.running():
            if query.number != number and is_alive(query.owner) is False:
                changed += self._session.run(_CLOSE, (query.number,))
        if changed:
            self._tidy()

    def _tidy(self) -> None:
        for place in (STATIONS, MAILBOXES):
            done = self.enter(place)  # before the look: a query that is being opened needs what is kept here
            row = self._session.row(_FIRST, (place,))
            first, opened = (None, None) if row is None else row
            if first is None:
                self._session.run(_FORGET_ALL_GHOSTS, (place,))
                self._session.run(_FORGET_HIDDEN, (place, done + 1))
            else:
                self._session.run(_FORGET_GHOSTS, (place, opened))
                self._session.run(_FORGET_HIDDEN, (place, first))
        self._session.run(_FORGET_SHOWN)
