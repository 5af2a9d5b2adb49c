"""A client of a room: someone who publishes, subscribes and receives under a name of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from postroom.errors import ArgumentInvalid
from postroom.flows.clients import Clients, Subscription
from postroom.flows.graph.by import By
from postroom.flows.graph.versions import RoomGraphs
from postroom.flows.presence import end_lapsed, present
from postroom.limits import BATCH_MESSAGES_MAX
from postroom.model.arguments import check_methods
from postroom.model.key import KeyTexts
from postroom.model.message import Draft
from postroom.queues.locks import User
from postroom.queues.results import Received, Sent, SentMany
from postroom.queues.verbs import Verbs
from postroom.room.admission import RoomAdmission
from postroom.store.kernel.base import Store

if TYPE_CHECKING:
    from postroom.rules.programs import Programs


@check_methods
class Client:
    """Created by ``room.client``. With its password, it has the permissions of its name in a domain."""

    def __init__(
        self, store: Store, programs: Callable[[], Programs], room_graphs: RoomGraphs, by: By, owner: str
    ) -> None:
        self.by = by
        self._store = store
        self._room_graphs = room_graphs
        self._verbs = Verbs(store, User(owner, by.principal), RoomAdmission(programs, lambda: room_graphs, lambda: by))
        self._clients = Clients(store, room_graphs)

    @property
    def name(self) -> str:
        """The name it publishes and subscribes under."""
        return self.by.principal

    def __repr__(self) -> str:
        return f"<client {self.name} at {self.by.broker}>"

    # --- publishing ---

    def publish(self, space: str, event: Any, *, idempotency_key: str | None = None) -> Sent:
        """Publish one event: a Gryphon literal, JSON text, or Python values that fit JSON.

        An event that does not fit the space's type is refused. In a meta-space, an event that the domain allows changes
        the graph: ``client.publish("meta:trading", {"DisableArc": {"arcName": "big"}})``.
        """
        self._store.read(self._room_graphs.now).space(space)  # a queue that is none has no events
        draft = Draft.of(event)
        with self._store.acting(self.name):
            if idempotency_key is None:
                (key,) = self._published(space, [draft])
                return Sent(key)
            return self._verbs.send((space,), draft, idempotency_key)

    def publish_many(self, space: str, events: Iterable[Any], *, idempotency_key: str | None = None) -> SentMany:
        """Publish many events in one commit: all of them, in their order, or none.

        A repeated call with the same ``idempotency_key`` publishes nothing and returns the same keys.
        """
        self._store.read(self._room_graphs.now).space(space)  # a queue that is none has no events
        drafts = Draft.many(events)
        if len(drafts) > BATCH_MESSAGES_MAX:
            raise ArgumentInvalid(argument="events", why=f"at most {BATCH_MESSAGES_MAX} events in one publication")
        with self._store.acting(self.name):
            if idempotency_key is None:
                return SentMany(KeyTexts(self._published(space, drafts)))
            return self._verbs.send_many((space,), drafts, idempotency_key)

    def _published(self, space: str, drafts: Sequence[Draft]) -> Sequence[int]:
        return self._store.transact("publish", lambda tx: self._verbs.enter(tx, (space,), drafts))

    # --- subscribing ---

    def subscribe(self, space: str, pattern: str | None = None, *, durable: bool = False) -> Subscription:
        """Subscribe to the events of a space from now on, or to those that match a pattern.

        With ``durable``, events that arrive while the client is disconnected are kept for it.
        """
        with self._store.acting(self.name):
            return self._clients.subscribe(self.name, space, pattern, self.by, durable=durable)

    def unsubscribe(self, space: str | None = None) -> list[Subscription]:
        """End the subscriptions to one space or all; with the last one, the client's own space is removed."""
        with self._store.acting(self.name):
            return self._clients.unsubscribe(self.name, space, self.by)

    def disconnect(self) -> list[Subscription]:
        """Disable all arcs to this client."""
        with self._store.acting(self.name):
            return self._clients.disconnect(self.name, self.by)

    def connect(self) -> list[Subscription]:
        """Enable them again; durable ones deliver the events they kept."""
        with self._store.acting(self.name):
            return self._clients.connect(self.name, self.by)

    @contextmanager
    def present(self) -> Iterator[Client]:
        """Be connected while a ``with`` block runs. If its process is killed, the client becomes disconnected."""
        with present(self._store, self._clients, self.by):
            yield self

    def subscriptions(self) -> list[Subscription]:
        """Its own subscriptions."""
        end_lapsed(self._store, self._clients)
        return self._clients.subscriptions(self.name)

    def receive(self, wait: float | None = None, *, deliver: Callable[[Received], None] | None = None) -> Received:
        """The next event that an arc has delivered; ``deliver`` is as for the receive of a queue."""
        return self._verbs.receive((self.name,), wait=wait, deliver=deliver)
