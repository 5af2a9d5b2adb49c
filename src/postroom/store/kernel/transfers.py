"""Transfers of messages between two stores, in three idempotent commits.

The message moves to the queue of departing messages, with a transfer number; the other store stores it under that
number, once; then the first one deletes it. Any process may finish a transfer, and a crash at any point leaves the
message in one place.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.model.message import Stored
from postroom.store.kernel.message_rows import STORED, record
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.queues import LEAVING, Queue, Queues
from postroom.store.kernel.session import Row, Session

HANDED_OVER = "handed-over"  # by this line a message leaves the journal of one store for that of another
_LAST_VISIT = "SELECT hop, done FROM visits WHERE message = ? ORDER BY hop DESC LIMIT 1"
_VISIT = "SELECT done FROM visits WHERE message = ? AND hop = ?"
_SET_VISIT = "INSERT INTO visits (message, hop, done) VALUES (?, ?, ?)"
_HAND_OVER = """
INSERT INTO handovers (message, hop, verb, source, target, seen, came) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_SEEN = "UPDATE handovers SET seen = ? WHERE message = ?"
_CONCLUDE = "DELETE FROM handovers WHERE message = ? AND hop = ?"
# The sign keeps the database from beginning with all messages and looking for each among the few that leave.
_PARCELS = (
    f"SELECT {STORED}, h.hop, h.verb, h.source, h.target, h.seen, h.came "
    "FROM handovers h JOIN messages m ON m.key = +h.message JOIN queues q ON q.id = m.queue "
)
_PENDING = _PARCELS + "ORDER BY m.position"
_PARCEL = _PARCELS + "WHERE h.message = ?"


class Parcel(NamedTuple):
    """A message in transit between two stores."""

    hop: int  # the number of the journey: the message's journeys are numbered from 1, whatever their stores
    verb: str
    source: str  # stations
    target: str
    seen: int  # the last query that has met it
    came: int  # the last query at the store that it leaves, when it had come there
    stored: Stored


class Transfers:
    def __init__(self, session: Session, queues: Queues, messages: Messages) -> None:
        self._session = session
        self._queues = queues
        self._messages = messages

    def depart(
        self, stored: Stored, queue: Queue, verb: str, source: str, target: str, seen: int, marks: str | None = None
    ) -> Parcel:
        """The first commit: take a message out of its queue, for a station in another store."""
        leaving = self._leaving()
        here = self._messages.move(stored, queue, leaving, verb, {"from": source, "to": target}, marks)
        hop, came = self._session.row(_LAST_VISIT, (stored.key,)) or (0, 0)
        self._session.run(_HAND_OVER, (stored.key, hop + 1, verb, source, target, seen, came))
        return Parcel(hop + 1, verb, source, target, seen, came, here)

    def noted(self, parcel: Parcel, seen: int) -> Parcel:
        """The parcel with the last query that has seen it, known after it has left."""
        self._session.run(_SEEN, (seen, parcel.stored.key))
        return parcel._replace(seen=seen)

    def arrived(self, parcel: Parcel) -> int | None:
        """The newest query that had run here when this parcel arrived; None if it has not arrived."""
        return self._session.value(_VISIT, (parcel.stored.key, parcel.hop))

    def arrive(self, parcel: Parcel, queue: Queue, done: int) -> Stored:
        """The second commit: store a parcel that has not arrived yet."""
        way = {"from": parcel.source, "to": parcel.target}
        here = self._messages.put_foreign(queue, parcel.stored, parcel.verb, way)
        self._session.run(_SET_VISIT, (here.key, parcel.hop, done))
        return here

    def conclude(self, parcel: Parcel) -> int | None:
        """The third commit: delete an arrived parcel; returns the event, None if that was done already."""
        key = parcel.stored.key
        if self._session.run(_CONCLUDE, (key, parcel.hop)) != 1:
            return None
        return self._messages.let_go(self._leaving(), parcel.stored, HANDED_OVER)

    def pending(self) -> list[Parcel]:
        """The departing messages of this store, in order."""
        return [_parcel(row) for row in self._session.rows(_PENDING)]

    def still_leaving(self, message: int) -> Parcel | None:
        """A departed message that has come back before it was deleted here."""
        return self._session.one(_parcel, _PARCEL, (message,))

    def _leaving(self) -> Queue:
        return self._queues.made(LEAVING, LEAVING)


def _parcel(row: Row) -> Parcel:
    *stored, hop, verb, source, target, seen, came = row
    return Parcel(hop, verb, source, target, seen, came, record(tuple(stored)))
