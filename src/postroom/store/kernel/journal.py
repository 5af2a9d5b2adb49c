"""The journal: every state change, in the commit that made it. Locate, trace, history and audit read it.

The events of one message are linked: each has the number of the previous one, and the message (or its row in
``departed``) that of the last. So a trace takes time proportional to its length, without a second index. Every line has
a digest, so that verification detects changes (``store/proof/audit.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from postroom.limits import JOURNAL_PAGE_ROWS, PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.moment import to_datetime, to_iso
from postroom.model.place import place_of
from postroom.store.kernel.archives import Archive, Archives
from postroom.store.kernel.columns import JOURNAL, LINE
from postroom.store.kernel.message_rows import MessageRows
from postroom.store.kernel.session import Row, Session, StoreTable
from postroom.store.kernel.statement import Statement

_APPEND_NUMBERED = """
INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, detail, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
APPEND = (
    "INSERT INTO journal (at, verb, message, prior, source, target, actor, detail, digest) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
) + Statement("", " RETURNING seq")
# For a database that numbers without gaps.
_ARRIVED = Statement(
    """
    INSERT INTO journal (seq, at, verb, message, target, actor, digest)
    SELECT position, ?, ?, key, queue, ?, substr(?, 8 * (position - ?) + 1, 8) FROM messages
    WHERE queue = ? AND state = 1 AND position >= ?
    """,
    "",
)
_NEWEST = "SELECT coalesce(max(seq), 0) FROM journal"
_EVENT = "SELECT " + ", ".join(f"j.{name}" for name in JOURNAL) + ", s.name, t.name "
_QUEUES = " LEFT JOIN queues s ON s.id = j.source LEFT JOIN queues t ON t.id = j.target "
_SELECT = _EVENT + "FROM journal j" + _QUEUES
_CHAIN = f"""
WITH RECURSIVE chain (seq, prior) AS (
    SELECT seq, prior FROM journal WHERE seq = ?
    UNION ALL SELECT older.seq, older.prior FROM journal older JOIN chain ON older.seq = chain.prior
)
{_EVENT} FROM chain JOIN journal j ON j.seq = chain.seq {_QUEUES} ORDER BY chain.seq
"""
# All that one commit did has one time. Whoever acts for the engine is called by its kind and its name.
_STEPS = """
SELECT at, min(seq), sum(CASE WHEN verb = 'put' OR verb = 'create' THEN 0 ELSE 1 END),
       sum(CASE WHEN verb = 'put' OR verb = 'create' THEN 1 ELSE 0 END),
       max(CASE WHEN verb = 'take' THEN detail END)
FROM journal WHERE seq > ? AND seq <= ? AND message IS NOT NULL AND (actor = 'engine' OR substr(actor, 1, 5) = 'rule '
    OR substr(actor, 1, 4) = 'arc ' OR substr(actor, 1, 10) = 'procedure ' OR substr(actor, 1, 8) = 'counter ')
GROUP BY at ORDER BY at
"""
_BY_ARCS = """
SELECT substr(actor, 5), q.name, count(*) FROM journal j JOIN queues q ON q.id = j.target
WHERE j.seq > ? AND j.at > ? AND j.verb = 'put' AND substr(actor, 1, 4) = 'arc ' GROUP BY substr(actor, 5), q.name
"""
_FIRST = "SELECT 1 FROM journal WHERE seq = ? AND prior IS NULL"
_SOURCE_OF = "SELECT source FROM journal WHERE seq = ?"
_TIME_OF = "SELECT at FROM journal WHERE seq = ?"
_ACTOR_OF = "SELECT actor FROM journal WHERE seq = ?"
_ONE = _SELECT + "WHERE j.seq = ?"
_AFTER = _SELECT + "WHERE j.seq > ? ORDER BY j.seq LIMIT ?"
_TAIL = _SELECT + "ORDER BY j.seq DESC LIMIT ?"
_LINES = "SELECT " + LINE + " FROM journal WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
_ALL_LINES = "SELECT " + LINE + " FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
_PRIOR = JOURNAL.index("prior")
# Lines of a room that came from PostgreSQL have gaps, and so have those before the line that heartbeats gave way to.
_GAPS = "SELECT coalesce(max(value), 0) FROM counters WHERE name IN ('beats', 'gaps')"
_QUEUE_NAMES = "SELECT id, name FROM queues"

