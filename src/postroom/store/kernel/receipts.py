"""Receipts: which message an idempotency key made, so that a repeated send makes no second one."""

from __future__ import annotations

from postroom.errors import ArgumentInvalid
from postroom.store.kernel.session import StoreTable

_FIND = "SELECT message, fingerprint FROM receipts WHERE name = ?"
_INSERT = "INSERT INTO receipts (name, message, fingerprint, at, answer) VALUES (?, ?, ?, ?, ?)"
_ANSWERED = "SELECT fingerprint, answer FROM receipts WHERE name = ?"
_BETWEEN = "SELECT name FROM receipts WHERE name >= ? AND name < ?"
_FORGET = "DELETE FROM receipts WHERE name >= ? AND name < ?"


class Receipts(StoreTable):
    def find(self, name: str, fingerprint: bytes) -> int | None:
        """The message that this key made; a key that made another message is refused."""
        row = self._session.row(_FIND, (name,))
        if row is None:
            return None
        _check(name, row[1], fingerprint)
        return int(row[0])

    def answer(self, name: str, fingerprint: bytes) -> str | None:
        """What those who sent several messages with this key were told; a key that made another message is refused."""
        row = self._session.row(_ANSWERED, (name,))
        if row is None:
            return None
        _check(name, row[0], fingerprint)
        answer: str | None = row[1]
        return answer

    def message(self, name: str) -> int | None:
        """The message that a key made, whatever it said."""
        return self._session.value(_FIND, (name,))

    def add(self, name: str, message: int, fingerprint: bytes, answer: str | None = None) -> None:
        """Of several messages one is named, with the ``answer`` that their sender is told."""
        self._session.run(_INSERT, (name, message, fingerprint, self._session.now, answer))

    def between(self, first: str, end: str) -> list[str]:
        """The names of receipts from one up to another."""
        return [row[0] for row in self._session.rows(_BETWEEN, (first, end))]

    def forget(self, first: str, end: str) -> None:
        """Drop the receipts from one name up to another, which stays."""
        self._session.run(_FORGET, (first, end))


def _check(name: str, known: bytes, fingerprint: bytes) -> None:
    if bytes(known) != fingerprint:
        raise ArgumentInvalid(argument="idempotency key", why=f"{name!r} was used for another message")
