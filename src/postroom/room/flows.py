"""Publishing into spaces, and the graph between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from postroom.errors import PrincipalRefused
from postroom.room.parts import RoomPart
from postroom.store.tables.registry import check_actor

if TYPE_CHECKING:
    from postroom.flows.clients import Clients, Subscription
    from postroom.flows.graph.by import By
    from postroom.flows.graph.inspection import GraphShown
    from postroom.flows.visiting import Visits
    from postroom.queues.results import Sent, SentMany
    from postroom.room.client import Client


class RoomFlows(RoomPart):
    """Clients, events, the graph, and the names that are registered."""

    def client(self, name: str, password: str | None = None, *, broker: str | None = None) -> Client:
        """A publisher and subscriber under a name of its own; a registered name needs its password."""
        from postroom.flows.graph.by import By

        check_actor("name", name)
        check_actor("broker", broker or self._parts.by.broker)
        if password is not None:
            self._parts.registry.verify(name, password)
        elif self._parts.registry.knows(name):
            raise PrincipalRefused(principal=name, why="this name is registered: give its password")
        return self._client(By(name, broker or self._parts.by.broker, proven=password is not None))

    def _client(self, by: By) -> Client:
        from postroom.room.client import Client

        return Client(self._parts.store, lambda: self._parts.programs, self._parts.room_graphs, by, self._parts.owner)

    def publish(self, space: str, event: Any, *, idempotency_key: str | None = None) -> Sent:
        """Publish one event as the room's user; use ``client`` to publish as someone else."""
        return self._user().publish(space, event, idempotency_key=idempotency_key)

    def publish_many(self, space: str, events: Iterable[Any], *, idempotency_key: str | None = None) -> SentMany:
        """Publish many events in one commit: all of them, in their order, or none."""
        return self._user().publish_many(space, events, idempotency_key=idempotency_key)

    def _find_space(self, name: str) -> None:
        """Raise unless there is a space of this name: other queues have no events."""
        self._parts.store.read(self._parts.room_graphs.now).space(name)

    def _visits(self) -> Visits:
        """The temporary subscriptions of this process."""
        from postroom.flows.visiting import Visits

        return Visits(self._parts.store, self._clients())

    def _clients(self) -> Clients:
        from postroom.flows.clients import Clients

        return Clients(self._parts.store, self._parts.room_graphs)

    def _user(self) -> Client:
        """The room's user as a client. Without a password, it may do what a domain allows to everyone."""
        return self._client(self._parts.by)

    def graph(self) -> GraphShown:
        """The current graph: domains and their policies, spaces, arcs, tables."""
        from postroom.flows.graph.inspection import shown

        return self._parts.store.read(lambda tx: shown(tx, self._parts.room_graphs.now(tx)))

    def subscriptions(self) -> list[Subscription]:
        """The subscriptions of all clients."""
        from postroom.flows.presence import end_lapsed

        clients = self._clients()
        end_lapsed(self._parts.store, clients)
        return clients.subscriptions()

    def add_principal(
        self, name: str, password: str | None = None, *, old: str | None = None, replace: bool = False
    ) -> str | None:
        """Register a principal, or change its password. Without a password a token is created and returned.

        A registered name needs its ``old`` password, or the operator's override ``replace``.
        """
        return self._parts.registry.add(name, password, old=old, replace=replace)

    def remove_principal(self, name: str) -> None:
        """Remove a name and its password. Definitions that it has loaded through a server stop acting.

        The name of a station stays: without its password nothing could be done there.
        """
        from postroom.room.access import withdraw_all

        self._parts.registry.check_removable(name)
        withdraw_all(self._parts, name)
        self._parts.registry.remove(name)

    def principals(self) -> list[str]:
        """Every name that is registered."""
        return self._parts.registry.names()
