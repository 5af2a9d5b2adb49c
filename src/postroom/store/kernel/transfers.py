"""Messages between queues of one store, and between two stores in three commits, any of which may be repeated.

A message that leaves for another store goes to the queue of those that are leaving, with a number for its journey;
the other store takes it in under that number, once; then the first one lets it go. Whoever finds a message that is
leaving may do the rest: a crash anywhere leaves it where it can be found, and in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from postroom.errors import StoreCorrupt
from postroom.model.key import key_text
from postroom.model.message import Stored, message_hash
from postroom.store.kernel.columns import STORED
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.messages import DEPART, DISCARD, INSERT, check_one
from postroom.store.kernel.queues import LEAVING, Queue, Queues
from postroom.store.kernel.session import Row, Session

_MOVE = """
UPDATE messages SET queue = ?, position = ?, number = ?, last = NULL, properties = ?, hash = ?
WHERE key = ? AND queue = ? AND state = 1
"""
_EDIT = """
UPDATE messages SET body = ?, properties = ?, hash = ?, position = ?, number = ?, last = NULL
WHERE key = ? AND queue = ? AND state = 1
"""
HANDED_OVER = "handed-over"  # by this line a message leaves the journal of one store for that of another
KEEP_EDITION = "INSERT INTO editions (message, seq, body, properties) VALUES (?, ?, ?, ?)"
_EDITIONS = "SELECT seq, body, properties FROM editions WHERE message = ? ORDER BY seq"
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
    "SELECT h.hop, h.verb, h.source, h.target, h.seen, h.came, "
    + STORED
    + """
