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
    def __init__(self, session: Session, queues: Queues, messages: Messages) -> None:
        self._session = session
        self._queues = queues
        self._messages = messages

    def add(self, queue: Queue, stored: Stored, owner: str) -> None:
        """Note a message that is taken by this transaction and not yet confirmed."""
        expires = self._session.now + in_microseconds(HANDOUT_SECONDS)
        self._session.run(ADD, (*new_row(queue.id, stored), owner, expires))

    def confirm(self, message: int, owner: str) -> bool:
        """The message has arrived; False if it was given back meanwhile."""
        return self._session.run(_CONFIRM, (message, owner)) == 1

    def all(self, queue: Queue | None = None) -> list[Handout]:
        """What someone has of a queue, or of all, and has not confirmed."""
        rows = self._session.rows(_OPEN) if queue is None else self._session.rows(_OF_QUEUE, (queue.id,))
        return [Handout(*row) for row in rows]

    def over(self, queue: Queue | None = None) -> list[Handout]:
        """Those that nobody will confirm any more."""
        return [handout for handout in self.all(queue) if handout.is_over(self._session.now)]

    def give_back(self, handout: Handout, why: str) -> bool:
        """Put a message back whose output failed or whose process ended; False if someone else has done so."""
        self._queues.locked(handout.queue)
        stored = self.copy(handout.message)
        if stored is None or self._session.run(_FORGET, (handout.message,)) != 1:
            return False
        return self.put_back(handout.queue, stored, why)

    def copy(self, message: int) -> Stored | None:
        """A message that is not confirmed, as it was in its place."""
        return self._session.one(record, _COPY, (message,))

    def put_back(self, queue: int, stored: Stored, why: str) -> bool:
        """Put a message that was taken into its place again, as it was before; False if it is not among the taken."""
        return self._messages.untake(self._queues.locked(queue), stored, why)
