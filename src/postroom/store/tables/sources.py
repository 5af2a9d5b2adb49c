"""Sources: the terminals that messages come from. Each may be disabled, and may have queues of its own."""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.statement import FOR_UPDATE

_ALL = "SELECT name, disabled, input, output FROM sources ORDER BY name"
_FIND = "SELECT name, disabled, input, output FROM sources WHERE name = ?"
_LOCK = "SELECT name FROM sources WHERE name = ?" + FOR_UPDATE
_ADD = "INSERT INTO sources (name, disabled, input, output) VALUES (?, 0, ?, ?)"
_REMOVE = "DELETE FROM sources WHERE name = ?"
_SET = "UPDATE sources SET disabled = ? WHERE name = ?"


class Source(NamedTuple):
    """A terminal as it was read."""

    name: str
    disabled: int
    input: str | None = None  # the path of the queue that a program reads it from
    output: str | None = None  # the queue that it is written to


class Sources(JournaledTable):
    def all(self) -> list[Source]:
        return [Source(*row) for row in self._session.rows(_ALL)]

    def find(self, name: str) -> Source | None:
        return self._session.one(Source._make, _FIND, (name,))

    def locked(self, name: str) -> Source | None:
        """The source, its row locked: a disable waits for concurrent sends."""
        return self.find(name) if self._session.lock(_LOCK, name) else None

    def add(self, source: Source) -> None:
        self._session.run(_ADD, (source.name, source.input, source.output))
        self._journal.add("add-source", detail={"source": source.name})

    def remove(self, name: str) -> None:
        self._session.run(_REMOVE, (name,))
        self._journal.add("remove-source", detail={"source": name})

    def set_disabled(self, name: str, disabled: bool) -> None:
        self._session.run(_SET, (int(disabled), name))
        self._journal.add("disable-source" if disabled else "enable-source", detail={"source": name})
