"""The graph that flow files describe: spaces by name, arcs between them, and the meta-space that every domain has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from postroom.flows.graph.meta import META_TYPE
from postroom.flows.language.definitions import Allow, Arc, Domain, Meet, Space, Statement, Table
from postroom.flows.language.reader import META


@dataclass(frozen=True)
class Graph:
    domains: Mapping[str, Domain] = field(default_factory=dict)
    policy: tuple[Allow, ...] = ()
    spaces: Mapping[str, Space] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    arcs: Mapping[str, tuple[Arc, ...]] = field(default_factory=dict)  # by key; one across domains stands in both
    known: Graph | None = field(default=None, compare=False, repr=False)  # an earlier one that is right

    @classmethod
    def of(cls, statements: Iterable[Statement]) -> Graph:
        """The graph of statements.

        If two spaces or tables have one name, the first counts (a check reports the second).
        """
        domains: dict[str, Domain] = {}
        policy: list[Allow] = []
        spaces: dict[str, Space] = {}
        tables: dict[str, Table] = {}
        named: list[Arc] = []
        for statement in statements:
            if isinstance(statement, Domain):
                domains.setdefault(statement.name, statement)
                meta = f"{META}:{statement.name}"
                spaces.setdefault(meta, Space(meta, statement.name, META_TYPE, True, statement.position))
            elif isinstance(statement, Allow):
                policy.append(statement)
            elif isinstance(statement, Space):
                spaces.setdefault(statement.name, statement)
            elif isinstance(statement, Table):
                tables.setdefault(statement.name, statement)
            else:
                named.append(statement)
        graph = cls(domains, tuple(policy), spaces, tables)
        arcs: dict[str, tuple[Arc, ...]] = {}
        for arc in named:
            key = graph.key(arc)
            arcs[key] = (*arcs.get(key, ()), arc)
        return replace(graph, arcs=arcs)

    def key(self, arc: Arc) -> str:
        """Identifies an arc among those of the same name in other domains; both halves of one across domains share
        it."""
        ends = [self.spaces[name].domain for name in (arc.source, arc.target) if name in self.spaces]
        domains = sorted(set(ends)) if len(ends) == 2 else [arc.domain]
        return ":".join([*domains, arc.name])

    def of_name(self, name: str, domain: str | None = None) -> list[str]:
        """The keys of the arcs with a name, in one domain, between two (``one:two``) or in all."""
        wanted = set(domain.split(":")) if domain is not None else set()
        return [key for key, (arc, *_) in self.arcs.items() if arc.name == name and wanted <= set(key.split(":")[:-1])]

    def crosses(self, arc: Arc) -> bool:
        """Whether an arc leads from one domain to another."""
        return self.spaces[arc.source].domain != self.spaces[arc.target].domain

    def knows(self, arc: Arc) -> bool:
        """Whether an earlier graph has exactly this arc, between the same spaces and with the same table."""
        before = self.known
        if before is None or not any(arc is other for other in before.arcs.get(self.key(arc), ())):
            return False
        same = [before.spaces.get(name) is self.spaces.get(name) for name in (arc.source, arc.target)]
        if isinstance(arc.does, Meet):
            same.append(before.spaces.get(arc.does.space) is self.spaces.get(arc.does.space))
        if arc.table is not None:
            same.append(before.tables.get(arc.table) is self.tables.get(arc.table))
        return all(same)

    def outgoing(self) -> dict[str, list[Arc]]:
        """The arcs from each space, in order of definition. An arc across domains counts once both domains have it."""
        by_source: dict[str, list[Arc]] = {}
        for arc, *more in self.arcs.values():
            if more or not self.crosses(arc):
                for source in arc.sources:
                    by_source.setdefault(source, []).append(arc)
        return by_source
