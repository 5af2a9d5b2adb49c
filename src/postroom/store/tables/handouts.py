"""Messages that were taken and may come back: because what they were written to was gone, or nobody looked at them.

Taking is one commit like every other. A message whose output must be confirmed is also copied here in that commit,
under its process; the confirmation removes the copy. If the process ends before, whoever comes by puts the message
back: into its place, with its key, its position, its number and its hash.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.limits import HANDOUT_SECONDS
from postroom.model.message import Stored
from postroom.model.moment import in_microseconds
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import RETURN, Journal
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.queues import Queue, Queues
from postroom.store.kernel.session import Session

_ADD = """
INSERT INTO handouts
    (message, queue, owner, expires, position, number, created, body, format, type, properties, hash, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CONFIRM = "DELETE FROM handouts WHERE message = ? AND owner = ?"
_FORGET = "DELETE FROM handouts WHERE message = ?"
_OPEN = "SELECT message, queue, owner, expires FROM handouts ORDER BY queue, position"
_OF_QUEUE = "SELECT message, queue, owner, expires FROM handouts WHERE queue = ? ORDER BY position"
_COPY = """
SELECT h.message, q.name, h.created, NULL, h.type, h.format, h.body, h.hash, h.properties, h.cause, h.position,
       h.number, h.position FROM handouts h JOIN queues q ON q.id = h.queue WHERE h.message = ?
"""
_TAKEN = "SELECT coalesce(last, position) FROM messages WHERE key = ? AND queue = ? AND state = 0"
_DEPARTED = "SELECT last FROM departed WHERE key = ?"
_RETURN = """
UPDATE messages SET state = 1, position = ?, number = ?, last = ?, processed = NULL
WHERE key = ? AND queue = ? AND state = 0
"""
_UNSPEND = "DELETE FROM spent WHERE message = ?"
_ARRIVE = "DELETE FROM departed WHERE key = ?"
_INSERT = """
INSERT INTO messages (key, queue, position, number, last, created, body, format, type, properties, hash, cause)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class Handout(NamedTuple):
    """A message that someone has and has not confirmed."""

    message: int
    queue: int
    owner: str
    expires: int

    def is_over(self, now: int) -> bool:
        """Whether nobody will confirm it any more. Only of a process on another machine the time must tell."""
        alive = is_alive(self.owner)
        return now > self.expires if alive is None else not alive


class Handouts:
    def __init__(self, session: Session, journal: Journal, queues: Queues, counts: Counts) -> None:
        self._session = session
        self._journal = journal
        self._queues = queues
        self._counts = counts

    def add(self, queue: Queue, stored: Stored, owner: str) -> None:
        """Note a message that is taken by this transaction and not yet confirmed."""
        expires = self._session.now + in_microseconds(HANDOUT_SECONDS)
        key, _, created, _, type, form, body, hash, properties, cause, position, number, _ = stored
        about = (key, queue.id, owner, expires, position, number, created, body, form, type, properties, hash, cause)
        self._session.run(_ADD, about)

    def confirm(self, message: int, owner: str) -> bool:
        """The message has arrived; False if it was given back meanwhile."""
        return self._session.run(_CONFIRM, (message, owner)) == 1

    def all(self, queue: Queue | None = None) -> list[Handout]:
        """What someone has of a queue, or of all, and has not confirmed."""
        rows = self._session.rows(_OPEN) if queue is None else self._session.rows(_OF_QUEUE, (queue.id,))
        return [Handout(*row) for row in rows]

    def over(self, queue: Queue | None = None) -> list[Handout]:
        """Those that nobody will confirm any more."""
        return [each for each in self.all(queue) if each.is_over(self._session.now)]

    def give_back(self, handout: Handout, why: str) -> bool:
        """Put a message back whose output failed or whose process ended; False if someone else has done so."""
        self._queues.locked(handout.queue)
        stored = self.copy(handout.message)
        if stored is None or self._session.run(_FORGET, (handout.message,)) != 1:
            return False
        return self.put_back(handout.queue, stored, why)

    def copy(self, message: int) -> Stored | None:
        """A message that is not confirmed, as it was in its place."""
        row = self._session.row(_COPY, (message,))
        return None if row is None else Stored(*row)

    def put_back(self, queue: int, stored: Stored, why: str) -> bool:
        """Put a message that was taken into its place again, as it was before; False if it is not among the taken."""
        source, key = self._queues.locked(queue), stored.key
        taken = self._session.row(_TAKEN, (key, queue))
        prior = taken or self._session.row(_DEPARTED, (key,))
        if prior is None:
            return False
        about = {"position": stored.position, "number": stored.number, "why": why}
        at = source.id if taken else None
        seq = self._journal.add(RETURN, message=key, prior=prior[0], source=at, target=queue, detail=about)
        if taken:
            self._session.run(_RETURN, (stored.position, stored.number, seq, key, queue))
            self._session.run(_UNSPEND, (key,))
        else:
            self._session.run(_ARRIVE, (key,))
            _, _, created, _, type, form, body, hash, properties, cause, position, number, _ = stored
            row = (key, queue, position, number, seq, created, body, form, type, properties, hash, cause)
            self._session.run(_INSERT, row)
        self._counts.depart(source, stored.number, -1, kept=bool(taken))
        return True
