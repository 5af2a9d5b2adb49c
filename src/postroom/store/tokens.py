"""Tokens: each stands for an entity, and the queue that it is in is the entity's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from postroom.limits import PAGE_ROWS
from postroom.store.session import Session

_ADD = "INSERT INTO tokens (machine, entity, message) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LOCK = "SELECT message FROM tokens WHERE machine = ? AND entity = ? /*for update*/"
_FIND = """
SELECT t.entity, t.message, q.name FROM tokens t JOIN messages m ON m.key = t.message JOIN queues q ON q.id = m.queue
WHERE t.machine = ? AND t.entity = ?
"""
_ENTITIES = """
SELECT t.entity, m.position FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1
    JOIN tokens t ON t.message = m.key AND t.machine = ?
WHERE q.name = ? AND m.position > ? ORDER BY m.position LIMIT ?
"""


class Token(NamedTuple):
    entity: str
    message: int
    state: str  # the queue that it is in


class Entity(NamedTuple):
    name: str
    position: int  # the number in the journal by which it came into its state


class Tokens:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, machine: str, entity: str, message: int) -> bool:
        """False if the entity has a token already."""
        return self._session.run(_ADD, (machine, entity, message)) == 1

    def locked(self, machine: str, entity: str) -> Token | None:
        """The token of an entity; nobody else moves it before this transaction ends."""
        return self._find(machine, entity) if self._session.lock(_LOCK, machine, entity) else None

    def state(self, machine: str, entity: str) -> str | None:
        """The queue that the token is in."""
        token = self._find(machine, entity)
        return None if token is None else token.state

    def _find(self, machine: str, entity: str) -> Token | None:
        row = self._session.row(_FIND, (machine, entity))
        return None if row is None else Token(*row)

    def every(self, machine: str, state: str) -> Iterator[Entity]:
        """All whose token is in a queue, in the order in which they came there."""
        after = 0
        while page := self.entities(machine, state, after, PAGE_ROWS):
            yield from page
            after = page[-1].position

    def entities(self, machine: str, state: str, after: int, limit: int) -> list[Entity]:
        """The next of them from behind a position."""
        return [Entity(*row) for row in self._session.rows(_ENTITIES, (machine, state, after, limit))]
