"""Tokens: each stands for an entity, and the queue that it is in is the entity's state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from postroom.limits import PAGE_ROWS
from postroom.store.kernel.session import Row, StoreTable
from postroom.store.kernel.statement import FOR_UPDATE

_ADD = "INSERT INTO tokens (machine, entity, message) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LOCK = "SELECT message FROM tokens WHERE machine = ? AND entity = ?" + FOR_UPDATE
_FIND = """
SELECT t.entity, t.message, q.name FROM tokens t JOIN messages m ON m.key = t.message JOIN queues q ON q.id = m.queue
WHERE t.machine = ? AND t.entity = ?
"""
_ENTITIES = """
SELECT t.entity, m.position FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1
    JOIN tokens t ON t.message = m.key AND t.machine = ?
WHERE q.name = ? AND m.position > ? ORDER BY m.position LIMIT ?
"""


_WATCH = "INSERT INTO watches (state, target, seen) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_UNWATCH = "DELETE FROM watches WHERE state = ? AND target = ?"
_WATCHES = "SELECT state, target, seen FROM watches ORDER BY state, target"
_SEE = "UPDATE watches SET seen = ? WHERE state = ? AND target = ?"
_COME = """
SELECT j.seq, j.message, t.entity, q.name, s.name, j.detail, p.reason
FROM queues q JOIN journal j ON j.target = q.id JOIN tokens t ON t.message = j.message
    LEFT JOIN queues s ON s.id = j.source LEFT JOIN spheres p ON p.token = j.message AND q.name = 'ABORTED'
WHERE q.name = ? AND j.seq > ? ORDER BY j.seq LIMIT ?
"""
_WAITING = """
SELECT m.position, m.key, t.entity, q.name, s.name, j.detail, p.reason
FROM queues q JOIN messages m ON m.queue = q.id AND m.state = 1 JOIN tokens t ON t.message = m.key
    JOIN journal j ON j.seq = m.position LEFT JOIN queues s ON s.id = j.source
    LEFT JOIN spheres p ON p.token = m.key AND q.name = 'ABORTED'
WHERE q.name = ? AND m.position > ? ORDER BY m.position LIMIT ?
"""


class Watch(NamedTuple):
    """A queue that is notified of arrivals in a state."""

    state: str
    target: str
    seen: int  # the number in the journal up to which it was told


class Come(NamedTuple):
    """The arrival of a token in a state."""

    seq: int
    token: int
    entity: str
    state: str
    before: str | None  # the state that it was in
    reason: str | None


class Token(NamedTuple):
    entity: str
    message: int
    state: str  # the queue that it is in


class Entity(NamedTuple):
    name: str
    position: int  # the number in the journal by which it came into its state


class Tokens(StoreTable):
    def add(self, machine: str, entity: str, message: int) -> bool:
        """Add a token; False if the entity has one."""
        return self._session.run(_ADD, (machine, entity, message)) == 1

    def locked(self, machine: str, entity: str) -> Token | None:
        """The token of an entity, locked until this transaction ends."""
        return self._find(machine, entity) if self._session.lock(_LOCK, machine, entity) else None

    def state(self, machine: str, entity: str) -> str | None:
        """The queue that the token is in."""
        token = self._find(machine, entity)
        return None if token is None else token.state

    def _find(self, machine: str, entity: str) -> Token | None:
        return self._session.one(Token._make, _FIND, (machine, entity))

    def every(self, machine: str, state: str) -> Iterator[Entity]:
        """All entities in a state, in arrival order."""
        after = 0
        while page := self.entities(machine, state, after, PAGE_ROWS):
            yield from page
            after = page[-1].position

    def entities(self, machine: str, state: str, after: int, limit: int) -> list[Entity]:
        """The next entities in a state, after a position."""
        return [Entity(*row) for row in self._session.rows(_ENTITIES, (machine, state, after, limit))]

    # --- who watches ---

    def watch(self, state: str, target: str, seen: int) -> None:
        self._session.run(_WATCH, (state, target, seen))

    def unwatch(self, state: str, target: str) -> None:
        self._session.run(_UNWATCH, (state, target))

    def watches(self) -> list[Watch]:
        return [Watch(*row) for row in self._session.rows(_WATCHES)]

    def see(self, watch: Watch, seen: int) -> None:
        """Record up to which number arrivals were reported."""
        self._session.run(_SEE, (seen, watch.state, watch.target))

    def come(self, state: str, after: int, limit: int) -> list[Come]:
        """The arrivals in a state after a journal number, even if they have left."""
        return [_come(row) for row in self._session.rows(_COME, (state, after, limit))]

    def waiting(self, state: str) -> Iterator[Come]:
        """The entities in a state, in arrival order."""
        return map(_come, self._session.pages(_WAITING, PAGE_ROWS, state))


def _come(row: Row) -> Come:
    seq, token, entity, state, before, detail, reason = row  # why a sphere failed is said when that was decided
    why = reason if detail is None else json.loads(detail).get("reason", reason)
    return Come(seq, token, entity, state, before, why)