#: By this line a message goes that nobody needs any more, with what it stood for.
FORGET = "forget"
#: What may happen to a message that stays where and as it is. Any other line but ``take``, ``set-aside``, ``reserve``,
#: ``give-back``, ``return`` and those of deliveries (``STAYS``) brings it to the end of its target, or lets it go if
#: there is none.
NOTES = ("segment", "unlock", "dossier", "remove-dossier", "refused", "sent", "not-sent")
#: By these lines a message keeps its place, and is leased, waits for its time or for another, or can be received.
STAYS = ("lease", "release", "lapse", "fail", "due", "block", "unblock")
#: By this line a message that was taken is in its place again.
RETURN = "return"


Id = int | None  # of a message, a line or a queue, if there is one


class Line(NamedTuple):
    """One line, with numbers of queues and messages."""

    seq: int
    at: int
    verb: str
    message: int | None
    prior: int | None
    source: int | None
    target: int | None
    detail: str | None
    actor: str
    digest: bytes | None  # None if the line is older than digests

    @property
    def sound(self) -> bool:
        """Whether the line matches its digest; True for one without a digest."""
        _, at, verb, message, prior, source, target, detail, actor, digest = self
        if digest is None:
            return True
        try:
            if len(digest) == _SERVERS:
                return bytes(digest) == server_digest(at, verb, message, prior, source, target, actor, detail)
            return bytes(digest) == line_digest(at, verb, message, prior, source, target, actor, detail)
        except (UnicodeEncodeError, TypeError, ValueError):  # rot can change a value's very type
            return False


_line: Callable[[Row], Line] = partial(tuple.__new__, Line)  # the constructor's half cost counts here


def line_digest(
    at: int, verb: str, message: Id, prior: Id, source: Id, target: Id, actor: str, detail: str | None = None
) -> bytes:
    """The digest of a line in 8 bytes, without its number, which the database assigns last."""
    digest = empty_digest()
    digest.update(f"{message}\0{prior}\0{at}\0{verb}\0{source}\0{target}\0{actor}\0{detail}".encode())
    return digest.digest()


def server_digest(
    at: int, verb: str, message: Id, prior: Id, source: Id, target: Id, actor: str, detail: str | None = None
) -> bytes:
    """The digest of a line that the database itself writes: PostgreSQL has no BLAKE2.

    It is longer, and so recognisable. Missing columns are left out.
    """
    parts = (message, prior, at, verb, source, target, actor, detail)
    text = "\x1f".join(str(part) for part in parts if part is not None)
    return b"\x01" + sha256(text.encode()).digest()[: _SERVERS - 1]


def put_alike(at: int, target: int, actor: str, verb: str = "put") -> str:
    """The common part of the digests of new messages in one queue, after the key."""
    return f"\0None\0{at}\0{verb}\0None\0{target}\0{actor}\0None"


def digests_of(keys: Iterable[int], alike: str) -> list[bytes]:
    """The digests of lines that differ only in the message."""
    digests, fresh = list[bytes](), empty_digest
    for key in keys:
        digest = fresh()
        digest.update(f"{key}{alike}".encode())
        digests.append(digest.digest())
    return digests


def put_digest(at: int, message: int, target: int, actor: str) -> bytes:
    """The digest of a plain send, optimised."""
    digest = empty_digest()
    digest.update(f"{message}\0None\0{at}\0put\0None\0{target}\0{actor}\0None".encode())
    return digest.digest()


_SERVERS = 9  # bytes of a digest that the database has made
#: An empty digest: a copy takes half the time of a new one.
empty_digest = blake2b(digest_size=8).copy


