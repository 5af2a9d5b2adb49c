"""Queues: each is a row, not a table.

On SQLite, messages are numbered in arrival order per queue. The row counts departures, and the newest waiting message
has the number of arrivals: so a count is one lookup at any size, and a send does not update the queue's row. On
PostgreSQL, counts are the queue's last tally plus later changes (decision 0054).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import IntEnum, IntFlag
from typing import NamedTuple

from postroom.errors import QueueWatched, StateTaken, StoreCorrupt
from postroom.store.kernel.journal import Journal, JournaledTable
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.session import Row, Session
from postroom.store.kernel.statement import GREATEST, TEXTS, Statement

#: Where errors go that nothing else takes. It is always there, and no rule may watch it: so errors of errors end.
SYSTEM_ERRORS = "postroom-errors"
MEND = "postroom mend sets right what the rest of the store knows"  # advice with what is damaged


class Unshared(Exception):
    """A queue that is shared must be had alone; nothing happened, and the work is to be repeated so."""


class Hold(IntEnum):
    """What a held queue refuses, ordered: statements compare with FULL, at which nothing is delivered."""

    NONE = 0
    INPUT = 1  # accepts nothing, still releases (the ANSI meaning of DISABLE INPUT)
    FULL = 2  # neither accepts nor releases (the Multics meaning)
    OUTPUT = 3  # accepts, releases nothing (the ANSI meaning of DISABLE OUTPUT)

    @property
    def label(self) -> str:
        """In words; empty if it is not on hold."""
        return ("", "input only", "full", "output only")[self]

    @property
    def accepts(self) -> bool:
        """Whether messages may be sent there."""
        return self in (Hold.NONE, Hold.OUTPUT)

    @property
    def releases(self) -> bool:
        """Whether its messages may be received."""
        return self < Hold.FULL


class Keep(IntEnum):
    """What happens to a processed message."""

    NOTHING = 0
    ALL = 1  # history: until someone changes the mode
    SLICED = 2  # as long as a slice holds it, and then until the next sweep


#: Kinds of queues that only their own capability takes messages from: whoever has the desk has what lies on it.
STATION, MAILBOX, LEAVING, STATE, UNDO, ALIVE = OWNED = ("station", "mailbox", "leaving", "state", "undo", "alive")
META_SPACE, PARKED = "meta", "parked"
#: And all that only it puts messages into.
CLOSED = (META_SPACE, PARKED, *OWNED)


class Admission(IntFlag):
    """Which capability admits a queue's messages."""

    RULES = 1
    FLOWS = 2
    SENDING = 4  # nobody: but each message gets a row of the outbox as it enters, and is sent to a partner


class Queue(NamedTuple):
    """A queue as it was read, with its segment lock."""

    id: int
    name: str
    kind: str
    path: str
    ordinal: int
    keep: int
    hold: int
    retired: int
    command: str | None
    command_seconds: int | None  # that it may take; None is the common limit
    arrivals: int  # how many ever came; the number of the newest
    departed: int
    processed: int  # how many of the departed are kept here
    admission: int  # who works on what is sent here before it is let in
    lock_owner: str | None = None
    lock_actor: str | None = None
    lock_reference: str | None = None
    lock_message: int | None = None
    lock_segment: int | None = None
    lock_expires: int | None = None
    lock_char: int | None = None  # how many characters of the message were given out

    @property
    def unprocessed(self) -> int:
        return self.arrivals - self.departed

    @property
    def accepts(self) -> bool:
        """Whether it accepts messages, by its hold."""
        return Hold(self.hold).accepts

    @property
    def releases(self) -> bool:
        """Whether it delivers messages, by its hold."""
        return Hold(self.hold).releases

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))

    def in_use(self, now: int) -> bool:
        """Whether it is locked by a segmented read. A lock ends with its owner or its lease."""
        return self.lock_owner is not None and (self.lock_expires or 0) > now and is_alive(self.lock_owner) is not False


