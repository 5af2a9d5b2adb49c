"""Inspecting a graph: its parts, and how one arc is executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.flows.graph.versions import RoomGraph, domains_of, written
from postroom.flows.language.definitions import Arc, Collapse, Meet, Merge, Select, Stateful, Transform
from postroom.flows.language.predicates import predicates
from postroom.flows.language.sql import Variables, made, matches
from postroom.limits import INDEXED_ARCS_MIN
from postroom.model.definitions import nearest
from postroom.model.html_table import html_table
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SpaceShown:
    """A space: its type, and what waits there."""

    name: str
    domain: str
    type: str
    retain: bool
    stored: bool  # what arrives there stays until someone receives it
    waiting: int
    client: bool

    def as_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        shape["waiting_count"], shape["is_client"] = shape.pop("waiting"), shape.pop("client")
        return shape


@dataclass(frozen=True, slots=True)
class ArcShown:
    """An arc: where it leads, and whether it is in force."""

    name: str
    domains: tuple[str, ...]
    source: str
    target: str
    does: str
    durable: bool
    state: str  # enabled, disabled, or which domain it waits for
    kept: int  # what a durable arc has yet to deliver

    @property
    def key(self) -> str:
        """Identifies it among arcs of the same name in other domains."""
        return ":".join([*sorted(self.domains), self.name])

    def as_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        shape["domain_names"], shape["waiting_count"] = list(shape.pop("domains")), shape.pop("kept")
        return shape


@dataclass(frozen=True, slots=True)
class TableShown:
    """A table that arcs join, and the space that fills it."""

    name: str
    domain: str
    type: str
    source: str
    rows: int

    def as_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        shape["row_count"] = shape.pop("rows")
        return shape


@dataclass(frozen=True, slots=True)
class GraphShown:
    """The current graph."""

    version: int
    domains: dict[str, dict[str, list[str]]]  # with what each allows to whom
    spaces: tuple[SpaceShown, ...]
    arcs: tuple[ArcShown, ...]
    tables: tuple[TableShown, ...]
    joins: tuple[tuple[str, str], ...]  # tables and the arcs that join them
    meets: tuple[tuple[str, str], ...] = ()  # spaces that arcs join besides their sources

    def _repr_html_(self) -> str:
        rows = [(arc.name, arc.source, arc.target, arc.does) for arc in self.arcs]
        return html_table(f"graph, version {self.version}", ["arc", "from", "to", "does"], rows, len(rows))

    def as_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "domains": [{"name": name, "allows": allows} for name, allows in self.domains.items()],
            "spaces": [space.as_dict() for space in self.spaces],
            "arcs": [arc.as_dict() for arc in self.arcs],
            "tables": [table.as_dict() for table in self.tables],
        }


def shown(tx: Transaction, room_graph: RoomGraph) -> GraphShown:
    graph = room_graph.graph
    waiting = {queue.name: queue.unprocessed for queue in tx.queues.all()}
    allows: dict[str, dict[str, list[str]]] = {name: {} for name in graph.domains}
    for allow in graph.policy:
        allows[allow.domain].setdefault(allow.principal, []).extend(allow.actions)
    spaces = tuple(
        SpaceShown(
            space.name,
            space.domain,
            str(space.type),
            space.retain,
            space.name not in room_graph.flowing or space.retain,
            waiting.get(space.name, 0),
            room_graph.origin(f"space {space.name}") == "client",
        )
        for space in graph.spaces.values()
    )
    arcs = tuple(_arc(room_graph, halves, waiting) for halves in graph.arcs.values())
    tables = tuple(
        TableShown(
            table.name,
            table.domain,
            str(table.type),
            f"collection {table.source}" if table.collection else table.source,
            len(room_graph.rows[table.name]),
        )
        for table in graph.tables.values()
    )
    joins = tuple((arc.table, graph.key(arc)) for arc, *_ in graph.arcs.values() if arc.table is not None)
    meets = tuple((arc.does.space, graph.key(arc)) for arc, *_ in graph.arcs.values() if isinstance(arc.does, Meet))
    return GraphShown(room_graph.version, allows, spaces, arcs, tables, joins, meets)


def _arc(room_graph: RoomGraph, halves: tuple[Arc, ...], waiting: dict[str, int]) -> ArcShown:
    arc = halves[0]
    return ArcShown(
        arc.name,
        tuple(domains_of(room_graph.graph, arc)),
        arc.source,
        arc.target,
        str(arc.does),
        arc.durable,
        _state(room_graph, halves),
        waiting.get(room_graph.aside(arc), 0) if arc.durable else 0,
    )


def _state(room_graph: RoomGraph, halves: tuple[Arc, ...]) -> str:
    arc = halves[0]
    missing = [name for name in domains_of(room_graph.graph, arc) if name not in {half.domain for half in halves}]
    if missing:
        return f"waits for the domain {missing[0]}"
    return "disabled" if room_graph.is_disabled(arc) else "enabled"


@dataclass(frozen=True, slots=True)
class ArcExplained:
    """How an arc is executed."""

    arc: str
    where: str
    definition: str
    domains: tuple[str, ...]
    state: str
    source: str
    source_type: str
    target: str
    target_type: str
    binds: dict[str, str]
    condition: str
    result: str | None
    matched_by: str

    def as_dict(self) -> dict[str, Any]:
        shape = {name: getattr(self, name) for name in self.__slots__}
        shape["domain_names"], shape["as_written"] = list(shape.pop("domains")), shape.pop("definition")
        return shape


def explain(room_graph: RoomGraph, name: str) -> ArcExplained:
    halves = _halves(room_graph, name)
    arc, does = halves[0], halves[0].does
    source, target = room_graph.graph.spaces[arc.source], room_graph.graph.spaces[arc.target]
    variables, condition, result = Variables(), "true", None
    if not isinstance(does, Merge):
        condition = matches(does.pattern, source.type, "event", variables)
    if isinstance(does, Transform):
        if does.join is not None:
            table = room_graph.graph.tables[does.join.table]
            condition += f" AND {matches(does.join.pattern, table.type, 'row', variables)}"
        result = made(does.result, target.type, variables)
    elif isinstance(does, Meet):
        other = room_graph.graph.spaces[does.space]
        condition += f" AND {matches(does.other, other.type, 'other', variables)}"
        result = made(does.result, target.type, variables)
    elif isinstance(does, Collapse):
        result = str(does.result)
    return ArcExplained(
        arc.name,
        str(arc.position),
        written(arc),
        tuple(domains_of(room_graph.graph, arc)),
        _state(room_graph, halves),
        arc.source,
        str(source.type),
        arc.target,
        str(target.type),
        {variable: str(bound.type) for variable, bound in variables.items()},
        condition,
        result,
        _matched_by(room_graph, arc),
    )


def _halves(room_graph: RoomGraph, name: str) -> tuple[Arc, ...]:
    """Find an arc by ``name`` or ``domain:name``; raises if it is unknown, or if several domains have one."""
    domain, _, last = name.rpartition(":")
    arcs = room_graph.graph.of_name(last, domain or None)
    if not arcs:
        names = [key if domain else arc.name for key, (arc, *_) in room_graph.graph.arcs.items()]
        raise DefinitionUnknown(name=f"arc {name}", nearest=nearest(name, names))
    if len(arcs) > 1:
        raise ArgumentInvalid(argument="arc", why=f"several domains have an arc {name}: say {' or '.join(arcs)}")
    return room_graph.graph.arcs[arcs[0]]


def _matched_by(room_graph: RoomGraph, arc: Arc) -> str:
    source = room_graph.graph.spaces[arc.source]
    if isinstance(arc.does, Stateful):
        return "its state, event by event, in the commit of each step"
    if not isinstance(arc.does, Select) or predicates(arc.does.pattern, source.type) is None:
        return "a column of Spark"
    peers = [
        peer
        for peer in room_graph.outgoing.get(arc.source, ())
        if isinstance(peer.does, Select) and predicates(peer.does.pattern, source.type) is not None
    ]
    if len(peers) < INDEXED_ARCS_MIN:
        return f"a column of Spark (an index from {INDEXED_ARCS_MIN} select arcs of one space on)"
    return f"the index of {arc.source}, with {len(peers) - 1} other arcs"
