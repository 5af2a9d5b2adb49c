"""Nodes, stations, their forms and their procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from postroom.errors import ArgumentInvalid, PrincipalRefused, StationTaken, TypeUnknown
from postroom.limits import INT_MAX, WAITING_MAX
from postroom.model.message import Message
from postroom.room.identity import whoever_acts
from postroom.room.parts import RoomPart, spark_session
from postroom.stations.counters import definitions as counters
from postroom.stations.places.network import CONTROL, NodeShown
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from postroom.stations.counters.stage import CounterShown
    from postroom.stations.forms.catalog import Edition
    from postroom.stations.procedures.catalog import KeptProcedure
    from postroom.stations.procedures.inspection import ProcedureErrors, WaitingSets
    from postroom.stations.station import Station

Result = TypeVar("Result")


class RoomStations(RoomPart):
    """The network of nodes, its stations, and their procedures and counters."""

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
        """Remove a node without stations from the network; one that does not respond only with ``force``."""
        self._parts.network.remove(name, force=force)

    def nodes(self) -> list[NodeShown]:
        """The nodes of the network, and whether they respond; this room is the one named control."""
        return self._parts.network.shown()

    def add(self, name: str, password: str, node: str = CONTROL) -> Station:
        """Add a station on a node. For a registered name, its own password is required."""
        home = self._parts.network.stations().get(name)
        if home is not None:  # whatever the password is
            raise StationTaken(station=name, node=home)
        if self._parts.registry.knows(name):
            self._parts.registry.verify(name, password)
            self._parts.network.add_station(name, node, None)
        else:
            self._parts.network.add_station(name, node, self._parts.registry.hashed(name, password))
        return self._station(name)

    def remove(self, name: str) -> None:
        """Remove a station that has neither messages nor mail."""
        self._parts.network.remove_station(name, counters.check_no_counter)

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

    def admitted(self, name: str) -> Station:
        """A station for a user whose right was checked by the caller."""
        return self._station(name)

    def _station(self, name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> Station:
        from postroom.stations.station import Station

        return Station(self._parts.network, name, partial(spark_session, master, conf), self._parts.owner)

    def login(self, name: str, password: str) -> str:
        """Check a password once; returns a token for ``station`` that is valid for some hours."""
        return self._parts.registry.login(name, password)

    def logout(self, name: str, token: str) -> None:
        """End a login: its token becomes invalid."""
        self._parts.registry.logout(name, token)

    def procedures(self) -> list[KeptProcedure]:
        """Every procedure, and whether it is enabled."""
        from postroom.stations.procedures.catalog import kept

        return self._parts.store.read(kept)

    def enable_procedure(self, name: str) -> bool:
        """Let a procedure run, on all messages of its station. False if it was enabled already."""
        from postroom.stations.procedures.catalog import set_enabled

        def work(tx: Transaction) -> bool:
            lacking = tx.bindings.lacking("procedure").get(name)
            if lacking is not None:
                raise PrincipalRefused(principal=f"procedure {name}", why=lacking)
            return set_enabled(tx, name, True)

        return self._switched("procedure", name, work)

    def disable_procedure(self, name: str) -> bool:
        """Stop a procedure from running. False if it was disabled already."""
        from postroom.stations.procedures.catalog import set_enabled

        return self._switched("procedure", name, lambda tx: set_enabled(tx, name, False))

    def remove_procedure(self, name: str) -> None:
        """Remove a procedure; messages that waited for it stay where they are."""
        from postroom.stations.procedures.catalog import remove

        self._switched("procedure", name, lambda tx: remove(tx, name))

    def _switched(self, what: str, name: str, change: Callable[[Transaction], Result]) -> Result:
        """Change a definition that the user owns; an operator may change any."""
        identity = whoever_acts()

        def work(tx: Transaction) -> Result:
            tx.definitions.lock()
            if identity is not None:
                from postroom.room.reach import refuse_others  # it knows every language

                refuse_others(tx, identity, what, name)
            return change(tx)

        return self._parts.store.transact("switch", work)

    def waiting(
        self, procedure: str | None = None, limit: int = WAITING_MAX, *, station: str | None = None
    ) -> WaitingSets:
        """The incomplete working sets: what they have, what they wait for, since when; oldest first.

        Of one procedure or one station, or all. Nodes that do not respond are listed in ``missing``.
        """
        if limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        if station is not None:
            self._parts.network.home(station)  # raises if there is none
        from postroom.stations.procedures.inspection import waiting_sets

        return waiting_sets(self._parts.network, self._parts.procedures, procedure, limit, station)

    def procedure_errors(self) -> ProcedureErrors:
        """The errors of procedures, from the dossiers ``errors`` of all stations.

        Oldest first. Nodes that do not respond are listed in ``missing``.
        """
        from postroom.stations.procedures.inspection import procedure_errors

        return procedure_errors(self._parts.network)

    def counters(self) -> list[CounterShown]:
        """Every counter, its number of waiting messages, and why it does nothing, if so."""
        return self._parts.store.read(self._parts.counter_stage.shown)

    def remove_counter(self, name: str) -> None:
        """Close a counter; messages stay where they are."""
        self._switched("counter", name, lambda tx: counters.remove(tx, name))

    def form(self, type: str, version: int | None = None) -> Edition:
        """The form of a message type with its version; or the form that was in force at ``version``."""
        forms = self._parts.network.forms
        if version is None:
            return self._parts.store.read(lambda tx: forms.named(tx, type))
        if not 0 <= version <= INT_MAX:
            raise ArgumentInvalid(argument="version", why="it is not a version of the definitions")
        return self._parts.store.read(lambda tx: forms.at(tx, type, version))

    def form_of(self, message: Message) -> Edition | None:
        """The form with which a message was created, if any."""
        version = message.properties.get("form")
        if message.type is None or not isinstance(version, int):
            return None
        try:
            return self.form(message.type, version)
        except TypeUnknown:  # a property of another meaning
            return None