def _read(row: Row) -> Queue:
    """A queue from its row; raises if that is damaged."""
    id, name, kind, path, ordinal, keep, hold, retired, command, _, arrivals, departed, processed, admission, *_ = row
    numbers = (id, ordinal, keep, hold, retired, arrivals, departed, processed, admission)
    fits = all(isinstance(number, int) for number in numbers) and all(
        isinstance(text, str) and text.isprintable() for text in (name, kind, path, command or "")
    )
    if not (fits and 0 <= hold <= 3 and 0 <= keep <= 2 and 0 <= retired <= 1):
        raise StoreCorrupt(why=f"the row of queue {id} ({name!a}) is invalid")
    return Queue(*row)


#: How many ever came to a queue, and of PostgreSQL's queues ``TALLIED`` behind them.
ARRIVALS = Statement(
    """max(q.arrived, coalesce((
    SELECT m.number FROM messages m WHERE m.queue = q.id AND m.state = 1 ORDER BY m.position DESC LIMIT 1
), 0))""",
    "t.arrived + i.came + o.passed + e.passing",
)
DEPARTED = Statement("q.departed", "t.departed + o.gone + e.lent")
PROCESSED = Statement("q.processed", "t.processed + o.gone")
TALLIED = Statement(
    "",
    """
CROSS JOIN LATERAL (
    SELECT coalesce(max(n.upto), 0) AS upto, coalesce(max(n.arrived), 0) AS arrived,
           coalesce(max(n.departed), 0) AS departed, coalesce(max(n.processed), 0) AS processed,
           coalesce(max(n.low), 0) AS low
    FROM (SELECT * FROM tallies WHERE queue = q.id ORDER BY upto DESC LIMIT 1) n
) t
CROSS JOIN LATERAL (
    SELECT count(*) AS came FROM messages m WHERE m.queue = q.id AND m.state = 1 AND m.position > t.upto
) i
CROSS JOIN LATERAL (
    SELECT count(*) AS gone, count(*) FILTER (WHERE m.number > t.upto) AS passed
    FROM messages m WHERE m.queue = q.id AND m.state = 0 AND m.position > t.upto
) o
CROSS JOIN LATERAL (
    SELECT count(*) AS lent, count(*) FILTER (WHERE m.position > t.upto) AS passing
    FROM messages m WHERE m.queue = q.id AND m.state = -2 AND m.position > t.low
) e
""",
)
_COLUMNS = (
    """
SELECT q.id, q.name, q.kind, q.path, q.ordinal, q.keep, q.hold, q.retired, q.command, q.command_seconds, """
    + ARRIVALS
    + ", "
    + DEPARTED
    + ", "
    + PROCESSED
    + """, q.door, l.owner, l.actor, l.reference, l.message, l.segment, l.expires, l.current_char
FROM queues q LEFT JOIN locks l ON l.queue = q.id
"""
    + TALLIED
)
_ALONE = Statement("", "postroom_lock")  # the function that keeps all others away until the commit
_LOCK_NAME = "SELECT " + _ALONE + "(id) FROM queues WHERE name = ?"
# In the order of ids, before any lock is taken.
_SORTED = Statement("", " OFFSET 0")
_LOCK_NAMES = (
    "SELECT " + _ALONE + "(s.id) FROM (SELECT id FROM queues WHERE name IN " + TEXTS + " ORDER BY id" + _SORTED + ") s"
)
# Whether it puts messages there, and whether it takes some.
_SHARABLE = Statement("", "SELECT postroom_sharable(?, ?, ?)")
_SHARE = Statement("", "SELECT postroom_share(?, ?, ?)")
_SETTLE = Statement("SELECT ?", "SELECT postroom_settle(?)")
LOCK_ID = "SELECT " + _ALONE + "(id) FROM queues WHERE id = ?"
_BY_NAME = _COLUMNS + "WHERE q.name = ?"
_BY_NAMES = _COLUMNS + "WHERE q.name IN " + TEXTS
_BY_ID = _COLUMNS + "WHERE q.id = ?"
_BY_PATH = _COLUMNS + "WHERE q.path = ? AND q.retired = 0"
_BELOW = _COLUMNS + "WHERE q.path >= ? AND q.path < ? AND q.retired = 0 ORDER BY q.ordinal, q.id"
_ALL = _COLUMNS + "WHERE q.retired = 0 ORDER BY q.ordinal, q.id"
_OF_KIND = _COLUMNS + "WHERE q.kind = ? ORDER BY q.ordinal, q.id"
_KIND = "SELECT kind FROM queues WHERE name = ?"
_OWN = "SELECT count(*) FROM queues WHERE name IN " + TEXTS + " AND kind = ? AND retired = 0"
_NAMES = "SELECT name, path FROM queues WHERE retired = 0 ORDER BY ordinal, id"
_OPEN_NAMES = "SELECT name FROM queues WHERE retired = 0 AND kind NOT IN (?, ?, ?, ?, ?, ?, ?, ?) ORDER BY ordinal, id"
_INSERT = """
INSERT INTO queues (name, kind, path, ordinal, keep, hold, retired, command, command_seconds, arrived, departed,
    processed)
VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, 0, 0, 0) RETURNING id
"""
_EVOLVE = "UPDATE queues SET path = ?, ordinal = ?, command = ?, command_seconds = ?, retired = 0 WHERE id = ?"
_RETIRE = "UPDATE queues SET retired = 1, command = NULL, command_seconds = NULL WHERE id = ?"
_HOLD = "UPDATE queues SET hold = ? WHERE id = ?"
_SET_ADMISSION = "UPDATE queues SET door = ? WHERE id = ?"
_KEEP = "UPDATE queues SET keep = ? WHERE id = ?"
COUNT = (
    "UPDATE queues SET departed = departed + ?, processed = processed + ?, arrived = "
    + GREATEST
    + "(arrived, ?) WHERE id = ?"
)
_TALLY = Statement("", "SELECT postroom_tally(?, ?, ?, ?)")
_LOCK = """
INSERT INTO locks (queue, owner, actor, reference, message, segment, expires, current_char)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET owner = excluded.owner, actor = excluded.actor, reference = excluded.reference,
    message = excluded.message, segment = excluded.segment, expires = excluded.expires,
    current_char = excluded.current_char
"""
UNLOCK = "DELETE FROM locks WHERE queue = ?"
_WATCHER = "SELECT watcher FROM watchers WHERE queue = ?"
_WATCH = "INSERT INTO watchers (queue, watcher) VALUES (?, ?)"
_UNWATCH = "DELETE FROM watchers WHERE queue = ?"
_LOCKED_BY = _COLUMNS + "WHERE l.owner = ? ORDER BY q.id"


