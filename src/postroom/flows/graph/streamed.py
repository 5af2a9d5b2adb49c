"""The part of a graph whose events come from outside: its spaces, and the checks on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from postroom.flows.graph.graph import Graph
from postroom.flows.language.definitions import Meet, Space, Statement
from postroom.flows.language.outside import type_problem
from postroom.flows.language.types import UNTYPED
from postroom.model.definitions import Position, Problem, nearest
from postroom.store.tables.endpoints import SINK, SOURCE, Endpoint

Found = Iterator[tuple[Position, str]]


def sources(graph: Graph) -> list[str]:
    """The spaces whose events come from outside, in the order of their names."""
    return sorted(name for name, space in graph.spaces.items() if space.source is not None)


def behind(graph: Graph, spaces: Collection[str]) -> frozenset[str]:
    """The given spaces, and all that can be reached from them."""
    outgoing, reached, todo = graph.outgoing(), set(spaces), list(spaces)
    while todo:
        for arc in outgoing.get(todo.pop(), ()):
            if arc.target not in reached:
                reached.add(arc.target)
                todo.append(arc.target)
    return frozenset(reached)


def streamed(graph: Graph) -> frozenset[str]:
    """The spaces that events from outside can reach."""
    return behind(graph, sources(graph))


def streams(graph: Graph) -> list[tuple[str, ...]]:
    """The sources, grouped where their events may meet."""
    parts: list[tuple[set[str], frozenset[str]]] = []
    for name in sources(graph):
        some, reached = {name}, behind(graph, [name])
        for part in [part for part in parts if part[1] & reached]:
            parts.remove(part)
            some, reached = some | part[0], reached | part[1]
        parts.append((some, reached))
    return sorted(tuple(sorted(some)) for some, _ in parts)


# --- checks -------------------------------------------------------------------------------------------------------


def stream_ends(graph: Graph, statements: Sequence[Statement]) -> Found:
    """Spaces with a source have no arcs into them, spaces with a sink none out of them; both have a type."""
    outgoing = graph.outgoing()
    for space in (
        statement for statement in statements if isinstance(statement, Space) and statement.outside is not None
    ):
        outside = space.outside
        assert outside is not None
        if space.type == UNTYPED:
            yield space.position, f"space {space.name}: its type is missing, before from and to"
        elif (why := type_problem(outside, space.type)) is not None:
            yield space.position, f"space {space.name}: {why}"
        if space.sink is not None and outgoing.get(space.name):
            arc = outgoing[space.name][0]
            yield arc.position, f"arc {arc.name}: events of {space.name} go outside, and no arc leads on"
    for arcs in graph.arcs.values():
        for arc in arcs:
            if graph.spaces[arc.target].source is not None:
                yield arc.position, f"arc {arc.name}: events of {arc.target} come from outside, and no arc leads there"


def stream_ways(graph: Graph, _: Sequence[Statement]) -> Found:
    """Events from outside and events published in the room meet only where the room keeps both."""
    outgoing, reached = graph.outgoing(), streamed(graph)
    for source, arcs in outgoing.items():
        for arc in arcs:
            target = graph.spaces[arc.target]
            if source in reached:
                if arc.durable:
                    what = f"{source} has events from outside, and what passes it is not kept for later"
                    yield arc.position, f"arc {arc.name} cannot be durable: {what}"
                if isinstance(arc.does, Meet) and not reached.issuperset(arc.sources):
                    other = next(name for name in arc.sources if name not in reached)
                    yield arc.position, f"arc {arc.name}: {other} has no events from outside, and they cannot meet"
            elif target.sink is not None:
                yield (
                    arc.position,
                    f"arc {arc.name}: only events from outside go to {target.name}, not those of {source}",
                )
            elif target.name in reached and target.name in outgoing:
                what = f"{target.name} leads events from outside on, and {source} has events of the room"
                yield arc.position, f"arc {arc.name}: {what}"


def gateway_problems(statements: Sequence[Statement], endpoints: Mapping[str, Endpoint]) -> list[Problem]:
    """The gateways that spaces name and that are missing or of the wrong kind."""
    problems = []
    for space in (
        statement for statement in statements if isinstance(statement, Space) and statement.outside is not None
    ):
        outside, wanted = space.outside, SOURCE if space.source is not None else SINK
        assert outside is not None
        if not outside.gateway:
            continue
        endpoint = endpoints.get(outside.gateway)
        if endpoint is None:
            advice = f"; an operator adds it with: postroom gateway add {outside.gateway} {outside.kind} …"
            why = f"this room has no gateway {outside.gateway}{nearest(outside.gateway, endpoints)}{advice}"
        elif endpoint.transport != outside.kind:
            why = f"the gateway {outside.gateway} is {endpoint.transport}, not {outside.kind}"
        elif wanted not in endpoint.does:
            why = f"the gateway {outside.gateway} is no {wanted}, as it was added"
        else:
            continue
        problems.append(Problem(outside.position, f"space {space.name}: {why}", "gateway"))
    return problems
