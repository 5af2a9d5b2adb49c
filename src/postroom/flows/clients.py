"""Clients: each has a space of its own, and arcs that select for it what it has subscribed to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.flows.graph import policy
from postroom.flows.graph.by import By
from postroom.flows.graph.changes import changed, with_statements, without
from postroom.flows.graph.versions import CLIENT, Kept, RoomGraph, RoomGraphs, key_of
from postroom.flows.language.definitions import SUBSCRIBE, Arc, Select, Space
from postroom.flows.language.patterns import Anything, parse_pattern
from postroom.flows.language.words import WORD
from postroom.model.definitions import Position
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Subscription:
    """A client's subscription: the source space, what it selects, and the space to receive from."""

    client: str
    arc: str
    space: str
    pattern: str
    durable: bool = False
    connected: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Clients:
    def __init__(self, store: Store, room_graphs: RoomGraphs) -> None:
        self._store = store
        self._room_graphs = room_graphs

    def subscribe(self, client: str, space: str, pattern: str | None, by: By, *, durable: bool = False) -> Subscription:
        """Subscribe a client to a space, or to the events there that match a pattern, from now on."""
        if not WORD.match(client):
            raise ArgumentInvalid(argument="client", why=f"{client!r} is not a name: letters, digits and _")
        asked = Anything() if pattern is None else parse_pattern(pattern, "pattern")

        def work(tx: Transaction) -> Subscription:
            tx.definitions.lock()
            room_graph = self._room_graphs.now(tx)
            source = room_graph.space(space)
            policy.prove(tx, by)
            policy.require(room_graph.graph, source.domain, by, SUBSCRIBE)
            if room_graph.origin(f"space {space}") == CLIENT:
                raise ArgumentInvalid(argument="space", why=f"{space} is a client's own; subscribe to what it reads")
            position = Position(f"subscription of {client}", 1)
            present = room_graph.graph.spaces.get(client)
            if present is not None and room_graph.origin(f"space {client}") != CLIENT:
                raise ArgumentInvalid(argument="client", why=f"{client} is a space of the graph; take another name")
            same = [arc for arc in _arcs_of(room_graph, client) if (arc.source, arc.does) == (space, Select(asked))]
            if same:  # asked for before: then an arc that was disabled is there again, durable or not as is said now
                if same[0].durable != durable:
                    present_halves = [
                        (room_graph.kept[key_of(arc)], arc)
                        for arc in room_graph.graph.arcs[room_graph.graph.key(same[0])]
                    ]
                    again = [replace(kept, statement=replace(arc, durable=durable)) for kept, arc in present_halves]
                    room_graph = changed(tx, room_graph, with_statements(room_graph, again), by, {"subscribe": client})
                return self._switched(tx, room_graph, client, same[:1], by, disabled=False)[0]
            mine = present or Space(client, source.domain, source.type, False, position)
            name = _free(room_graph, f"{client}_{space.replace(':', '_')}")
            halves = [
                Kept(Arc(name, domain, space, client, Select(asked), durable, position), CLIENT)
                for domain in dict.fromkeys((source.domain, mine.domain))
            ]
            spaces = [] if present is not None else [Kept(mine, CLIENT)]
            wanted = with_statements(room_graph, [*spaces, *halves])
            changed(tx, room_graph, wanted, by, {"subscribe": client, "space": space})
            return Subscription(client, name, space, str(asked), durable)

        return self._store.transact("subscribe", work)

    def unsubscribe(self, client: str, space: str | None, by: By) -> list[Subscription]:
        """Unsubscribe a client from one space or all. The last subscription takes the client's own space with it.

        Undelivered events stay readable under its name, like events that were published before and arrive later.
        """

        def work(tx: Transaction) -> list[Subscription]:
            tx.definitions.lock()
            policy.prove(tx, by)
            room_graph = self._room_graphs.now(tx)
            gone = [arc for arc in _arcs_of(room_graph, client) if space is None or arc.source == space]
            if not gone:
                raise DefinitionUnknown(name=f"subscription of {client}", nearest="")
            keys = [key for arc in gone for key in room_graph.halves(arc)]
            left = [arc for arc, *_ in room_graph.graph.arcs.values() if arc not in gone]
            if not any(client in (arc.source, arc.target) for arc in left):
                keys.append(f"space {client}")
            changed(tx, room_graph, without(room_graph, keys), by, {"unsubscribe": client})
            return [_subscription(room_graph, client, arc) for arc in gone]

        return self._store.transact("unsubscribe", work)

    def disconnect(self, client: str, by: By) -> list[Subscription]:
        """Disable a client's subscriptions; durable ones keep events for its return."""
        return self._store.transact("disconnect", partial(self.switch, client, by, disabled=True))

    def connect(self, client: str, by: By) -> list[Subscription]:
        """Enable a client's subscriptions again."""
        return self._store.transact("connect", partial(self.switch, client, by, disabled=False))

    def subscriptions(self, client: str | None = None) -> list[Subscription]:
        def work(tx: Transaction) -> list[Subscription]:
            room_graph = self._room_graphs.now(tx)
            clients = [client] if client is not None else sorted(_clients(room_graph))
            return [_subscription(room_graph, name, arc) for name in clients for arc in _arcs_of(room_graph, name)]

        return self._store.read(work)

    def switch(self, client: str, by: By, tx: Transaction, *, disabled: bool) -> list[Subscription]:
        """Disable or enable a client's subscriptions, within a transaction."""
        tx.definitions.lock()
        policy.prove(tx, by)
        room_graph = self._room_graphs.now(tx)
        arcs = _arcs_of(room_graph, client)
        if not arcs:
            raise DefinitionUnknown(name=f"subscription of {client}", nearest="")
        return self._switched(tx, room_graph, client, arcs, by, disabled=disabled)

    @staticmethod
    def _switched(
        tx: Transaction, room_graph: RoomGraph, client: str, arcs: list[Arc], by: By, *, disabled: bool
    ) -> list[Subscription]:
        """Switch the arcs of a client. Arcs that someone else has disabled stay disabled."""
        mine = [key for arc in arcs for key in room_graph.halves(arc) if room_graph.kept[key].disabled in ("", client)]
        domains = {room_graph.graph.spaces[arc.source].domain for arc in _arcs_of(room_graph, client)}
        for domain in () if disabled else domains:  # everyone may leave
            policy.require(room_graph.graph, domain, by, SUBSCRIBE)
        off = client if disabled else ""
        wanted = {**room_graph.kept, **{key: replace(room_graph.kept[key], disabled=off) for key in mine}}
        after = changed(tx, room_graph, wanted, by, {"disconnect" if disabled else "connect": client})
        return [
            _subscription(after, client, arc)
            for arc in _arcs_of(after, client)
            if arc.name in {other.name for other in arcs}
        ]


def _clients(room_graph: RoomGraph) -> set[str]:
    clients = {kept.statement for kept in room_graph.kept.values() if kept.origin == CLIENT}
    return {statement.name for statement in clients if isinstance(statement, Space)}


def _arcs_of(room_graph: RoomGraph, client: str) -> list[Arc]:
    if client not in _clients(room_graph):
        return []
    arcs = [arc for arc, *_ in room_graph.graph.arcs.values() if arc.target == client]
    return [arc for arc in arcs if room_graph.origin(key_of(arc)) == CLIENT]


def _subscription(room_graph: RoomGraph, client: str, arc: Arc) -> Subscription:
    does = arc.does
    pattern = str(does.pattern) if isinstance(does, Select) else str(does)
    return Subscription(client, arc.name, arc.source, pattern, arc.durable, not room_graph.is_disabled(arc))


def _free(room_graph: RoomGraph, name: str) -> str:
    taken = {arc.name for arc, *_ in room_graph.graph.arcs.values()}
    if name not in taken:
        return name
    return next(candidate for number in count(2) if (candidate := f"{name}_{number}") not in taken)
