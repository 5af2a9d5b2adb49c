"""Publishing into spaces, and the graph between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from postroom.errors import PrincipalRefused
from postroom.flows.clients import Clients, Subscription
from postroom.flows.graph import inspection as flow_inspection
from postroom.flows.graph.inspection import GraphShown
from postroom.flows.graph.meta import By
from postroom.flows.presence import end_lapsed
from postroom.queues.results import Sent, SentMany
from postroom.room.client import Client
from postroom.room.parts import Parts
from postroom.store.tables.registry import check_actor


class FlowsFace(Parts):
    """Clients, events, the graph, and the names that are registered."""

    def client(self, name: str, password: str | None = None, *, broker: str | None = None) -> Client:
        """A publisher and subscriber under a name of its own; a registered name needs its password."""
        check_actor("name", name)
        check_actor("broker", broker or self._by.broker)
        if password is not None:
            self._registry.verify(name, password)
        elif self._registry.knows(name):
            raise PrincipalRefused(principal=name, why="this name is registered: give its password")
        by = By(name, broker or self._by.broker, proven=password is not None)
        return Client(self.store, self._programs, self._charts, by, self._owner)

    def publish(self, space: str, event: Any, *, idempotency_key: str | None = None) -> Sent:
        """Publish one event as the room's user; use ``client`` to publish as someone else."""
        return self._user().publish(space, event, idempotency_key=idempotency_key)

    def publish_many(self, space: str, events: Iterable[Any]) -> SentMany:
        """Publish many events in one commit: all of them, in their order, or none."""
        return self._user().publish_many(space, events)

    def _user(self) -> Client:
        """The room's user as a client. Its name is not proven, so it may do what a domain allows to everyone."""
        return Client(self.store, self._programs, self._charts, self._by, self._owner)

    def graph(self) -> GraphShown:
        """The current graph: domains and their policies, spaces, arcs, tables."""
        return self.store.read(lambda tx: flow_inspection.shown(tx, self._charts.now(tx)))

    def subscriptions(self) -> list[Subscription]:
        """The subscriptions of all clients."""
        clients = Clients(self.store, self._charts)
        end_lapsed(self.store, clients)
        return clients.subscriptions()

    def add_principal(
        self, name: str, password: str | None = None, *, old: str | None = None, replace: bool = False
    ) -> str | None:
        """Register a principal, or change its password. Without a password a token is created and returned.

        A registered name needs its ``old`` password, or the operator's override ``replace``.
        """
        return self._registry.add(name, password, old=old, replace=replace)

    def remove_principal(self, name: str) -> None:
        """Remove a name and its password."""
        self._registry.remove(name)

    def principals(self) -> list[str]:
        """Every name that is registered."""
        return self._registry.names()