class Queues(JournaledTable):
    def __init__(self, session: Session, journal: Journal) -> None:
        super().__init__(session, journal)
        self._shared: dict[int, str] = {}  # the names of the queues that this transaction shares

    def clear(self) -> None:
        """Forget what an earlier transaction shared."""
        self._shared.clear()

    # --- finding ---

    def named(self, name: str) -> Queue | None:
        """The queue of a physical name, its row locked for this transaction."""
        self._check_alone(name in self._shared.values())
        # No row, no lock: one that appears in between is not ours to number messages in.
        return self.named_to_read(name) if self._session.lock(_LOCK_NAME, name) else None

    def named_to_read(self, name: str) -> Queue | None:
        row = self._session.row(_BY_NAME, (name,))
        if row is not None and row[1] != name:
            raise StoreCorrupt(why=f"an index leads from {name} to the queue {row[1]!a}. {MEND}")
        return None if row is None else _read(row)

    def locked(self, id: int) -> Queue:
        """The queue read again, its row locked for this transaction."""
        self._check_alone(id in self._shared)
        self._session.lock(LOCK_ID, id)
        return self.to_read(id)

    def to_read(self, id: int) -> Queue:
        """The queue read again, without a lock."""
        row = self._session.row(_BY_ID, (id,))
        if row is None:  # rows are retired, never deleted
            raise StoreCorrupt(why=f"the row of queue {id} is missing")
        return _read(row)

    def can_share(self, id: int, *, puts: bool, takes: bool) -> bool:
        """Whether a step may share a queue with those who send and receive; it may change until it is shared."""
        return self._session.shares_queues and bool(self._session.value(_SHARABLE, (id, puts, takes)))

    def shared(self, id: int, *, puts: bool, takes: bool) -> Queue:
        """The queue read again, shared until the commit: to put messages there, to take waiting ones, or both.

        What is looked at in a queue stays as it is, but messages come and go: a count is not to be relied on, and each
        take must find its message. Raises ``Unshared`` if the queue must be had alone.
        """
        if not self._session.value(_SHARE, (id, puts, takes)):
            raise Unshared
        queue = self.to_read(id)
        self._shared[id] = queue.name
        return queue

    def is_shared(self, id: int) -> bool:
        return id in self._shared

    def _check_alone(self, shared: bool) -> None:
        """Raise if a queue is shared that someone wants to have alone: two who did that would wait for each other."""
        if shared:
            raise Unshared

    def settled(self, id: int) -> Queue:
        """The queue read again after all concurrent sends have ended, so that none is missed."""
        self._check_alone(id in self._shared)
        self._session.lock(_SETTLE, id)
        return self.to_read(id)

    def locked_all(self, names: Iterable[str]) -> dict[str, Queue]:
        """The existing queues of these names, locked in id order to avoid deadlocks."""
        wanted = list(names)
        self._check_alone(not set(self._shared.values()).isdisjoint(wanted))
        asked = json.dumps(wanted, ensure_ascii=False)
        self._session.lock(_LOCK_NAMES, asked)
        return {row[1]: _read(row) for row in self._session.rows(_BY_NAMES, (asked,))}

    def kind(self, name: str) -> str | None:
        return self._session.value(_KIND, (name,))

    def below(self, path: str) -> list[Queue]:
        """The queue at a symbolic path, or all queues under it, in the order of definition."""
        exact = self._session.row(_BY_PATH, (path,))
        if exact is not None and exact[3] != path:
            raise StoreCorrupt(why=f"an index leads from {path} to the queue {exact[1]!a}. {MEND}")
        if exact is not None:
            return [_read(exact)]
        # "0" is the character after "/": the range holds exactly the paths that start with path + "/".
        return [_read(row) for row in self._session.rows(_BELOW, (path + "/", path + "0"))]

    def all(self) -> list[Queue]:
        return [_read(row) for row in self._session.rows(_ALL)]

    def of_kind(self, kind: str) -> list[Queue]:
        """The queues of a kind, including retired ones: a queue that comes back keeps its history."""
        return [_read(row) for row in self._session.rows(_OF_KIND, (kind,))]

    def names(self) -> list[tuple[str, str]]:
        """Every name and path, for suggestions and completion."""
        return [(row[0], row[1]) for row in self._session.rows(_NAMES)]

    def open_names(self) -> list[str]:
        """The names of all queues that accept messages from anyone."""
        return [row[0] for row in self._session.rows(_OPEN_NAMES, CLOSED)]

    def locked_by(self, owner: str) -> list[Queue]:
        return [_read(row) for row in self._session.rows(_LOCKED_BY, (owner,))]

    # --- changing ---

    def create(
        self,
        name: str,
        kind: str,
        *,
        path: str,
        ordinal: int = 0,
        keep: int = Keep.ALL,
        command: str | None = None,
        command_seconds: int | None = None,
    ) -> int:
        id = self._session.number(_INSERT, (name, kind, path, ordinal, int(keep), command, command_seconds))
        about = {"name": name, "kind": kind, "path": path, "ordinal": ordinal, "keep": int(keep), "command": command}
        about |= _limit_of(command_seconds)
        self._journal.add("create-queue", target=id, detail=about)
        return id

    def made(self, name: str, kind: str, keep: Keep = Keep.ALL) -> Queue:
        """The queue of a name, of any kind, locked; created if missing."""
        queue = self.named(name)
        if queue is None:
            self.create(name, kind, path=name, keep=keep)
            queue = self.named(name)
            assert queue is not None
        return queue

    def own(self, name: str, kind: str, keep: Keep = Keep.ALL) -> Queue:
        """A queue owned by a capability, locked; created if missing."""
        queue = self.made(name, kind, keep)
        if queue.kind != kind or queue.retired:
            raise StateTaken(queue=name)
        return queue

    def has_own(self, names: Sequence[str], kind: str) -> bool:
        """Whether all of these exist."""
        return self._session.number(_OWN, (json.dumps(names, ensure_ascii=False), kind)) == len(names)

    def evolve(
        self, queue: Queue, *, path: str, ordinal: int, command: str | None, command_seconds: int | None = None
    ) -> None:
        present = (queue.path, queue.ordinal, queue.command, queue.command_seconds, queue.retired)
        if present != (path, ordinal, command, command_seconds, 0):
            self._session.run(_EVOLVE, (path, ordinal, command, command_seconds, queue.id))
            about = {"path": path, "ordinal": ordinal, "command": command, **_limit_of(command_seconds)}
            self._journal.add("change-queue", target=queue.id, detail=about)

    def retire(self, queue: Queue) -> None:
        """Retire a queue; its history stays readable under its physical name."""
        self._session.run(_RETIRE, (queue.id,))
        self._journal.add("retire-queue", source=queue.id)

    def hold(self, queue: Queue, hold: Hold) -> None:
        self._session.run(_HOLD, (int(hold), queue.id))
        self._journal.add("hold" if hold else "release", target=queue.id, detail={"hold": hold.label} if hold else None)

    def keep_processed(self, queue: Queue, keep: bool) -> None:
        self._session.run(_KEEP, (int(keep), queue.id))
        self._journal.add("mode", target=queue.id, detail={"processed": "keep" if keep else "discard"})

    def set_admission(self, queue: Queue, by: Admission, wanted: bool) -> None:
        """Set or clear a capability's admission for a queue."""
        admission = queue.admission | by if wanted else queue.admission & ~by
        if admission != queue.admission:
            self._session.run(_SET_ADMISSION, (admission, queue.id))
            self._journal.add("door", target=queue.id, detail={"doors": int(admission)})

    def watcher(self, queue: Queue) -> str | None:
        """The capability whose steps take the messages of a queue."""
        return self._session.value(_WATCHER, (queue.id,))

    def set_watcher(self, queue: Queue, watcher: str, wanted: bool) -> None:
        """Set or clear the capability whose steps take a queue's messages; another's setting stays."""
        present = self.watcher(queue)
        ours = present is not None and present.split()[0] == watcher.split()[0]  # "arcs", or "arcs with state"
        if wanted and present is not None and not ours:
            raise QueueWatched(queue=queue.name, watcher=present, other=watcher)
        if ours and not (wanted and present == watcher):
            self._session.run(_UNWATCH, (queue.id,))
        if wanted and present != watcher:
            self._session.run(_WATCH, (queue.id, watcher))

    def lock(
        self,
        queue: Queue,
        *,
        owner: str,
        actor: str,
        reference: str,
        message: int,
        segment: int,
        expires: int,
        char: int = 0,
    ) -> None:
        """Lock the queue for one user until the last segment of a message, and store the position."""
        self._session.run(_LOCK, (queue.id, owner, actor, reference, message, segment, expires, char))
        self._journal.add_to(message, "segment", queue.id, {"segment": segment})

    def unlock(self, queue: Queue, why: str | None = None) -> None:
        """Unlock a queue; with a reason if its message starts again at the first segment."""
        assert queue.lock_message is not None, f"{queue.name} is not locked"
        self._session.run(UNLOCK, (queue.id,))
        if why is not None:
            self._journal.add_to(queue.lock_message, "unlock", queue.id, {"why": why})

    def count(self, id: int, *, departed: int, processed: int, highest: int) -> None:
        """Record departures, and the highest known arrival number."""
        self._session.run(COUNT, (departed, processed, highest, id))

    def tally(self, id: int, *, arrived: int, departed: int, processed: int) -> None:
        """Record a transaction's changes, where arrivals are not numbered."""
        self._session.run(_TALLY, (id, arrived, departed, processed))


def _limit_of(seconds: int | None) -> dict[str, int]:
    """A command's own time limit, for the journal."""
    return {} if seconds is None else {"command_seconds": seconds}
