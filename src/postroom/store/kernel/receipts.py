"""Receipts: which message an idempotency key made, so that a repeated send makes no second one."""

from __future__ import annotations

from postroom.errors import ArgumentInvalid
from postroom.store.kernel.session import Session

_FIND = "SELECT message, fingerprint FROM receipts WHERE name = ?"
_INSERT = "INSERT INTO receipts (name, message, fingerprint, at) VALUES (?, ?, ?, ?)"
_FORGET = "DELETE FROM receipts WHERE name >= ? AND name < ?"


class Receipts:
    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: str, fingerprint: bytes) -> int | None:
        """The message that this key made; a key that made another message is refused."""
        row = self._session.row(_FIND, (name,))
        if row is None:
            return None
        if bytes(row[1]) != fingerprint:
            raise ArgumentInvalid(argument="idempotency key", why=f"{name!r} was used for another message")
        return int(row[0])

    def add(self, name: str, message: int, fingerprint: bytes) -> None:
        self._session.run(_INSERT, (name, message, fingerprint, self._session.now))

    def forget(self, first: str, end: str) -> None:
        """Drop the receipts from one name up to another, which stays."""
        self._session.run(_FORGET, (first, end))
