"""Incoming requests that wait for an answer: a message with their connection."""

from __future__ import annotations

import json
from typing import NamedTuple

from postroom.limits import REQUEST_KEPT_SECONDS
from postroom.model.message import Stored
from postroom.model.moment import in_microseconds
from postroom.store.kernel.session import StoreTable

_ADD = "INSERT INTO requests (connection, endpoint, message, created, response) VALUES (?, ?, ?, ?, NULL)"
_FIND = "SELECT connection, endpoint, message, created, response FROM requests WHERE connection = ?"
_OF_MESSAGE = "SELECT connection FROM requests WHERE message = ? ORDER BY created LIMIT 1"
_ANSWER = "UPDATE requests SET response = ? WHERE connection = ? AND response IS NULL"
_ANSWERS = "SELECT 1 FROM requests WHERE response = ? AND created >= ?"
# Of a message that was let go: it was the request, or was to be its answer. What it led to is not there, nor will be.
_LOST = """
UPDATE requests SET response = ? WHERE response IS NULL AND (message = ? OR (connection = ?
    AND EXISTS (SELECT 1 FROM ports p WHERE p.queue = ? AND p.direction = 'answer')))
"""
_FORGET = "DELETE FROM requests WHERE created < ?"


class Request(NamedTuple):
    connection: str
    endpoint: str
    message: int
    created: int
    response: int | None  # the message that answers it, or that was let go and will not


class Requests(StoreTable):
    def add(self, connection: str, endpoint: str, message: int) -> None:
        self._session.run(_ADD, (connection, endpoint, message, self._session.now))

    def find(self, connection: str) -> Request | None:
        return self._session.one(Request._make, _FIND, (connection,))

    def connection_of(self, message: int) -> str | None:
        """The connection of a request by its message."""
        return self._session.value(_OF_MESSAGE, (message,))

    def answer(self, connection: str, response: int) -> bool:
        """Record the answer; False if nobody waits, or there is one already."""
        return self._session.run(_ANSWER, (response, connection)) == 1

    def is_answer(self, message: int) -> bool:
        """Whether a message is the answer to a request that may still ask for it."""
        since = self._session.now - in_microseconds(REQUEST_KEPT_SECONDS)
        return self._session.row(_ANSWERS, (message, since)) is not None

    def lost(self, stored: Stored) -> None:
        """A message was deleted: a request that it was, or that waits for it, gets no other answer."""
        connection = json.loads(stored.properties).get("connection")
        if isinstance(connection, str):
            self._session.run(_LOST, (stored.key, stored.key, connection, stored.queue))

    def forget(self, before: int) -> int:
        """Delete requests older than a time; returns how many."""
        return self._session.run(_FORGET, (before,))