def numbered(
    seq: int, at: int, verb: str, message: Id, prior: Id, source: Id, target: Id, actor: str, detail: str | None = None
) -> Row:
    """The values of one line with a reserved number, for ``add_lines``."""
    digest = line_digest(at, verb, message, prior, source, target, actor, detail)
    return (seq, at, verb, message, prior, source, target, actor, detail, digest)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the journal."""

    seq: int
    time: datetime
    verb: str
    key: str | None
    source: str | None
    target: str | None
    by: str
    detail: Mapping[str, Any] | None
    damaged: bool = False  # it no longer says what was written, and may not be believed

    def as_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "seq": self.seq,
            "key": self.key,
            "time": to_iso(self.time),
            "verb": self.verb,
            "from": place_of(self.source),
            "to": place_of(self.target),
            "by": self.by,
        }
        if self.detail is not None:
            shape["detail"] = dict(self.detail)
        if self.damaged:
            shape["damaged"] = True
        return shape


class Commit(NamedTuple):
    """What one commit of the engine did."""

    at: int
    first: int  # its first number
    messages: int  # that were processed or moved
    created: int
    evaluated: str  # in which way; empty if that is not known


class Journal:
    def __init__(self, session: Session, actor: str) -> None:
        self._session = session
        self._rows = MessageRows(session)
        self.archives = Archives(session)  # where its older lines are
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
        """Append an event; its number is also the position of a message that arrives with it."""
        session = self._session
        written = None if detail is None else self.detail_text(detail)
        about = (session.now, verb, message, prior, source, target, self.actor, written)
        return session.append(APPEND, (*about, line_digest(*about)))

    @staticmethod
    def detail_text(detail: Mapping[str, Any]) -> str:
        """The detail of a line as text."""
        return json.dumps(detail, ensure_ascii=False, separators=(",", ":"))

    def add_to(self, message: int, verb: str, queue: int, detail: Mapping[str, Any]) -> None:
        """Append an event that does not move the message; one of ``NOTES``."""
        prior = self._rows.last_line(message)
        seq = self.add(verb, message=message, prior=prior, source=queue, target=queue, detail=detail)
        self._rows.set_last_line(message, seq)

    def add_arrivals(self, verb: str, numbers: Sequence[int], keys: Sequence[int], target: int) -> None:
        """Append one event for each of many new messages, with reserved numbers."""
        session, actor = self._session, self.actor
        at = session.now
        alike = put_alike(at, target, actor, verb)  # they differ in the message alone
        digests = digests_of(keys, alike)
        if session.numbers_without_gaps:  # the rows themselves are the lines, and their places those of the digests
            first = numbers[0]
            session.run(_ARRIVED, (at, verb, actor, b"".join(digests), first, target, first))
            return
        lines = zip(numbers, keys, digests, strict=False)
        self.add_lines([(seq, at, verb, key, None, None, target, actor, None, digest) for seq, key, digest in lines])

    def add_lines(self, lines: list[Row]) -> None:
        """Append lines with reserved numbers, as ``numbered`` makes them."""
        self._session.many(_APPEND_NUMBERED, lines)

    def trace(self, message: int) -> list[Event]:
        """The history of one message, oldest first, including archives."""
        last = self._rows.last_line(message)
        rows = [] if last is None else self._session.rows(_CHAIN, (last,))
        behind = rows[0][_PRIOR] if rows else last  # the line before those that are here
        if rows and behind is None:
            return [_event(row) for row in rows]
        end = self.archives.end()
        archived = self._archived(message) if end and (behind is None or behind <= end) else []
        return [*archived, *(_event(row) for row in rows)]

    def _archived(self, message: int) -> list[Event]:
        rows = self.archives.lines_of(message)
        names: dict[int | None, str] = dict(self._session.rows(_QUEUE_NAMES)) if rows else {}
        lines = [Line(*row) for row in rows]
        return [_event((*line, names.get(line.source), names.get(line.target))) for line in lines]

    def attempts(self, message: int) -> int:
        """How often a message was delivered under a lease."""
        return sum(event.verb == "reserve" for event in self.trace(message))

    def last(self, message: int) -> Event | None:
        last = self._rows.last_line(message)
        row = None if last is None else self._session.row(_ONE, (last,))
        if row is not None:
            return _event(row)
        archived = self._archived(message) if self.archives.end() else []
        return archived[-1] if archived else None

    def at(self, seq: int) -> Event | None:
        """One event by its number; None if there is none, or it was archived."""
        return self._session.one(_event, _ONE, (seq,))

    def is_first(self, seq: int) -> bool:
        """Whether a line is the first of its message, so that it was never elsewhere."""
        return self._session.row(_FIRST, (seq,)) is not None

    def source_of(self, seq: int) -> int | None:
        """The queue that a message came from, by the line's number; None if it was new."""
        return self._session.value(_SOURCE_OF, (seq,))

    def time_of(self, seq: int) -> int | None:
        """The time of an event; for an archived one the latest possible time."""
        at = self._session.value(_TIME_OF, (seq,))
        return self.archives.time_of(seq) if at is None else at

    def actor_of(self, seq: int) -> str | None:
        """The actor of an event."""
        return self._session.value(_ACTOR_OF, (seq,))

    def newest(self) -> int:
        """The highest number so far; later arrivals in a locked queue will have a higher one."""
        return self._session.number(_NEWEST)

    def steps(self, since: int, upto: int) -> list[Commit]:
        """The engine's commits after a number, and up to another, oldest first."""
        return [
            Commit(at, first, int(old), int(new), "" if detail is None else json.loads(detail).get("evaluated", ""))
            for at, first, old, new, detail in self._session.rows(_STEPS, (since, upto))
        ]

    def put_by_arcs(self, since: int, at: int) -> dict[tuple[str, str], int]:
        """How many messages each arc has put into each queue, after a number and a time."""
        return {(arc, queue): number for arc, queue, number in self._session.rows(_BY_ARCS, (since, at))}

    def after(self, seq: int, limit: int = PAGE_ROWS) -> list[Event]:
        return [_event(row) for row in self._session.rows(_AFTER, (seq, limit))]

    def next_page(self, seq: int, limit: int) -> tuple[list[Archive], dict[int | None, str], list[Event]]:
        """What follows a number: archives with it and the names of queues, or else the next lines here."""
        archives = [archive for archive in self.archives.all() if archive.last > seq]
        if not archives:
            return [], {}, self.after(seq, limit)
        return archives, dict(self._session.rows(_QUEUE_NAMES)), []

    def lines(self) -> Iterator[Line]:
        """The whole journal except the archived part."""
        return map(_line, self._session.pages(_ALL_LINES, JOURNAL_PAGE_ROWS))

    def gapless(self) -> int | None:
        """The last number after which there are no gaps; None if this database may skip numbers."""
        return self._session.number(_GAPS) if self._session.numbers_without_gaps else None

    def page(self, after: int, last: int, limit: int) -> list[Row]:
        """The next lines up to a number, with all columns."""
        return self._session.rows(_LINES, (after, last, limit))

    def tail(self, count: int) -> Iterator[Event]:
        return (_event(row) for row in reversed(self._session.rows(_TAIL, (count,))))


