"""The rows of messages: all statements that write them, and the conversion to ``Stored``.

A deleted message has a row in ``departed``, earlier editions are in ``editions``. These are only parts of a change:
``messages.py`` adds the journal line and the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from operator import attrgetter
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.model.key import key_text
from postroom.model.message import Stored, message_hash
from postroom.store.kernel.session import Row, StoreTable
from postroom.store.kernel.statement import Statement


class State(IntEnum):
    """States in index order: the newest processed message is next to the oldest unprocessed one, so that a receive
    changes one index page and not two."""

    PROCESSED = 0
    UNPROCESSED = 1
    SET_ASIDE = 2  # no longer matches its hash: kept for inspection, never delivered
    RESERVED = -1  # taken by someone who may yet give it back: it keeps its place, and nobody else gets it
    LEASED = -2  # the same for a time, under a number (``deliveries.py``)
    DELAYED = 3  # keeps its place, and waits for its time
    BLOCKED = 4  # keeps its place, and waits for an earlier message of the same key


# --- reading ---


def columns(table: str = "m", **other: str) -> str:
    """The columns of ``Stored`` in order, with a table alias; ``other`` replaces some of them."""
    own = {"queue": "q.name", "last": "coalesce(m.last, m.position)"} if table == "m" else {}
    return ", ".join({**own, **other}.get(name, f"{table}.{name}") for name in Stored._fields)


STORED = columns()
OUTLINE = columns(body="''")
#: From a row with the columns of ``Stored``; the constructor's half cost counts here.
record: Callable[[Row], Stored] = partial(tuple.__new__, Stored)
#: What a message says and is, wherever it stands.
image: Callable[[Stored], Row] = attrgetter("key", "created", "type", "format", "body", "hash", "properties", "cause")


# --- writing ---

#: Of a new message, in this order.
NEW = ("key", "queue", "position", "number", "created", "body", "format", "type", "properties", "hash", "cause")


def insertion(*more: str, position: str = "?") -> str:
    """The statement that inserts a message, with values for ``NEW`` and for ``more`` columns."""
    names = (*NEW, *more)
    values = ", ".join(position if name == "position" else "?" for name in names)
    return f"INSERT INTO messages ({', '.join(names)}) VALUES ({values})"


def processing(state: State = State.UNPROCESSED, position: str = "?") -> str:
    """The statement that marks a message processed: position and time, key and queue."""
    return (
        f"UPDATE messages SET state = 0, position = {position}, last = NULL, processed = ? "
        f"WHERE key = ? AND queue = ? AND state = {state:d}"
    )


def leasing(line: str = "?") -> str:
    """The statement that marks a message leased: line, time, lane, key and queue."""
    return (
        f"UPDATE messages SET state = -2, last = {line}, processed = ?, attempts = attempts + 1, lane = ? "
        "WHERE key = ? AND queue = ? AND state = 1"
    )


def processing_leased(position: str = "?") -> str:
    """Like ``processing``, for a leased message; clears its ordering key."""
    return (
        f"UPDATE messages SET state = 0, position = {position}, last = NULL, processed = ?, lane = NULL "
        "WHERE key = ? AND queue = ? AND state = -2"
    )


def deletion(state: State = State.UNPROCESSED) -> str:
    return f"DELETE FROM messages WHERE key = ? AND queue = ? AND state = {state:d}"


INSERT = insertion()
_INSERT_PROCESSED = insertion("processed", "state")
#: Of a message that comes back: then it is given back.
INSERT_RESERVED = insertion("state")
# Many that differ in their bodies alone, for a database that numbers without gaps: what stands before the first key,
# position and number, and the hashes one behind another.
_INSERT_ALIKE = Statement(
    f"""
    {INSERT.partition(" VALUES ")[0]}
    SELECT ? + c.rowid, ?, ? + c.rowid, ? + c.rowid, ?, c.value, ?, ?, ?, substr(?, 16 * c.rowid - 15, 16), ?
    FROM carray(?) c
    """,
    "",
)
MARK = processing()
#: Of many that were read before: each must be as it was then, by its last line.
_UNCHANGED = " AND coalesce(last, position) = ?"
_MARK_MANY = Statement(
    processing() + _UNCHANGED,
    setwise="""
    UPDATE messages m SET state = 0, position = v.position, last = NULL, processed = v.processed
    FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
        AS v (position, processed, key, queue, last)
    WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1 AND coalesce(m.last, m.position) = v.last
    """,
    several=(
        """
    WITH v (position, processed, key, queue, last) AS (VALUES {rows})
    UPDATE messages SET state = 0, position = v.position, last = NULL, processed = v.processed FROM v
    WHERE messages.key = v.key AND messages.queue = v.queue AND messages.state = 1
        AND coalesce(messages.last, messages.position) = v.last
    """,
        "(?, ?, ?, ?, ?)",
    ),
)
DISCARD = deletion()
_DISCARD_MANY = Statement(
    deletion() + _UNCHANGED,
    setwise="""
    DELETE FROM messages m USING unnest(?::bigint[], ?::bigint[], ?::bigint[]) AS v (key, queue, last)
    WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1 AND coalesce(m.last, m.position) = v.last
    """,
)
MARK_RESERVED = processing(State.RESERVED)
DISCARD = Statement(
    deletion(),
    setwise="""
    DELETE FROM messages m USING unnest(?::bigint[], ?::bigint[]) AS v (key, queue)
    WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1
    """,
)
DISCARD_RESERVED = deletion(State.RESERVED)
MOVE = """
UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, properties = ?, hash = ?,
    attempts = 0, priority = 0, due = NULL, expires = NULL, lane = NULL
