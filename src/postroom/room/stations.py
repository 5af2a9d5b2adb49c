"""Nodes, stations, their forms and their procedures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from postroom.errors import ArgumentInvalid, PrincipalRefused, TypeUnknown
from postroom.limits import WAITING_MAX
from postroom.model.message import Message
from postroom.room.parts import RoomPart, spark_session
from postroom.stations.counters.definitions import remove as remove_counter
from postroom.stations.counters.stage import CounterShown
from postroom.stations.forms.catalog import Edition
from postroom.stations.places.network import CONTROL, NodeShown
from postroom.stations.procedures.catalog import KeptProcedure, set_enabled
from postroom.stations.procedures.catalog import kept as kept_procedures
from postroom.stations.procedures.catalog import remove as remove_procedure
from postroom.stations.procedures.inspection import WaitingSets, waiting_sets
from postroom.stations.station import Station


class RoomStations(RoomPart):
    """The network of nodes, whoever works at its stations, and what works there by itself."""

    def add_node(self, name: str, url: str) -> None:
        """Add a store (a new file, or a database without a room) as a node of this room's network.

        Its URL is stored, so it must not have a password; put that into PostgreSQL's password file, or into the
        environment as ``POSTROOM_NODE_<name>_PASSWORD``.
        """
        self._parts.network.add(name, url)

    def secure_nodes(self) -> list[str]:
        """Move passwords that an earlier version stored with the URLs of nodes to PostgreSQL's password file.

        Returns the names of these nodes.
        """
        return self._parts.network.secure()

    def move_node(self, name: str, url: str) -> None:
        """Change the address of a node's store."""
        self._parts.network.move(name, url)

    def remove_node(self, name: str, *, force: bool = False) -> None:
        """Remove a node without stations from the network; one that does not answer only with ``force``."""
        self._parts.network.remove(name, force=force)

    def nodes(self) -> list[NodeShown]:
        """The nodes of the network, and whether they answer; this room is the one named control."""
        return self._parts.network.shown()

    def add(self, name: str, password: str, node: str = CONTROL) -> Station:
        """Add a station on a node. A name that is registered already must give its own password."""
        if self._parts.registry.knows(name):
            self._parts.registry.verify(name, password)
            self._parts.network.add_station(name, node, None)
        else:
            self._parts.network.add_station(name, node, self._parts.registry.hashed(name, password))
        return self._station(name)

    def remove(self, name: str) -> None:
        """Remove a station that has neither messages nor mail."""
        self._parts.network.remove_station(name)

    def all(self) -> dict[str, str]:
        """Every station, with its node."""
        return self._parts.network.stations()

    def at(
        self,
        name: str,
        password: str | None = None,
        *,
        token: str | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> Station:
        """A station, to ``create``, ``ship``, ``get`` and ``query``. Needs its password, or the token of a login.

        ``master`` and ``conf`` are for the queries that run on Spark.
        """
        if token is None:
            self._parts.registry.verify(name, password or "", "postroom station list tells the stations")
        elif not self._parts.registry.admits(name, token):
            raise PrincipalRefused(principal=name, why="this login has ended; log in again with: postroom login")
        return self._station(name, master, conf)

    def _station(self, name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> Station:
        return Station(self._parts.network, name, partial(spark_session, master, conf), self._parts.owner)

    def login(self, name: str, password: str) -> str:
        """Check a password once; returns a token for ``station`` that is valid for some hours."""
        return self._parts.registry.login(name, password)

    def logout(self, name: str, token: str) -> None:
        """End a login: its token becomes invalid."""
        self._parts.registry.logout(name, token)

    def procedures(self) -> list[KeptProcedure]:
        """Every procedure, and whether it is enabled."""
        return self._parts.store.read(kept_procedures)

    def enable_procedure(self, name: str) -> bool:
        """Let a procedure run, on all messages of its station. False if it was enabled already."""
        return self._parts.store.transact("switch", lambda tx: set_enabled(tx, name, True))

    def disable_procedure(self, name: str) -> bool:
        """Stop a procedure from running. False if it was disabled already."""
        return self._parts.store.transact("switch", lambda tx: set_enabled(tx, name, False))

    def remove_procedure(self, name: str) -> None:
        """Remove a procedure; messages that waited for it stay where they are."""
        self._parts.store.transact("switch", lambda tx: remove_procedure(tx, name))

    def waiting(self, procedure: str | None = None, limit: int = WAITING_MAX) -> WaitingSets:
        """The incomplete working sets: what they have, what they wait for, since when. Oldest first.

        Nodes that do not answer are named in ``missing``.
        """
        if limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        return waiting_sets(self._parts.network, self._parts.procedures, procedure, limit)

    def counters(self) -> list[CounterShown]:
        """Every counter, the number of waiting messages, and why if it does nothing."""
        return self._parts.store.read(self._parts.counter_stage.shown)

    def remove_counter(self, name: str) -> None:
        """Close a counter; messages stay where they are."""
        self._parts.store.transact("switch", lambda tx: remove_counter(tx, name))

    def form(self, type: str) -> Edition:
        """The form of a message type, and the version since which it has it."""
        return self._parts.store.read(lambda tx: self._parts.network.forms.named(tx, type))

    def form_of(self, message: Message) -> Edition | None:
        """The form with which a message was created, if any."""
        version = message.properties.get("form")
        if message.type is None or not isinstance(version, int):
            return None
        name = message.type
        try:
            return self._parts.store.read(lambda tx: self._parts.network.forms.at(tx, name, version))
        except TypeUnknown:  # a property of another meaning
            return None
