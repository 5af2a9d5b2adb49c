"""Receipts: which message an idempotency key made, so that a repeated send makes no second one."""

from __future__ import annotations

from postroom.store.session import Session

_FIND = "SELECT message FROM receipts WHERE name = ?"
_INSERT = "INSERT INTO receipts (name, message, at) VALUES (?, ?, ?)"


class Receipts:
    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: str) -> int | None:
        row = self._session.row(_FIND, (name,))
        return None if row is None else row[0]

    def add(self, name: str, message: int) -> None:
        self._session.run(_INSERT, (name, message, self._session.now))