FROM handovers h JOIN messages m ON m.key = +h.message JOIN queues q ON q.id = m.queue
"""
)
_PENDING = _PARCELS + "ORDER BY m.position"
_PARCEL = _PARCELS + "WHERE h.message = ?"
_LAST_OF_DEPARTED = "SELECT last FROM departed WHERE key = ?"
_RETURN = "DELETE FROM departed WHERE key = ?"


class Parcel(NamedTuple):
    """A message on its way between two stores."""

    hop: int  # the number of the journey: the message's journeys are numbered from 1, whatever their stores
    verb: str
    source: str  # stations
    target: str
    seen: int  # the last query that has met it
    came: int  # the last query at the store that it leaves, when it had come there
    stored: Stored


class Transfers:
    def __init__(self, session: Session, journal: Journal, queues: Queues, counts: Counts) -> None:
        self._session = session
        self._journal = journal
        self._queues = queues
        self._counts = counts

    # --- in one store ---

    def create(
        self, queue: Queue, messages: Sequence[tuple[int, str, str, str]], cause: int | None = None
    ) -> list[Stored]:
        """New messages of a station: key, type, properties and body of each."""
        numbers = self._session.journal_numbers(len(messages)) if messages else ()
        first, now = self._counts.arrive(queue, len(messages)), self._session.now
        made = []
        for place, (key, type, properties, body) in enumerate(messages):
            hash = message_hash(key, now, cause, body, "json", type, properties)
            seq = numbers[place]
            made.append(
                Stored(key, queue.name, now, None, type, "json", body, hash, properties, cause, seq, first + place, seq)
            )
        self._session.many(INSERT, [_row(queue, stored) for stored in made])
        if made:
            self._journal.add_arrivals("create", numbers, [stored.key for stored in made], queue.id)
        return made

    def move(
        self,
        stored: Stored,
        source: Queue,
        target: Queue,
        verb: str,
        detail: Mapping[str, Any],
        properties: str | None = None,
    ) -> Stored:
        """Into another queue of this store, with other properties perhaps; answers with the message as it is there."""
        if properties is not None and properties != stored.properties:
            about = (stored.created, stored.cause, stored.body, stored.format, stored.type, properties)
            stored = stored._replace(properties=properties, hash=message_hash(stored.key, *about))
        seq = self._journal.add(
            verb, message=stored.key, prior=stored.last, source=source.id, target=target.id, detail=detail
        )
        number = self._counts.arrive(target, 1)
        check_one(
            self._session.run(_MOVE, (target.id, seq, number, stored.properties, stored.hash, stored.key, source.id)),
            stored,
        )
        self._counts.depart(source, stored.number, kept=False)
        return stored._replace(queue=target.name, position=seq, number=number, last=seq)

    def edit(self, queue: Queue, stored: Stored, body: str, properties: str, detail: Mapping[str, Any]) -> Stored:
        """A new edition of a message under its key; the one before is kept beside it."""
        seq = self._journal.add(
            "modify", message=stored.key, prior=stored.last, source=queue.id, target=queue.id, detail=detail
        )
        hash = message_hash(stored.key, stored.created, stored.cause, body, stored.format, stored.type, properties)
        number = self._counts.arrive(queue, 1)  # the newest of a queue has the highest number, so this one is new
        check_one(self._session.run(_EDIT, (body, properties, hash, seq, number, stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)
        self._session.run(KEEP_EDITION, (stored.key, seq, stored.body, stored.properties))
        return stored._replace(body=body, properties=properties, hash=hash, position=seq, number=number, last=seq)

    def editions(self, message: int) -> list[tuple[int, str, str]]:
        """What a message said before: until which number of the journal, body and properties."""
        return [(row[0], row[1], row[2]) for row in self._session.rows(_EDITIONS, (message,))]

    # --- between two stores ---

    def depart(
        self,
        stored: Stored,
        queue: Queue,
        verb: str,
        source: str,
        target: str,
        seen: int,
        properties: str | None = None,
    ) -> Parcel:
        """The first commit: take a message out of its queue, for a station whose store is another."""
        leaving = self._leaving()
        here = self.move(stored, queue, leaving, verb, {"from": source, "to": target}, properties)
        hop, came = self._session.row(_LAST_VISIT, (stored.key,)) or (0, 0)
        self._session.run(_HAND_OVER, (stored.key, hop + 1, verb, source, target, seen, came))
        return Parcel(hop + 1, verb, source, target, seen, came, here)

    def noted(self, parcel: Parcel, seen: int) -> Parcel:
        """A parcel with the last query that has met it, which is known when it has left."""
        self._session.run(_SEEN, (seen, parcel.stored.key))
        return parcel._replace(seen=seen)

    def arrived(self, parcel: Parcel) -> int | None:
        """The last query that had run here when the parcel came; None if it has not come."""
        row = self._session.row(_VISIT, (parcel.stored.key, parcel.hop))
        return None if row is None else int(row[0])

    def arrive(self, parcel: Parcel, queue: Queue, done: int) -> Stored:
        """The second commit: take a parcel in that has not come yet."""
        stored = parcel.stored
        if not stored.sound:
            raise StoreCorrupt(why=f"message {key_text(stored.key)} does not match its hash")
        prior = self._session.row(_LAST_OF_DEPARTED, (stored.key,))
        self._session.run(_RETURN, (stored.key,))
        seq = self._journal.add(
            parcel.verb,
            message=stored.key,
            prior=None if prior is None else prior[0],
            target=queue.id,
            detail={"from": parcel.source, "to": parcel.target},
        )
        here = stored._replace(queue=queue.name, position=seq, number=self._counts.arrive(queue, 1), last=seq)
        self._session.many(INSERT, [_row(queue, here)])
        self._session.run(_SET_VISIT, (stored.key, parcel.hop, done))
        return here

    def conclude(self, parcel: Parcel) -> int | None:
        """The third commit: let a parcel go that has come; answers with the event, None if it was gone already."""
        key = parcel.stored.key
        if self._session.run(_CONCLUDE, (key, parcel.hop)) != 1:
            return None
        leaving = self._leaving()
        seq = self._journal.add(HANDED_OVER, message=key, prior=parcel.stored.last, source=leaving.id)
        self._session.run(DEPART, (key, seq, parcel.stored.cause, parcel.stored.type))
        check_one(self._session.run(DISCARD, (key, leaving.id)), parcel.stored)
        self._counts.depart(leaving, parcel.stored.number, kept=False)
        return seq

    def pending(self) -> list[Parcel]:
        """What is leaving this store, in the order of departure."""
        return [_parcel(row) for row in self._session.rows(_PENDING)]

    def still_leaving(self, message: int) -> Parcel | None:
        """A message that has gone and come back before anyone has let it go here."""
        row = self._session.row(_PARCEL, (message,))
        return None if row is None else _parcel(row)

    def _leaving(self) -> Queue:
        return self._queues.made(LEAVING, LEAVING)


def _parcel(row: Row) -> Parcel:
    hop, verb, source, target, seen, came, *rest = row
    return Parcel(hop, verb, source, target, seen, came, Stored(*rest))


def _row(queue: Queue, stored: Stored) -> tuple[Any, ...]:
    key, _, created, _, type, form, body, hash, properties, cause, position, number, _ = stored
    return (key, queue.id, position, number, created, body, form, type, properties, hash, cause)
