"""The sends, remembered messages, conditions and participants of spheres.

A sphere's state is the place of its token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

#: The machine of spheres, and the queues that are its states.
MACHINE = "sphere"
ACTIVE, COMMITTING, ABORTING, COMMITTED, ABORTED = STATES = ("ACTIVE", "COMMITTING", "ABORTING", "COMMITTED", "ABORTED")
#: What spheres remember, and the heartbeats of their owners.
UNDO_QUEUE = "COMP.Q"
ALIVE_QUEUE = "ALIVE.Q"
#: What became of a send: nobody has had it, or nothing undoes it.
WITHDRAWN, STANDS = "withdrawn", "stands"
NODE = "node"  # the moment of a send that stands for all that is made at another node

_ADD = "INSERT INTO spheres (token, id, owner, heartbeat, started, sends) VALUES (?, ?, ?, ?, ?, 0)"
_NUMBER = "UPDATE spheres SET sends = sends + ? WHERE id = ? RETURNING sends - ?"
_ENDS = "UPDATE spheres SET ends = ? WHERE id = ?"
_REASON = "UPDATE spheres SET reason = ? WHERE id = ?"
_COLUMNS = "SELECT s.id, q.name, s.owner, s.heartbeat, s.started, s.sends, s.ends, s.reason, s.token"
_JOINED = """
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1
    JOIN spheres s ON s.token = m.key
"""
_FIND = (
    _COLUMNS
    + """
FROM spheres s JOIN messages m ON m.key = s.token JOIN queues q ON q.id = m.queue
WHERE s.id = ?
"""
)
_IN_STATE = _COLUMNS + _JOINED + "WHERE q.name = ? AND m.position > ? ORDER BY m.position LIMIT ?"
_SLOWEST = "SELECT s.id, s.heartbeat" + _JOINED + "WHERE q.name = ? ORDER BY s.heartbeat DESC, s.id LIMIT 1"
_OWNERS = "SELECT s.owner, count(*)" + _JOINED + "WHERE q.name = ? GROUP BY s.owner"
_OWNED = "SELECT s.id" + _JOINED + "WHERE q.name = ? AND s.owner = ? ORDER BY m.position"
_OVERDUE = "SELECT s.id" + _JOINED + "WHERE q.name = 'COMMITTING' AND s.ends < ?"
_REQUIRING = """
SELECT DISTINCT r.sphere
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1
    JOIN spheres s ON s.token = m.key JOIN requirements r ON r.sphere = s.id
