"""Requests that came from outside and may be answered: by a message that has their connection."""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.session import Session

_ADD = "INSERT INTO requests (connection, endpoint, message, created, response) VALUES (?, ?, ?, ?, NULL)"
_FIND = "SELECT connection, endpoint, message, created, response FROM requests WHERE connection = ?"
_OF_MESSAGE = "SELECT connection FROM requests WHERE message = ? ORDER BY created LIMIT 1"
_ANSWER = "UPDATE requests SET response = ? WHERE connection = ? AND response IS NULL"
_FORGET = "DELETE FROM requests WHERE created < ?"


class Request(NamedTuple):
    connection: str
    endpoint: str
    message: int
    created: int
    response: int | None  # the message that answers it


class Requests:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, connection: str, endpoint: str, message: int) -> None:
        self._session.run(_ADD, (connection, endpoint, message, self._session.now))

    def find(self, connection: str) -> Request | None:
        return self._session.one(lambda row: Request(*row), _FIND, (connection,))

    def connection_of(self, message: int) -> str | None:
        """The connection of the request that a message is."""
        return self._session.value(_OF_MESSAGE, (message,))

    def answer(self, connection: str, response: int) -> bool:
        """Note the answer; False if nobody asks, or if there is one."""
        return self._session.run(_ANSWER, (response, connection)) == 1

    def forget(self, before: int) -> int:
        """Those that were asked before a time; answers with how many there were."""
        return self._session.run(_FORGET, (before,))
