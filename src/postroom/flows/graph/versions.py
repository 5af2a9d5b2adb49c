"""The graph of a room in one version: its statements, what is disabled, and what runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from postroom.errors import DefinitionUnknown
from postroom.flows.graph.graph import Graph
from postroom.flows.graph.streamed import streamed
from postroom.flows.language.definitions import Allow, Arc, Merge, Select, Space, Stateful, Statement, Table
from postroom.flows.language.reader import META, parse
from postroom.flows.language.tables import Rows, rows_of_documents
from postroom.model.definitions import Definition, Position, nearest
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COLLECTION, FLOW

KIND = FLOW  # of these definitions in the catalog
SPACE = "space"  # kinds of queues
#: Who brought a statement into the graph. A load replaces what came from files and nothing else.
FILE, EVENT, CLIENT = "file", "event", "client"


@dataclass(frozen=True, slots=True)
class Kept:
    """A statement in force."""

    statement: Statement
    origin: str = FILE
    disabled: str = ""  # who has disabled an arc, if someone has
    rows: Rows = ()  # of a table
    aside: str = ""  # the queue of a durable arc, if that of its name was another's


def key_of(statement: Statement) -> str:
    """The name under which a statement is kept."""
    if isinstance(statement, Arc):
        return f"arc {statement.name} in {statement.domain}"
    if isinstance(statement, Allow):
        return f"allow {statement.principal} in {statement.domain}"
    return f"{type(statement).__name__.lower()} {statement.name}"


def parked(arc: Arc) -> str:
    """The queue for what a durable arc delivers while it is disabled, unless an arc of another domain has that name."""
    return f"arc:{arc.name}"


def with_queues(wanted: Mapping[str, Kept], old: Mapping[str, Kept]) -> dict[str, Kept]:
    """Statements with a queue for each durable arc. An arc keeps its queue when other arcs change."""
    kept = {key: replace(entry, aside=_had(entry, old.get(key))) for key, entry in wanted.items() if _is_durable(entry)}
    if len({entry.statement.name for entry in kept.values() if isinstance(entry.statement, Arc)}) == len(kept):
        return {**wanted, **kept}
    graph = Graph.of(entry.statement for entry in wanted.values())
    taken: dict[str, str] = {}
    for key in sorted(kept, key=lambda key: not _is_durable(old.get(key))):  # those that had one come first
        arc = kept[key].statement
        assert isinstance(arc, Arc)
        whose = graph.key(arc)
        if taken.setdefault(kept[key].aside or parked(arc), whose) != whose:
            kept[key] = replace(kept[key], aside=f"arc:{whose}")
    return {**wanted, **kept}


def _is_durable(kept: Kept | None) -> bool:
    return kept is not None and isinstance(kept.statement, Arc) and kept.statement.durable


def _had(kept: Kept, before: Kept | None) -> str:
    return before.aside if before is not None and _is_durable(before) else kept.aside


@dataclass(frozen=True)
class RoomGraph:
    version: int
    kept: Mapping[str, Kept] = field(default_factory=dict)
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # what others work out of it

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(entry.statement for entry in self.kept.values())

    @cached_property
    def disabled(self) -> frozenset[str]:
        """The keys of arcs with a disabled half."""
        return frozenset(self.graph.key(arc.statement) for arc in self._arcs() if arc.disabled)

    def is_disabled(self, arc: Arc) -> bool:
        return self.graph.key(arc) in self.disabled

    def _arcs(self) -> Iterator[Any]:
        return (entry for entry in self.kept.values() if isinstance(entry.statement, Arc))

    def space(self, name: str) -> Space:
        type = self.graph.spaces.get(name)
        if type is None:
            raise DefinitionUnknown(name=f"space {name}", nearest=nearest(name, self.graph.spaces))
        return type

    def halves(self, arc: Arc) -> list[str]:
        """The names under which an arc is kept: one, or one for each of two domains."""
        return [key_of(half) for half in self.graph.arcs.get(self.graph.key(arc), ())]

    def origin(self, key: str) -> str | None:
        return self.kept[key].origin if key in self.kept else None

    @cached_property
    def outgoing(self) -> dict[str, list[Arc]]:
        return self.graph.outgoing()

    @cached_property
    def flowing(self) -> frozenset[str]:
        """The spaces that events leave, or would leave if their arcs were enabled."""
        return frozenset(self.outgoing)

    @cached_property
    def ordered(self) -> frozenset[str]:
        """The spaces with arcs with state: their events wait there for their turn."""
        arcs = [arc for arc, *_ in self.running.arcs.values() if isinstance(arc.does, Stateful)]
        return frozenset(source for arc in arcs for source in arc.sources)

    @cached_property
    def passing(self) -> frozenset[str]:
        """The spaces that events leave in the step in which they arrive."""
        return self.flowing - self.ordered

    @cached_property
    def durable(self) -> dict[str, Arc]:
        """The durable arcs, by their queues for events kept while disabled."""
        every = [arc for arcs in self.outgoing.values() for arc in arcs]
        return {self.aside(arc): arc for arc in every if arc.durable}

    def aside(self, arc: Arc) -> str:
        """The queue for events of a durable arc that are kept while it is disabled."""
        halves = [self.kept[key].aside for key in self.halves(arc) if key in self.kept]
        return next(filter(None, halves), parked(arc))

    @cached_property
    def places(self) -> frozenset[str]:
        """The queues that arcs deliver to."""
        return frozenset({*self.graph.spaces, *self.durable})

    @cached_property
    def keeping(self) -> frozenset[str]:
        """The queues where events stay: consumers' spaces, spaces that retain, queues of disabled arcs, and spaces
        before arcs with state."""
        spaces = {name for name, space in self.graph.spaces.items() if space.retain or name not in self.flowing}
        spaces |= self.ordered
        return frozenset(spaces | {queue for queue, arc in self.durable.items() if self.is_disabled(arc)})

    def living(self, now: RoomGraph) -> frozenset[str]:
        """The queues of this graph that a newer one still has, with the same type."""
        if self is now:
            return self.places
        mine, theirs = self.running.spaces, now.running.spaces
        return frozenset(name for name in self.places & now.places if mine[name].type == theirs[name].type)

    @cached_property
    def streamed(self) -> frozenset[str]:
        """The spaces that are filled from outside; only a stream takes their events further."""
        return streamed(self.running)

    @cached_property
    def shut(self) -> frozenset[str]:
        """The spaces where nobody publishes, because a stream has to take their events further."""
        spaces = self.graph.spaces.values()
        ends = {space.name for space in spaces if space.outside is not None}
        return frozenset(ends | (streamed(self.graph) & self.flowing))

    def before(self, spaces: Iterable[str]) -> set[str]:
        """The given spaces, and all spaces from which events reach them."""
        reached = set(spaces)
        todo = list(reached)
        while todo:
            space = todo.pop()
            for source, arcs in self.outgoing.items():
                if source not in reached and any(arc.target == space for arc in arcs):
                    reached.add(source)
                    todo.append(source)
        return reached

    @cached_property
    def running(self) -> Graph:
        """The graph that runs: without disabled arcs; a disabled durable arc delivers to its own queue."""
        spaces, arcs = dict(self.graph.spaces), {}
        for of_space in self.outgoing.values():
            for arc in of_space:
                aside = self.aside(arc) if arc.durable else ""
                if arc.durable:
                    source = spaces[arc.source]
                    spaces[aside] = replace(source, name=aside, retain=False)
                key = self.graph.key(arc)
                if key not in self.disabled:
                    arcs[key] = (arc, arc)
                    if arc.durable:
                        arcs[aside] = (replace(arc, source=aside),) * 2
                elif arc.durable:
                    does = Merge() if isinstance(arc.does, Merge) else Select(arc.does.pattern)
                    arcs[key] = (replace(arc, target=aside, does=does),) * 2
        return Graph(self.graph.domains, self.graph.policy, spaces, self.graph.tables, arcs)

    def state_name(self, arc: Arc) -> str:
        """The name of an arc's state. An arc with another meaning, or other types, has another name."""
        graph = self.running
        types = [graph.spaces[name].type for name in (*arc.sources, arc.target)]
        text = "\n".join([str(arc.does), *map(str, types)])
        return f"{graph.key(arc)}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @cached_property
    def state_names(self) -> frozenset[str]:
        """The names of the states of all arcs."""
        arcs = [arc for arcs in self.outgoing.values() for arc in arcs]
        return frozenset(self.state_name(arc) for arc in arcs if isinstance(arc.does, Stateful))

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """The rows of each table."""
        return {entry.statement.name: entry.rows for entry in self.kept.values() if isinstance(entry.statement, Table)}


