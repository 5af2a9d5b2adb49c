"""At a node: which spheres of the control node have reached it, and the messages made in them.

A sphere's token is at the control node. The row here is locked to make something and to undo it, so later steps know
that the sphere has failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

_REACH = """
INSERT INTO reached (sphere, failed) VALUES (?, 0)
ON CONFLICT (sphere) DO UPDATE SET failed = reached.failed RETURNING failed
"""
_FAIL = """
INSERT INTO reached (sphere, failed) VALUES (?, 1) ON CONFLICT (sphere) DO UPDATE SET failed = 1
"""
_NOTE = "INSERT INTO made (sphere, message, queue, maker) VALUES (?, ?, ?, ?)"
_MADE = "SELECT sphere, message, queue, maker, outcome FROM made WHERE sphere = ? ORDER BY message"
_SETTLE = "UPDATE made SET outcome = ? WHERE sphere = ? AND message = ?"
_SPHERES = "SELECT sphere FROM reached WHERE sphere > ? ORDER BY sphere LIMIT ?"
_FORGET_MADE = "DELETE FROM made WHERE sphere = ?"
_FORGET = "DELETE FROM reached WHERE sphere = ?"


class MadeAfar(NamedTuple):
    """A message that was made here in a sphere."""

    sphere: str
    message: int
    queue: str
    maker: str
    outcome: str | None = None


class Afar(StoreTable):
    def reach(self, sphere: str) -> bool:
        """Record that a sphere has reached this node, and lock it against an undo; True if it has failed."""
        return bool(self._session.number(_REACH, (sphere,)))

    def fail(self, sphere: str) -> None:
        """Mark a sphere failed: messages made in it from now on are withdrawn at once."""
        self._session.run(_FAIL, (sphere,))

    def note(self, made: Iterable[MadeAfar]) -> None:
        self._session.many(_NOTE, [message[:4] for message in made])

    def made(self, sphere: str) -> list[MadeAfar]:
        return [MadeAfar(*row) for row in self._session.rows(_MADE, (sphere,))]

    def settle(self, made: MadeAfar, outcome: str) -> MadeAfar:
        """Record the outcome of a message."""
        self._session.run(_SETTLE, (outcome, made.sphere, made.message))
        return made._replace(outcome=outcome)

    def spheres(self, after: str, limit: int) -> list[str]:
        """The spheres that have reached this node, by name."""
        return [row[0] for row in self._session.rows(_SPHERES, (after, limit))]

    def forget(self, spheres: Iterable[str]) -> None:
        """Forget spheres: what was made in them stays, or is undone."""
        gone = [(id,) for id in spheres]
        self._session.many(_FORGET_MADE, gone)
        self._session.many(_FORGET, gone)
