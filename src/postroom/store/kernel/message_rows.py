"""The rows of messages: every statement that writes one, and the one way from a row to ``Stored``.

A message that is gone has a row in ``departed``, one that was edited its earlier editions in ``editions``. What stands
here is half of each change: with its line of the journal and the counts of its queue it is a verb of ``messages.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from operator import attrgetter

from postroom.errors import StoreCorrupt
from postroom.model.key import key_text
from postroom.model.message import Stored, message_hash
from postroom.store.kernel.session import Row, Session
from postroom.store.kernel.statement import Statement


class State(IntEnum):
    """In the order of the index: the newest processed message lies beside the oldest unprocessed one.

    So taking a message changes one page of the index and not two.
    """

    PROCESSED = 0
    UNPROCESSED = 1
    SET_ASIDE = 2  # no longer matches its hash: kept for inspection, never delivered
    RESERVED = -1  # taken by someone who may yet give it back: it keeps its place, and nobody else gets it


# --- reading ---


def columns(table: str = "m", **other: str) -> str:
    """The columns of ``Stored`` in its order, of a table by its alias; ``other`` says what stands for one of them."""
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
    """The statement by which a message becomes processed: position and time, key and queue."""
    return (
        f"UPDATE messages SET state = 0, position = {position}, last = NULL, processed = ? "
        f"WHERE key = ? AND queue = ? AND state = {state:d}"
    )


def deletion(state: State = State.UNPROCESSED) -> str:
    return f"DELETE FROM messages WHERE key = ? AND queue = ? AND state = {state:d}"


INSERT = insertion()
_INSERT_PROCESSED = insertion("processed", "state")
INSERT_BACK = insertion("last")
MARK = Statement(
    processing(),
    setwise="""
    UPDATE messages m SET state = 0, position = v.position, last = NULL, processed = v.processed
    FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) AS v (position, processed, key, queue)
    WHERE m.key = v.key AND m.queue = v.queue AND m.state = 1
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
UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, properties = ?, hash = ?
WHERE key = ? AND queue = ? AND state = 1
"""
REWRITE = """
UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, body = ?, properties = ?, hash = ?
WHERE key = ? AND queue = ? AND state = 1 AND position = ?
"""
SET_ASIDE = "UPDATE messages SET state = 2, position = ?, last = NULL WHERE key = ? AND queue = ? AND state = 1"
RESERVE = "UPDATE messages SET state = -1, last = ?, processed = ? WHERE key = ? AND queue = ? AND state = 1"
GIVE_BACK = "UPDATE messages SET state = 1, last = ?, processed = NULL WHERE key = ? AND queue = ? AND state = -1"
UNTAKE = """
UPDATE messages SET state = 1, position = ?, number = ?, last = ?, processed = NULL
WHERE key = ? AND queue = ? AND state = 0
"""
_SET_LAST = "UPDATE messages SET last = ? WHERE key = ?"
_SET_PLACE = """
UPDATE messages SET queue = ?, state = ?, position = ?, number = ?, last = ?, processed = ? WHERE key = ?
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
    """A message as it is by the event that has brought it to the end of a queue; ``draft`` is as a ``Draft``."""
    body, form, type, properties = draft
    hash = message_hash(key, created, cause, body, form, type, properties)
    return record((key, queue, created, None, type, form, body, hash, properties, cause, seq, number, seq))


def new_row(queue: int, stored: Stored) -> Row:
    """The values of ``NEW``."""
    key, _, created, _, type, form, body, hash, properties, cause, position, number, _ = stored
    return (key, queue, position, number, created, body, form, type, properties, hash, cause)


def check_one(changed: int, stored: Stored) -> None:
    """The row was read under a lock in this transaction: only damage can have hidden it since."""
    if changed != 1:
        raise StoreCorrupt(why=f"message {key_text(stored.key)} was found in {stored.queue} and cannot be changed")


class MessageRows:
    def __init__(self, session: Session) -> None:
        self._session = session

    # --- many at once, for whoever writes their lines ---

    def insert(self, rows: Iterable[Row]) -> None:
        """New messages, each with the values of ``NEW``."""
        self._session.many(INSERT, rows)

    def insert_processed(self, rows: Iterable[Row]) -> None:
        """New messages that are processed already, each with the time, too, and its state."""
        self._session.many(_INSERT_PROCESSED, rows)

    def mark(self, rows: Sequence[Row]) -> bool:
        """Make messages processed: position, time, key and queue of each; False if one is not there."""
        return not rows or self._session.many(MARK, rows) == len(rows)

    def discard(self, rows: Sequence[Row]) -> bool:
        """Let messages go: key and queue of each; False if one is not there."""
        return not rows or self._session.many(DISCARD, rows) == len(rows)

    def depart(self, rows: Iterable[Row]) -> None:
        """Note messages that are gone: key, last line, cause and type of each."""
        self._session.many(DEPART, rows)

    def rewrite(self, rows: Sequence[Row]) -> bool:
        """Write and move messages: the values of ``REWRITE`` of each; False if one is not where it was."""
        return not rows or self._session.many(REWRITE, rows) == len(rows)

    def keep_editions(self, rows: Iterable[Row]) -> None:
        """What messages said until an event: key, event, body and properties."""
        self._session.many(KEEP_EDITION, rows)

    def sweep(self, keys: Iterable[int]) -> None:
        """Let processed messages go."""
        rows = [(key,) for key in keys]
        self._session.many(_DEPART_ONE, rows)
        self._session.many(_DELETE, rows)

    def forget_departed(self, keys: Iterable[int]) -> int:
        """Let go what is known of messages that are gone; answers with how many were known."""
        rows = [(key,) for key in keys]
        return self._session.many(RETURN, rows) if rows else 0

    def set_places(self, rows: Sequence[Row]) -> None:
        """Set right where messages are: queue, state, position, number, last line, time and key of each."""
        self._session.many(_SET_PLACE, rows)

    # --- one ---

    def editions(self, message: int) -> list[tuple[int, str, str]]:
        """What a message said before: until which number of the journal, body and properties."""
        return [(row[0], row[1], row[2]) for row in self._session.rows(_EDITIONS, (message,))]

    def last_line(self, message: int) -> int | None:
        """The newest line of a message, which may be gone."""
        return self._session.value(_LAST, (message,)) or self._session.value(LAST_OF_DEPARTED, (message,))

    def set_last_line(self, message: int, seq: int) -> None:
        self._session.run(_SET_LAST, (seq, message))