WHERE key = ? AND queue = ? AND state = 1
"""
#: The same of a message in any state in which it waits or is leased; it keeps what was asked for it.
MOVE_AWAY = """
UPDATE messages SET queue = ?, state = ?, position = ?, number = ?, last = NULL, processed = NULL, properties = ?,
    hash = ?, attempts = 0, priority = ?, due = ?, expires = ?, lane = NULL
WHERE key = ? AND queue = ? AND state IN (-2, 1, 3, 4)
"""
LEASE = leasing()
#: A leased message waits again: state, line, time if it is delayed, when it is due, its key's lane, attempts.
UNLEASE = """
UPDATE messages SET state = ?, last = ?, processed = ?, due = ?, lane = ?, attempts = ?
WHERE key = ? AND queue = ? AND state = -2
"""
MARK_LEASED = processing_leased()
DISCARD_LEASED = deletion(State.LEASED)
#: A message that waited for its time, or for another, can be received.
FREE = """
UPDATE messages SET state = 1, last = ?, processed = NULL, due = NULL, lane = NULL
WHERE key = ? AND queue = ? AND state = ?
"""
BLOCK = "UPDATE messages SET state = 4, last = ?, lane = ? WHERE key = ? AND queue = ? AND state = 1"
#: What a sender asks for a message: state, priority, when it is due, when it expires.
QUALIFY = "UPDATE messages SET state = ?, priority = ?, due = ?, expires = ? WHERE key = ? AND queue = ? AND state = 1"
#: A message that waits in whatever state goes.
DISCARD_WAITING = "DELETE FROM messages WHERE key = ? AND queue = ? AND state IN (1, 3, 4)"
REWRITE = Statement(
    """
    UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, body = ?, properties = ?, hash = ?
    WHERE key = ? AND queue = ? AND state = 1 AND position = ?
    """,
    several=(
        """
    WITH v (target, place, number, body, properties, hash, key, queue, position) AS (VALUES {rows})
    UPDATE messages SET queue = v.target, position = v.place, number = v.number, last = NULL, body = v.body,
        properties = v.properties, hash = v.hash FROM v
    WHERE messages.key = v.key AND messages.queue = v.queue AND messages.state = 1 AND messages.position = v.position
    """,
        "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
)
SET_ASIDE = "UPDATE messages SET state = 2, position = ?, last = NULL WHERE key = ? AND queue = ? AND state = 1"
RESERVE = "UPDATE messages SET state = -1, last = ?, processed = ? WHERE key = ? AND queue = ? AND state = 1"
#: On PostgreSQL a trigger looks at whoever brings a message back, known by its queue, number or time being set.
GIVE_BACK = """
UPDATE messages SET state = 1, number = number, last = ?, processed = NULL WHERE key = ? AND queue = ? AND state = -1
"""
UNTAKE = """
UPDATE messages SET state = 1, position = ?, number = ?, last = ?, processed = NULL
WHERE key = ? AND queue = ? AND state = 0
"""
_SET_LAST = "UPDATE messages SET last = ? WHERE key = ?"
_SET_PLACE = """
UPDATE messages SET queue = ?, state = ?, position = ?, number = ?, last = ?, processed = ?, attempts = ?, priority = ?,
    due = ?, expires = ?, lane = ? WHERE key = ?