class JournaledTable(StoreTable):
    """A table whose changes are in the journal."""

    def __init__(self, session: Session, journal: Journal) -> None:
        super().__init__(session)
        self._journal = journal


def archived_events(archives: Iterable[Archive], names: Mapping[int | None, str]) -> Iterator[list[Event]]:
    """All archived events, oldest first, file by file; ``names`` are those of queues."""
    for shelf in (archive.shelf() for archive in archives):
        for rows in shelf.every("lines"):
            lines = (Line(*row) for row in shelf.lines(rows))
            yield [_event((*line, names.get(line.source), names.get(line.target))) for line in lines]


def _event(row: Row) -> Event:
    *columns, source, target = row
    line = Line(*columns)
    if not line.sound:
        return _damaged(line)
    return Event(
        seq=line.seq,
        time=to_datetime(line.at),
        verb=line.verb,
        key=None if line.message is None else key_text(line.message),
        source=source,
        target=target,
        by=line.actor,
        detail=None if line.detail is None else json.loads(line.detail),
    )


def _damaged(line: Line) -> Event:
    """A damaged line as an event, with nothing that a program might rely on."""
    detail = {"was": ascii((line.at, line.verb, line.message, line.source, line.target, line.actor, line.detail))}
    return Event(line.seq, to_datetime(0), "damaged", None, None, None, "", detail, damaged=True)
