"""The control node's list of nodes and stations, and a node's own membership."""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.journal import JournaledTable

_NODES = "SELECT name, url, mark FROM nodes ORDER BY name"
_ADD_NODE = "INSERT INTO nodes (name, url, mark) VALUES (?, ?, ?)"
_SET_URL = "UPDATE nodes SET url = ? WHERE name = ?"
_REMOVE_NODE = "DELETE FROM nodes WHERE name = ?"
_STATIONS = "SELECT name, node FROM stations ORDER BY name"
_HOME = "SELECT node FROM stations WHERE name = ?"
_ADD_STATION = "INSERT INTO stations (name, node) VALUES (?, ?)"
_REMOVE_STATION = "DELETE FROM stations WHERE name = ?"
_MEMBER = "SELECT mark, name FROM membership"
_JOIN = "INSERT INTO membership (mark, name) VALUES (?, ?)"
_LEAVE = "DELETE FROM membership"


class Node(NamedTuple):
    name: str
    url: str
    mark: str  # drawn when it was added; its store has the same


class Nodes(JournaledTable):
    def lock(self) -> None:
        """Lock against concurrent changes of nodes and stations, and new queries."""
        self._session.lock_counter("queries")

    # --- at the control node ---

    def all(self) -> dict[str, Node]:
        return {row[0]: Node(*row) for row in self._session.rows(_NODES)}

    def add(self, node: Node) -> None:
        self._session.run(_ADD_NODE, node)
        self._journal.add("add-node", detail={"node": node.name})

    def set_url(self, name: str, url: str) -> None:
        self._session.run(_SET_URL, (url, name))
        self._journal.add("change-node", detail={"node": name})

    def remove(self, name: str) -> None:
        self._session.run(_REMOVE_NODE, (name,))
        self._journal.add("remove-node", detail={"node": name})

    def stations(self) -> dict[str, str]:
        """Every station, with its node."""
        return {row[0]: row[1] for row in self._session.rows(_STATIONS)}

    def home(self, station: str) -> str | None:
        return self._session.value(_HOME, (station,))

    def add_station(self, name: str, node: str) -> None:
        self._session.run(_ADD_STATION, (name, node))
        self._journal.add("add-station", detail={"station": name, "node": node})

    def remove_station(self, name: str) -> None:
        self._session.run(_REMOVE_STATION, (name,))
        self._journal.add("remove-station", detail={"station": name})

    # --- at a node ---

    def membership(self) -> tuple[str, str] | None:
        """The network mark and the name of this store as a node."""
        return self._session.one(lambda row: (row[0], row[1]), _MEMBER)

    def join(self, mark: str, name: str) -> None:
        self._session.run(_JOIN, (mark, name))
        self._journal.add("join", detail={"node": name})

    def leave(self) -> None:
        self._session.run(_LEAVE)
        self._journal.add("leave")