"""
PURGE = "DELETE FROM messages WHERE queue = ? AND state = 0"
_DELETE = "DELETE FROM messages WHERE key = ?"
KEEP_EDITION = "INSERT INTO editions (message, seq, body, properties) VALUES (?, ?, ?, ?)"
_EDITIONS = "SELECT seq, body, properties FROM editions WHERE message = ? ORDER BY seq"

DEPART = "INSERT INTO departed (key, last, cause, type) VALUES (?, ?, ?, ?)"
_DEPARTING = """
INSERT INTO departed (key, last, cause, type) SELECT key, coalesce(last, position), cause, type FROM messages
"""
DEPART_PROCESSED = _DEPARTING + "WHERE queue = ? AND state = 0"
_DEPART_ONE = _DEPARTING + "WHERE key = ?"
RETURN = Statement(
    "DELETE FROM departed WHERE key = ?",
    setwise="DELETE FROM departed d USING unnest(?::bigint[]) AS v (key) WHERE d.key = v.key",
)
_LAST = "SELECT coalesce(last, position) FROM messages WHERE key = ?"
LAST_OF_PROCESSED = "SELECT coalesce(last, position) FROM messages WHERE key = ? AND queue = ? AND state = 0"
LAST_OF_DEPARTED = "SELECT last FROM departed WHERE key = ?"


def arrived(
    key: int,
    queue: str,
    created: int,
    draft: tuple[str, str, str | None, str],
    cause: int | None,
    seq: int,
    number: int,
) -> Stored:
    """A message as its arrival event puts it at the end of a queue."""
    body, form, type, properties = draft
    hash = message_hash(key, created, cause, body, form, type, properties)
    return record((key, queue, created, None, type, form, body, hash, properties, cause, seq, number, seq))


def new_row(queue: int, stored: Stored) -> Row:
    """The values of ``NEW``."""
    key, _, created, _, type, form, body, hash, properties, cause, position, number, _ = stored
    return (key, queue, position, number, created, body, form, type, properties, hash, cause)


def check_one(changed: int, stored: Stored) -> None:
    """Raise unless one row changed: it was read under a lock in this transaction, so only damage can hide it."""
    if changed != 1:
        raise StoreCorrupt(why=f"message {key_text(stored.key)} was found in {stored.queue} and cannot be changed")


class MessageRows(StoreTable):
    # --- many at once, for whoever writes their lines ---

    def insert(self, rows: Iterable[Row]) -> None:
        """Insert messages, each with the values of ``NEW``."""
        self._session.many(INSERT, rows)

    def insert_alike(
        self, queue: int, first: tuple[int, int, int], hashes: Iterable[bytes], column: Any, *has: Any
    ) -> None:
        """Insert messages from a column of bodies, with key, position and number of the first; ``has`` are their common
        columns."""
        key, position, number = first
        created, form, type, properties, cause = has
        shared = (created, form, type, properties, b"".join(hashes), cause)
        self._session.run(_INSERT_ALIKE, (key - 1, queue, position - 1, number - 1, *shared, column))

    def insert_processed(self, rows: Iterable[Row]) -> None:
        """Insert messages that are already processed, with time and state."""
        self._session.many(_INSERT_PROCESSED, rows)

    def mark(self, rows: Sequence[Row]) -> bool:
        """Mark messages processed: position, time, key, queue and last line of each; False if one has changed."""
        return not rows or self._session.many(_MARK_MANY, rows) == len(rows)

    def discard(self, rows: Sequence[Row]) -> bool:
        """Delete messages: key, queue and last line of each; False if one has changed."""
        return not rows or self._session.many(_DISCARD_MANY, rows) == len(rows)

    def depart(self, rows: Iterable[Row]) -> None:
        """Record deleted messages: key, last line, cause and type of each."""
        self._session.many(DEPART, rows)

    def rewrite(self, rows: Sequence[Row]) -> bool:
        """Edit and move messages: the values of ``REWRITE`` of each; False if one is not where it was."""
        return not rows or self._session.many(REWRITE, rows) == len(rows)

    def keep_editions(self, rows: Iterable[Row]) -> None:
        """Store replaced editions: key, event, body and properties."""
        self._session.many(KEEP_EDITION, rows)

    def sweep(self, keys: Iterable[int]) -> None:
        """Delete processed messages."""
        rows = [(key,) for key in keys]
        self._session.many(_DEPART_ONE, rows)
        self._session.many(_DELETE, rows)

    def forget_departed(self, keys: Iterable[int]) -> int:
        """Forget deleted messages; returns how many were known."""
        rows = [(key,) for key in keys]
        return self._session.many(RETURN, rows) if rows else 0

    def set_places(self, rows: Sequence[Row]) -> None:
        """Correct the places of messages: the values of a ``Place`` (``replay.py``), and the key of each."""
        self._session.many(_SET_PLACE, rows)

    # --- one ---

    def editions(self, message: int) -> list[tuple[int, str, str]]:
        """Earlier editions: up to which journal number, body and properties."""
        return [(row[0], row[1], row[2]) for row in self._session.rows(_EDITIONS, (message,))]

    def last_line(self, message: int) -> int | None:
        """The last line of a message, even if it is deleted."""
        return self._session.value(_LAST, (message,)) or self._session.value(LAST_OF_DEPARTED, (message,))

    def set_last_line(self, message: int, seq: int) -> None:
        self._session.run(_SET_LAST, (seq, message))
