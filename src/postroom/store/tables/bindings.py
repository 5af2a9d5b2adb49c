"""Which definitions act with the rights of which user, and which rights they lack now.

Definitions loaded with direct access to the room have no row: they may do everything.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.session import StoreTable

_ALL = "SELECT what, name, principal, lacking FROM bindings ORDER BY what, name"
_LACKING = "SELECT name, lacking FROM bindings WHERE what = ? AND lacking IS NOT NULL"
_BIND = """
INSERT INTO bindings (what, name, principal, lacking) VALUES (?, ?, ?, ?)
ON CONFLICT (what, name) DO UPDATE SET principal = excluded.principal, lacking = excluded.lacking
"""
_FREE = "DELETE FROM bindings WHERE what = ? AND name = ?"


class Binding(NamedTuple):
    """A definition that acts with a user's rights."""

    what: str  # rule, arc, procedure or counter
    name: str
    principal: str
    lacking: str | None = None  # the right that it would need, in one line


class Bindings(StoreTable):
    def all(self) -> list[Binding]:
        return [Binding(*row) for row in self._session.rows(_ALL)]

    def lacking(self, what: str) -> dict[str, str]:
        """The definitions of a kind that may not act now, and why."""
        return dict(self._session.rows(_LACKING, (what,)))

    def put(self, binding: Binding) -> None:
        self._session.run(_BIND, binding)

    def free(self, what: str, name: str) -> None:
        """Remove a binding: the definition was removed, or has no owner now."""
        self._session.run(_FREE, (what, name))