class RoomGraphs:
    """The graph in force, read once per version."""

    def __init__(self) -> None:
        self._read: dict[int, RoomGraph] = {}

    def now(self, tx: Transaction) -> RoomGraph:
        return self.at(tx, tx.definitions.version())

    def at(self, tx: Transaction, version: int) -> RoomGraph:
        graph = self._read.get(version)
        if graph is None:
            kept = {stored.name: _kept(stored) for stored in tx.definitions.of_kind(KIND, version)}
            kept |= _filled(tx, version, kept)
            last = self._read[max(self._read)] if self._read else None
            # Versions come and go for other reasons, too: then all that was worked out of the graph stays.
            graph = RoomGraph(version, kept)
            if last is not None and last.kept == kept:
                graph.__dict__.update({**last.__dict__, "version": version})
            if tx.definitions.changing:
                return graph  # it may never be
            if len(self._read) >= _VERSIONS_KNOWN:
                del self._read[min(self._read)]
            self._read[version] = graph
        return graph


_VERSIONS_KNOWN = 16


def definition(key: str, kept: Kept) -> Definition:
    """A statement as a definition of the catalog; its text parses back to the same."""
    statement = kept.statement
    body: dict[str, Any] = {
        "what": type(statement).__name__.lower(),
        "domain": statement.domain,
        "text": written(statement),
        "origin": kept.origin,
    }
    if kept.disabled:
        body["disabled"] = kept.disabled
    if isinstance(statement, Space) and statement.outside is not None and statement.outside.gateway:
        body["gateway"] = statement.outside.gateway
    if kept.aside:
        body["aside"] = kept.aside
    if kept.rows and not (isinstance(statement, Table) and statement.collection):
        body["rows"] = [list(row) for row in kept.rows]
    return Definition(KIND, key, body, statement.position)


