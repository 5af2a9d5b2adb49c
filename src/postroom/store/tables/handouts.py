"""Received messages that are not confirmed yet.

The commit of a receive also stores a copy of the message here, with its process; the confirmation removes it. If the
process ends before, another one puts the message back into its place, with key, position, number and hash.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.limits import HANDOUT_SECONDS
from postroom.model.message import Stored
from postroom.model.moment import in_microseconds
from postroom.store.kernel.message_rows import columns, new_row, record
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.owner import is_alive
from postroom.store.kernel.queues import Queue, Queues
from postroom.store.kernel.session import Session

ADD = """
INSERT INTO handouts
    (message, queue, position, number, created, body, format, type, properties, hash, cause, owner, expires)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CONFIRM = "DELETE FROM handouts WHERE message = ? AND owner = ?"
_FORGET = "DELETE FROM handouts WHERE message = ?"
_OPEN = "SELECT message, queue, owner, expires FROM handouts ORDER BY queue, position"
_OF_QUEUE = "SELECT message, queue, owner, expires FROM handouts WHERE queue = ? ORDER BY position"
_COPY = f"""
SELECT {columns("h", key="h.message", queue="q.name", processed="NULL", last="h.position")}
FROM handouts h JOIN queues q ON q.id = h.queue WHERE h.message = ?
"""


class Handout(NamedTuple):
    """A received message that is not confirmed."""

    message: int
    queue: int
    owner: str
    expires: int

    def is_over(self, now: int) -> bool:
        """Whether nobody can confirm it any more; for a process on another machine, decided by time."""
        alive = is_alive(self.owner)
        return now > self.expires if alive is None else not alive


class Handouts:
    def __init__(self, session: Session, queues: Queues, messages: Messages) -> None:
        self._session = session
        self._queues = queues
        self._messages = messages

    def add(self, queue: Queue, stored: Stored, owner: str) -> None:
        """Record a message received in this transaction and not confirmed."""
        expires = self._session.now + in_microseconds(HANDOUT_SECONDS)
        self._session.run(ADD, (*new_row(queue.id, stored), owner, expires))

    def confirm(self, message: int, owner: str) -> bool:
        """Confirm a message; False if it was put back meanwhile."""
        return self._session.run(_CONFIRM, (message, owner)) == 1

    def all(self, queue: Queue | None = None) -> list[Handout]:
        """The unconfirmed messages of a queue, or of all."""
        rows = self._session.rows(_OPEN) if queue is None else self._session.rows(_OF_QUEUE, (queue.id,))
        return [Handout(*row) for row in rows]

    def over(self, queue: Queue | None = None) -> list[Handout]:
        """Those that nobody can confirm any more."""
        return [handout for handout in self.all(queue) if handout.is_over(self._session.now)]

    def give_back(self, handout: Handout, why: str) -> bool:
        """Put a message back whose output failed or whose process ended; False if someone else has."""
        self._queues.locked(handout.queue)
        stored = self.copy(handout.message)
        if stored is None or self._session.run(_FORGET, (handout.message,)) != 1:
            return False
        return self.put_back(handout.queue, stored, why)

    def copy(self, message: int) -> Stored | None:
        """The copy of an unconfirmed message."""
        return self._session.one(record, _COPY, (message,))

    def put_back(self, queue: int, stored: Stored, why: str) -> bool:
        """Put a received message back into its place; False if it is not among the received."""
        return self._messages.untake(self._queues.locked(queue), stored, why)
