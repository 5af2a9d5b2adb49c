"""Looking at a graph: what there is, and what one arc became."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.flows.evaluation.sql import Variables, made, matches
from postroom.flows.graph.versions import RoomGraph, domains_of
from postroom.flows.language.definitions import Arc, Select, Transform
from postroom.flows.language.predicates import predicates
from postroom.limits import INDEXED_ARCS_MIN
from postroom.model.definitions import nearest
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SpaceShown:
    name: str
    domain: str
    type: str
    retain: bool
    stored: bool  # what arrives there stays until someone receives it
    waiting: int
    client: bool

    def as_dict(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in self.__slots__}
        said["waiting_count"], said["is_client"] = said.pop("waiting"), said.pop("client")
        return said


@dataclass(frozen=True, slots=True)
class ArcShown:
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
        """What tells it from those of the same name in other domains."""
        return ":".join([*sorted(self.domains), self.name])

    def as_dict(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in self.__slots__}
        said["domain_names"], said["waiting_count"] = list(said.pop("domains")), said.pop("kept")
        return said


@dataclass(frozen=True, slots=True)
class TableShown:
    name: str
    domain: str
    type: str
    source: str
    rows: int

    def as_dict(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in self.__slots__}
        said["row_count"] = said.pop("rows")
        return said


@dataclass(frozen=True, slots=True)
class GraphShown:
    """The current graph."""

    version: int
    domains: dict[str, dict[str, list[str]]]  # with what each allows to whom
    spaces: tuple[SpaceShown, ...]
    arcs: tuple[ArcShown, ...]
    tables: tuple[TableShown, ...]
    joins: tuple[tuple[str, str], ...]  # tables and the arcs that join them

    def as_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "domains": [{"name": name, "allows": allows} for name, allows in self.domains.items()],
            "spaces": [each.as_dict() for each in self.spaces],
            "arcs": [each.as_dict() for each in self.arcs],
            "tables": [each.as_dict() for each in self.tables],
        }


def shown(tx: Transaction, room_graph: RoomGraph) -> GraphShown:
    graph = room_graph.graph
    waiting = {queue.name: queue.unprocessed for queue in tx.queues.all()}
    allows: dict[str, dict[str, list[str]]] = {name: {} for name in graph.domains}
    for each in graph.policy:
        allows[each.domain].setdefault(each.principal, []).extend(each.actions)
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
    joins = tuple(
        (arc.does.join.table, graph.key(arc))
        for arc, *_ in graph.arcs.values()
        if isinstance(arc.does, Transform) and arc.does.join is not None
    )
    return GraphShown(room_graph.version, allows, spaces, arcs, tables, joins)


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
        said = {name: getattr(self, name) for name in self.__slots__}
        said["domain_names"], said["as_written"] = list(said.pop("domains")), said.pop("definition")
        return said


def explain(room_graph: RoomGraph, name: str) -> ArcExplained:
    halves = _halves(room_graph, name)
    arc, does = halves[0], halves[0].does
    source, target = room_graph.graph.spaces[arc.source], room_graph.graph.spaces[arc.target]
    variables, condition, result = Variables(), "true", None
    if isinstance(does, Select | Transform):
        condition = matches(does.pattern, source.type, "event", variables)
    if isinstance(does, Transform):
        if does.join is not None:
            table = room_graph.graph.tables[does.join.table]
            condition += f" AND {matches(does.join.pattern, table.type, 'row', variables)}"
        result = made(does.result, target.type, variables)
    return ArcExplained(
        arc.name,
        str(arc.position),
        str(arc),
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
    """An arc by its name, or by its domain and its name where several domains have one."""
    domain, _, last = name.rpartition(":")
    found = room_graph.graph.of_name(last, domain or None)
    if not found:
        names = [arc.name for arc, *_ in room_graph.graph.arcs.values()]
        raise DefinitionUnknown(name=f"arc {name}", nearest=nearest(name, names))
    if len(found) > 1:
        raise ArgumentInvalid(argument="arc", why=f"several domains have an arc {name}: say {' or '.join(found)}")
    return room_graph.graph.arcs[found[0]]


def _matched_by(room_graph: RoomGraph, arc: Arc) -> str:
    source = room_graph.graph.spaces[arc.source]
    if not isinstance(arc.does, Select) or predicates(arc.does.pattern, source.type) is None:
        return "a column of Spark"
    peers = [
        each
        for each in room_graph.outgoing.get(arc.source, ())
        if isinstance(each.does, Select) and predicates(each.does.pattern, source.type) is not None
    ]
    if len(peers) < INDEXED_ARCS_MIN:
        return f"a column of Spark (an index from {INDEXED_ARCS_MIN} select arcs of one space on)"
    return f"the index of {arc.source}, with {len(peers) - 1} other arcs"