def _kept(definition: Definition) -> Kept:
    body = definition.body
    position = definition.position or Position(definition.name, 1)
    statement = _statement(body["domain"], body["text"], position)
    rows = tuple(tuple(row) for row in body.get("rows", ()))
    return Kept(statement, body["origin"], body.get("disabled", ""), rows, body.get("aside", ""))


def _filled(tx: Transaction, version: int, kept: Mapping[str, Kept]) -> dict[str, Kept]:
    """Fill the tables that are collections with their rows in a version."""
    filled = {}
    for key, entry in kept.items():
        table = entry.statement
        if isinstance(table, Table) and table.collection:
            documents = [
                document
                for master in tx.definitions.of_kind(COLLECTION, version)
                if master.name == table.source
                for document in master.body["documents"]
            ]
            filled[key] = replace(entry, rows=rows_of_documents(table, documents))
    return filled


def written(statement: Statement) -> str:
    """A statement as it was written; as it would be written, if it was made or changed otherwise."""
    text = str(statement)
    if not isinstance(statement, Arc) or not statement.written:
        return text
    is_same = str(_statement(statement.domain, statement.written, statement.position)) == text
    return statement.written if is_same else text


@lru_cache(maxsize=50_000)
def _statement(domain: str, text: str, position: Position) -> Statement:
    *_, statement = parse(f"domain {domain}\n{text}", position.file)
    return replace(statement, position=position)


def kept_from(statements: Iterable[Statement], rows: Mapping[str, Rows]) -> dict[str, Kept]:
    """The statements of files by name; permissions of one principal are merged."""
    kept: dict[str, Kept] = {}
    for statement in statements:
        key = key_of(statement)
        if isinstance(statement, Allow) and key in kept:
            before = kept[key].statement
            assert isinstance(before, Allow)
            statement = replace(before, actions=tuple(dict.fromkeys(before.actions + statement.actions)))
        kept[key] = Kept(statement, FILE, rows=rows.get(key, ()) if isinstance(statement, Table) else ())
    return kept


def meta_of(domain: str) -> str:
    return f"{META}:{domain}"


def domains_of(graph: Graph, arc: Arc) -> Sequence[str]:
    """The domains that an arc joins: one or two."""
    return list(dict.fromkeys(graph.spaces[name].domain for name in (arc.source, arc.target) if name in graph.spaces))
