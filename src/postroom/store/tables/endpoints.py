"""Endpoints of partners, as an operator has set them, and the queues that use them, as programs say.

Settings contain no secrets, only references to files or environment variables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.session import Row

_ALL = "SELECT name, transport, does, settings, mark FROM endpoints ORDER BY name"
_FIND = "SELECT name, transport, does, settings, mark FROM endpoints WHERE name = ?"
_ADD = "INSERT INTO endpoints (name, transport, does, settings, mark) VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM endpoints WHERE name = ?"
_PORTS = "SELECT queue, direction, endpoint, terms FROM ports ORDER BY queue"
_PORT = "SELECT queue, direction, endpoint, terms FROM ports WHERE queue = ?"
_AT = "SELECT queue FROM ports WHERE endpoint = ? AND direction = ? ORDER BY queue"
_FORGET_PORTS = "DELETE FROM ports"
_TERMS = "SELECT terms FROM ports WHERE endpoint = ? AND terms IS NOT NULL ORDER BY queue LIMIT 1"
_SET_PORT = "INSERT INTO ports (queue, direction, endpoint, terms) VALUES (?, ?, ?, ?)"

#: What an endpoint does: messages come from it, go to it, come as its replies, go as answers, or wait until it fetches.
IN, OUT, REPLY, ANSWER, FETCHED = "in", "out", "reply", "answer", "fetched"
#: What one does for streams: events come from it, or go to it.
SOURCE, SINK = "source", "sink"


class Endpoint(NamedTuple):
    """A gateway: transport, features, and settings."""

    name: str
    transport: str
    does: frozenset[str]
    settings: Mapping[str, Any]
    mark: str  # drawn when it was added: with a message's key, a number that no other room gives

    def as_dict(self) -> dict[str, Any]:
        return {
            "gateway": self.name,
            "transport": self.transport,
            "directions": sorted(self.does),
            "settings": dict(self.settings),
        }


class Port(NamedTuple):
    """A queue and its endpoint."""

    queue: str
    direction: str
    endpoint: str
    terms: str | None = None  # JSON: the interface of a Web Service and its policies


class Endpoints(JournaledTable):
    def all(self) -> dict[str, Endpoint]:
        return {row[0]: _endpoint(row) for row in self._session.rows(_ALL)}

    def find(self, name: str) -> Endpoint | None:
        return self._session.one(_endpoint, _FIND, (name,))

    def add(self, endpoint: Endpoint) -> None:
        name, transport, does, settings, mark = endpoint
        text = json.dumps(settings, ensure_ascii=False, sort_keys=True)
        self._session.run(_ADD, (name, transport, " ".join(sorted(does)), text, mark))
        self._journal.add("add-gateway", detail={"gateway": name, "transport": transport})

    def remove(self, name: str) -> None:
        self._session.run(_REMOVE, (name,))
        self._journal.add("remove-gateway", detail={"gateway": name})

    def ports(self) -> list[Port]:
        return [Port(*row) for row in self._session.rows(_PORTS)]

    def port(self, queue: str) -> Port | None:
        return self._session.one(Port._make, _PORT, (queue,))

    def queue_at(self, endpoint: str, direction: str) -> str | None:
        """The queue for messages from an endpoint."""
        return self._session.value(_AT, (endpoint, direction))

    def terms_of(self, endpoint: str) -> str | None:
        """The interface terms of an endpoint's queues."""
        return self._session.value(_TERMS, (endpoint,))

    def set_ports(self, ports: Iterable[Port]) -> None:
        self._session.run(_FORGET_PORTS)
        self._session.many(_SET_PORT, list(ports))


def _endpoint(row: Row) -> Endpoint:
    name, transport, does, settings, mark = row
    return Endpoint(name, transport, frozenset(does.split()), json.loads(settings), mark)