WHERE q.name = 'ACTIVE' AND r.since + r.within < ?
"""
_BEATS = """
SELECT m.body, coalesce(b.beats, 0), coalesce(b.at, m.created), m.key
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1 LEFT JOIN beats b ON b.owner = m.body
WHERE q.name = 'ALIVE.Q'
"""
_BEAT = """
INSERT INTO beats (owner, beats, at) VALUES (?, 1, ?)
ON CONFLICT (owner) DO UPDATE SET beats = beats.beats + 1, at = excluded.at
"""
_BEATEN = "SELECT beats FROM beats WHERE owner = ?"
_STILL = "DELETE FROM beats WHERE owner = ?"
_SEND = """
INSERT INTO sends (sphere, number, moment, recipient, message, queue, remembered, target, kept, sent, maker)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SENDS = """
SELECT sphere, number, moment, recipient, message, queue, remembered, target, kept, sent, received, processed,
    outcome, why, maker, used
FROM sends
"""
_OPEN_SENDS = _SENDS + "WHERE sphere = ? AND outcome IS NULL ORDER BY number DESC"
_ALL_SENDS = _SENDS + "WHERE sphere = ? ORDER BY number"
_NODES = "SELECT recipient FROM sends WHERE sphere = ? AND moment = 'node' AND outcome IS NULL ORDER BY number"
_SENT = _SENDS + "WHERE message = ? AND moment = 'now'"
_ORIGIN = _SENDS + "WHERE (message = ? AND moment = 'now') OR remembered = ?"
_OUTCOME = "UPDATE sends SET outcome = ?, why = ? WHERE sphere = ? AND number = ?"
_DELIVERED = "UPDATE sends SET remembered = ? WHERE sphere = ? AND number = ?"
_RECEIVED = "UPDATE sends SET received = coalesce(received, ?) WHERE message = ? AND moment = 'now'"
_PROCESSED = """
UPDATE sends SET received = coalesce(received, ?), processed = coalesce(processed, ?)
WHERE message = ? AND moment = 'now'
"""
_USED = """
UPDATE sends SET received = coalesce(received, ?), processed = coalesce(processed, ?), used = 1
WHERE message = ? AND moment = 'now'
"""
_UNSAY = "UPDATE sends SET received = NULL, processed = NULL WHERE sphere = ? AND number = ?"
_LEAVE = "DELETE FROM parts WHERE sphere = ? AND message = ?"
_REQUIRE = """
INSERT INTO requirements (sphere, number, recipients, processing, enough, since, within)
SELECT ?, count(*), ?, ?, ?, ?, ? FROM requirements WHERE sphere = ?
"""
_REQUIREMENTS = """
SELECT recipients, processing, enough, since, within FROM requirements WHERE sphere = ? ORDER BY number
"""
_JOIN = "INSERT INTO parts (sphere, message, owner, heartbeat, done) VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING"
_DONE = "UPDATE parts SET done = 1 WHERE sphere = ? AND message = ?"
_PARTS = "SELECT message, owner, done FROM parts WHERE sphere = ? ORDER BY message"
_PART_OWNERS = """
SELECT p.owner, p.sphere, p.heartbeat
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1
    JOIN spheres s ON s.token = m.key JOIN parts p ON p.sphere = s.id AND p.done = 0
WHERE q.name = ?
"""
_BRANCH = "INSERT INTO branches (branch, sphere, place) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_IN_DOUBT = """
SELECT b.branch, coalesce(b.place, ''), s.id, q.name, s.owner
FROM branches b JOIN spheres s ON s.id = b.sphere JOIN messages m ON m.key = s.token JOIN queues q ON q.id = m.queue
WHERE q.name IN ('COMMITTED', 'ABORTING', 'ABORTED') ORDER BY s.id, b.branch
"""
_SPHERE_OF = "SELECT sphere FROM branches WHERE branch = ?"
_FORGET_BRANCH = "DELETE FROM branches WHERE branch = ?"
_CHECK = """
INSERT INTO checks (engine, microseconds) VALUES (?, ?)
ON CONFLICT (engine) DO UPDATE SET microseconds = excluded.microseconds
"""
_CHECKED = "SELECT microseconds FROM checks WHERE engine = 'compensation'"


class Kept(NamedTuple):
    """A sphere as stored."""

    id: str
    state: str
    owner: str
    heartbeat: int
    started: int
    sends: int
    ends: int | None  # when its commit times out
    reason: str | None
    token: int


class Beat(NamedTuple):
    beats: int  # how often it has beaten
    at: int  # when it last did, by the store's clock
    key: int  # of its message in ALIVE.Q


class Send(NamedTuple):
    """One send of a sphere, with its outcome."""

    sphere: str
    number: int
    moment: str  # now, commit, abort, return, node
    recipient: str  # the path of the queue, or the name of the node
    message: int | None  # the primary
    queue: int | None  # where it was put
    remembered: int | None  # in COMP.Q
    target: str | None  # the path of the queue that the remembered message is for
    kept: str | None  # where it goes on commit, if it is not discarded
    sent: int
    received: int | None = None
    processed: int | None = None
    outcome: str | None = None
    why: str | None = None
    maker: str | None = None  # the rule, arc, counter or procedure that made the message
    used: int | None = None  # a step of the engine has used it up: what came of it are other sends


class Requirement(NamedTuple):
    recipients: tuple[str, ...]
    processing: bool  # else receipt is enough
    enough: int  # of the recipients
    since: int
    within: int


class Part(NamedTuple):
    message: int
    owner: str
    done: bool


class Doubt(NamedTuple):
    """A database that was prepared, and may not know the outcome of its sphere."""

    branch: str
    place: str  # which database, as it may be shown
    sphere: str
    state: str
    owner: str


class Spheres(StoreTable):
    # --- spheres ---

    def add(self, token: int, id: str, owner: str, heartbeat: int) -> None:
        self._session.run(_ADD, (token, id, owner, heartbeat, self._session.now))

    def find(self, id: str) -> Kept | None:
        return self._session.one(Kept._make, _FIND, (id,))

    def in_state(self, state: str, after: int, limit: int) -> list[Kept]:
        """The spheres in a state, in order of arrival there, after a journal number."""
        return [Kept(*row) for row in self._session.rows(_IN_STATE, (state, after, limit))]

    def commit_by(self, id: str, ends: int) -> None:
        self._session.run(_ENDS, (ends, id))

    def set_reason(self, id: str, reason: str) -> None:
        self._session.run(_REASON, (reason, id))

    # --- owners ---

    def owners(self, state: str) -> dict[str, int]:
        """The owners of spheres in a state, with counts."""
        return dict(self._session.rows(_OWNERS, (state,)))

    def slowest(self, state: str) -> tuple[str, int] | None:
        """The slowest heartbeat of spheres in a state, and the sphere."""
        return self._session.one(lambda row: (row[0], row[1]), _SLOWEST, (state,))

    def owned(self, state: str, owner: str) -> list[str]:
        return [row[0] for row in self._session.rows(_OWNED, (state, owner))]

    def beats(self) -> dict[str, Beat]:
        """The heartbeat of every owner."""
        return {owner: Beat(*rest) for owner, *rest in self._session.rows(_BEATS)}

    def beat(self, owner: str) -> None:
        """Count a heartbeat of an owner; changes only that owner's row."""
        self._session.run(_BEAT, (owner, self._session.now))

    def beaten(self, owner: str) -> int:
        """The number of an owner's heartbeats."""
        return self._session.value(_BEATEN, (owner,)) or 0

    def still(self, owner: str) -> None:
        """Remove an owner's heartbeat."""
        self._session.run(_STILL, (owner,))

    def announce(self, microseconds: int, *, binding: bool = True) -> None:
        """Announce an engine's check interval; ``binding`` for new spheres."""
        self._session.run(_CHECK, ("compensation" if binding else "one check", microseconds))

    def announced(self) -> int | None:
        return self._session.value(_CHECKED)

    def overdue(self, moment: int) -> list[str]:
        """Spheres whose commit is overdue."""
        return [row[0] for row in self._session.rows(_OVERDUE, (moment,))]

    # --- sends ---

    def next_send(self, id: str, count: int = 1) -> int:
        """The number of a sphere's next send, or of the next ``count``."""
        return self._session.number(_NUMBER, (count, id, count))

    def remember(self, *sends: Send) -> None:
        """Store new sends."""
        self._session.many(_SEND, [(*send[:10], send.maker) for send in sends])

    def open_sends(self, id: str) -> list[Send]:
        """Unsettled sends, newest first."""
        return [Send(*row) for row in self._session.rows(_OPEN_SENDS, (id,))]

    def sends(self, id: str) -> list[Send]:
        return [Send(*row) for row in self._session.rows(_ALL_SENDS, (id,))]

    def nodes(self, id: str) -> list[str]:
        """Other nodes where something may have been made in an unsettled sphere."""
        return [row[0] for row in self._session.rows(_NODES, (id,))]

    def sent(self, message: int) -> Send | None:
        """The send of a message; None if no sphere has sent it."""
        return self._session.one(Send._make, _SENT, (message,))

    def origin(self, message: int) -> Send | None:
        """The send of a message, or the one that it compensates."""
        return self._session.one(Send._make, _ORIGIN, (message, message))

    def delivered_as(self, send: Send, key: int) -> None:
        """A remembered message was delivered under another key."""
        self._session.run(_DELIVERED, (key, send.sphere, send.number))

    def unsay(self, send: Send) -> None:
        """A recipient has returned its message: its acknowledgements and participation are removed."""
        self._session.run(_UNSAY, (send.sphere, send.number))
        self._session.run(_LEAVE, (send.sphere, send.message))

    def settle(self, send: Send, outcome: str | None, why: str | None = None) -> None:
        """Record the outcome of a send; None if it is pending, with the reason."""
        self._session.run(_OUTCOME, (outcome, why, send.sphere, send.number))

    def received(self, messages: Iterable[int]) -> int:
        """Record that recipients have received messages; returns how many of them a sphere has sent."""
        now = self._session.now
        return self._session.many(_RECEIVED, [(now, key) for key in messages])

    def processed(self, messages: Iterable[int]) -> int:
        """Record that recipients have processed messages."""
        now = self._session.now
        return self._session.many(_PROCESSED, [(now, now, key) for key in messages])

    def used(self, messages: Iterable[int]) -> int:
        """Record that engine steps have processed messages."""
        now = self._session.now
        return self._session.many(_USED, [(now, now, key) for key in messages])

    # --- conditions ---

    def require(self, id: str, recipients: Sequence[str], processing: bool, enough: int, within: int) -> None:
        names = json.dumps(list(recipients), ensure_ascii=False)
        self._session.run(_REQUIRE, (id, names, int(processing), enough, self._session.now, within, id))

    def requirements(self, id: str) -> list[Requirement]:
        rows = self._session.rows(_REQUIREMENTS, (id,))
        return [Requirement(tuple(json.loads(names)), bool(processing), *rest) for names, processing, *rest in rows]

    def requiring(self, moment: int) -> list[str]:
        """Active spheres with a condition whose time may be over."""
        return [row[0] for row in self._session.rows(_REQUIRING, (moment,))]

    # --- who takes part ---

    def join(self, id: str, message: int, owner: str, heartbeat: int) -> bool:
        return self._session.run(_JOIN, (id, message, owner, heartbeat)) == 1

    def done(self, id: str, message: int) -> None:
        self._session.run(_DONE, (id, message))

    def parts(self, id: str) -> list[Part]:
        rows = self._session.rows(_PARTS, (id,))
        return [Part(message, owner, bool(done)) for message, owner, done in rows]

    def part_owners(self, state: str) -> list[tuple[str, str, int]]:
        """Unfinished participants of spheres in a state: owner, sphere, heartbeat."""
        return [(row[0], row[1], row[2]) for row in self._session.rows(_PART_OWNERS, (state,))]

    def add_branches(self, id: str, shares: Iterable[tuple[str, str]]) -> None:
        """Store the branches of databases, each with its place."""
        self._session.many(_BRANCH, [(branch, id, place) for branch, place in shares])

    def in_doubt(self) -> list[Doubt]:
        """Branches of decided spheres that were not reported as ended."""
        return [Doubt(*row) for row in self._session.rows(_IN_DOUBT)]

    def sphere_of(self, branch: str) -> str | None:
        return self._session.value(_SPHERE_OF, (branch,))

    def forget_branches(self, branches: Iterable[str]) -> None:
        self._session.many(_FORGET_BRANCH, [(branch,) for branch in branches])
