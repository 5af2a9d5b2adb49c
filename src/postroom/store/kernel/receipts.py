"""Receipts: the message of an idempotency key, so that a repeated send makes no second one."""

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
        """The message of this key; raises if the key was used for another message."""
        row = self._session.row(_FIND, (name,))
        if row is None:
            return None
        _check(name, row[1], fingerprint)
        return int(row[0])

    def answer(self, name: str, fingerprint: bytes) -> str | None:
        """The stored result of a send of several messages; raises if the key was used for others."""
        row = self._session.row(_ANSWERED, (name,))
        if row is None:
            return None
        _check(name, row[0], fingerprint)
        answer: str | None = row[1]
        return answer

    def message(self, name: str) -> int | None:
        """The message of a key, whatever its content."""
        return self._session.value(_FIND, (name,))

    def add(self, name: str, message: int, fingerprint: bytes, answer: str | None = None) -> None:
        """Store a receipt; for several messages with one of them and the ``answer`` for the sender."""
        self._session.run(_INSERT, (name, message, fingerprint, self._session.now, answer))

    def between(self, first: str, end: str) -> list[str]:
        """The names of receipts in a range."""
        return [row[0] for row in self._session.rows(_BETWEEN, (first, end))]

    def forget(self, first: str, end: str) -> None:
        """Delete the receipts from one name up to another, which stays."""
        self._session.run(_FORGET, (first, end))


def _check(name: str, known: bytes, fingerprint: bytes) -> None:
    if bytes(known) != fingerprint:
        raise ArgumentInvalid(argument="idempotency key", why=f"{name!r} was used for another message")
