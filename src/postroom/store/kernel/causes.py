"""Causes and effects of messages, including deleted ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from postroom.errors import MessageUnknown
from postroom.model.key import key_text
from postroom.store.kernel.archives import Archives
from postroom.store.kernel.session import Session

_ORIGIN = """
SELECT cause, type FROM messages WHERE key = ? UNION ALL SELECT cause, type FROM departed WHERE key = ? LIMIT 1
"""
_EFFECTS = """
SELECT key FROM messages WHERE cause = ? UNION SELECT key FROM departed WHERE cause = ? ORDER BY key LIMIT ?
"""


class Origin(NamedTuple):
    cause: int | None
    type: str | None


class Causes:
    def __init__(self, session: Session, archives: Archives) -> None:
        self._session = session
        self._archives = archives

    def origin(self, message: int) -> Origin | None:
        """The cause and type of a message; None if this store never had it."""
        row = self._session.row(_ORIGIN, (message, message))
        if row is None:
            archived = self._archives.departed(message)
            row = None if archived is None else archived[1:]
        return None if row is None else Origin(*row)

    def origins(self, messages: Collection[int]) -> dict[int, Origin]:
        """Like ``origin``, for many; unknown messages are missing."""
        asked = list(messages)
        answers = self._session.each(_ORIGIN, [(message, message) for message in asked])
        known = {message: Origin(*rows[0]) for message, rows in zip(asked, answers, strict=True) if rows}
        unknown = {message for message in asked if message not in known}
        archived = self._archives.departed_among(unknown) if unknown else {}
        return known | {message: Origin(*row[1:]) for message, row in archived.items()}

    def require(self, message: int) -> None:
        """Raise for a cause that this store never had."""
        if self.origin(message) is None:
            raise MessageUnknown(key=key_text(message))

    def effects(self, message: int, limit: int) -> list[int]:
        """The first messages caused by one, by key."""
        here = [row[0] for row in self._session.rows(_EFFECTS, (message, message, limit))]
        return sorted({*here, *self._archives.effects(message)})[:limit]
