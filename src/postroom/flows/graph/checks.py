"""What must hold of a graph before it is loaded: named checks, each a function that yields every problem it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from postroom.errors import FlowInvalid
from postroom.flows.graph.graph import Graph
from postroom.flows.graph.streamed import stream_ends, stream_ways
from postroom.flows.language import aggregates, inference
from postroom.flows.language.definitions import Arc, Collapse, Meet, Merge, Select, Space, Statement, Table, Transform
from postroom.flows.language.reader import META
from postroom.flows.language.sql import Variables, made, matches, widened
from postroom.flows.language.types import UNTYPED, Scalar, Tuple, Type, accepts
from postroom.flows.language.words import fail_all
from postroom.limits import FLOW_PLAN_CHARS_MAX, FLOW_WAYS_MAX
from postroom.model.definitions import Position, Problem

Found = Iterator[tuple[Position, str]]


def check(statements: Sequence[Statement], known: Graph | None = None) -> Graph:
    """The graph of statements; raises with all problems of all checks.

    ``known`` is a graph that was checked before: its unchanged arcs are not checked again.
    """
    graph = replace(Graph.of(statements), known=known)
    problems: list[Problem] = []
    for test in CHECKS:
        if problems and test is arc_plan:
            break  # only what is right can be planned
        rule = test.__name__.replace("_", "-")
        problems += [Problem(position, what, rule) for position, what in test(graph, statements)]
        if problems and test in (*_GROUND, cycle):
            break  # what comes behind would tell the same in other words
    if problems:
        fail_all(problems)
    return graph


def typed(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with a type for each space whose first arc implies one."""
    spaces = {space.name: space for space in Graph.of(statements).spaces.values()}
    tables = {statement.name: statement for statement in statements if isinstance(statement, Table)}
    sound = True
    while sound:
        sound = False
        for arc in (statement for statement in statements if isinstance(statement, Arc)):
            source, target = spaces.get(arc.source), spaces.get(arc.target)
            if source is None or target is None or target.type != UNTYPED or source.type == UNTYPED:
                continue
            type = _delivered(arc, source.type, spaces, tables)
            if type is not None:
                spaces[arc.target] = replace(target, type=type)
                sound = True
    return [
        replace(statement, type=spaces[statement.name].type)
        if isinstance(statement, Space) and statement.type == UNTYPED
        else statement
        for statement in statements
    ]


def _delivered(arc: Arc, source: Type, spaces: Mapping[str, Space], tables: Mapping[str, Table]) -> Type | None:
    """The type that an arc delivers; None if it has none, which another check reports."""
    if isinstance(arc.does, Select | Merge):
        return source
    try:
        if isinstance(arc.does, Collapse):
            return aggregates.check_collapse(arc.does, source, None)
        if isinstance(arc.does, Meet):
            other = spaces.get(arc.does.space)
            return None if other is None else aggregates.check_meet(arc.does, source, other.type, None)
        bound = inference.bind(arc.does.pattern, source)
        if arc.does.join is not None and arc.does.join.table in tables:
            bound = inference.bind(arc.does.join.pattern, tables[arc.does.join.table].type, bound)
        return inference.type_of(arc.does.result, bound)
    except FlowInvalid:
        return None


def check_tables(statements: Sequence[Statement]) -> None:
    """What must hold of tables before their rows can be read."""
    problems = [Problem(position, what, "table-rows") for position, what in table_rows(Graph.of(statements), ())]
    if problems:
        fail_all(problems)


def name_twice(graph: Graph, statements: Sequence[Statement]) -> Found:
    """Names of spaces, tables and arcs are unique; an arc across domains is written in both."""
    for kind in (Space, Table):
        firsts: dict[str, Statement] = {}
        for statement in statements:
            if isinstance(statement, kind) and firsts.setdefault(statement.name, statement) is not statement:
                yield statement.position, f"{statement.name} is already at {firsts[statement.name].position}"
    yield from _arcs_twice(graph)


def _arcs_twice(graph: Graph) -> Found:
    """An arc's name is its own in each domain that it belongs to."""
    known: dict[tuple[str, str], Arc] = {}
    for key, (first, *more) in graph.arcs.items():
        for arc in more:
            if arc.domain == first.domain:
                yield arc.position, f"{arc.name} is already at {first.position}"
        for domain in key.split(":")[:-1]:
            other = known.setdefault((domain, first.name), first)
            if other is not first:
                yield first.position, f"{first.name} is already at {other.position}"


def arc_ends(graph: Graph, _: Sequence[Statement]) -> Found:
    """An arc leads from a space to another one."""
    for arc in _arcs(graph):
        for name in (arc.source, arc.target):
            if name not in graph.spaces:
                yield arc.position, f"arc {arc.name}: there is no space {name}"
        if arc.source == arc.target:
            yield arc.position, f"arc {arc.name} leads from {arc.source} to itself"


def meta_space(graph: Graph, statements: Sequence[Statement]) -> Found:
    """A meta-space has the events about changes; only authorised principals publish there."""
    for statement in statements:
        if isinstance(statement, Space) and statement.name == META:
            yield statement.position, f"{META} is not a name for a space: meta-spaces are {META}:DOMAIN"
    for arc in _arcs(graph):
        if arc.target.startswith(f"{META}:"):
            yield arc.position, f"arc {arc.name}: nothing flows into {arc.target}; publish there what is to change"


def arc_state(graph: Graph, _: Sequence[Statement]) -> Found:
    """Two spaces that a join combines are different ones of one domain, and the state of the join has one place."""
    for arc in _arcs(graph):
        if not isinstance(arc.does, Meet):
            continue
        other = graph.spaces.get(arc.does.space)
        if other is None:
            yield arc.position, f"arc {arc.name}: there is no space {arc.does.space}"
        elif other.name in (arc.source, arc.target):
            yield arc.position, f"arc {arc.name} joins {other.name} with itself"
        elif other.domain != graph.spaces[arc.source].domain:
            domain = graph.spaces[arc.source].domain
            what = f"{other.name} is in the domain {other.domain} and {arc.source} in {domain}"
            yield arc.position, f"arc {arc.name}: {what}; spaces that meet are of one domain"
        elif arc.durable:
            yield arc.position, f"arc {arc.name}: an arc that joins two spaces cannot be durable"


def arc_domain(graph: Graph, _: Sequence[Statement]) -> Found:
    """An arc is written in the domain of its spaces; one across domains in both, identically."""
    for first, *more in graph.arcs.values():
        domains = [graph.spaces[name].domain for name in (first.source, first.target)]
        for arc in (first, *more):
            if arc.domain not in domains:
                owners = " and ".join(dict.fromkeys(domains))
                yield arc.position, f"arc {arc.name} belongs to {owners}, whose spaces it joins, not to {arc.domain}"
        for arc in more:
            if (arc.source, arc.target, arc.does, arc.durable) != (
                first.source,
                first.target,
                first.does,
                first.durable,
            ):
                yield arc.position, f"arc {arc.name} is not what {first.domain} says of it at {first.position}"


def table_rows(graph: Graph, _: Sequence[Statement]) -> Found:
    """A table's rows are tuples of simple values with names."""
    for table in graph.tables.values():
        fields = table.type.fields if isinstance(table.type, Tuple) else ()
        if not fields or not all(field.name and isinstance(field.type, Scalar) for field in fields):
            what = f"the rows of table {table.name} are [name: type, …] of simple types, not {table.type}"
            yield table.position, what


def arc_type(graph: Graph, _: Sequence[Statement]) -> Found:
    """A pattern can match its source, and what an arc delivers fits its target."""
    for arc in (arc for arc in _arcs(graph) if not graph.knows(arc)):
        source, target = graph.spaces[arc.source], graph.spaces[arc.target]
        try:
            if isinstance(arc.does, Transform):
                _check_transform(graph, arc, arc.does, source, target)
            elif isinstance(arc.does, Collapse):
                aggregates.check_collapse(arc.does, source.type, target.type)
            elif isinstance(arc.does, Meet):
                aggregates.check_meet(arc.does, source.type, graph.spaces[arc.does.space].type, target.type)
            elif isinstance(arc.does, Select):
                inference.bind(arc.does.pattern, source.type)
        except FlowInvalid as error:
            (problem,) = error.facts["problems"]
            yield problem.position, f"arc {arc.name}: {problem.what}"
        if isinstance(arc.does, Select | Merge) and not accepts(target.type, source.type):
            what = f"arc {arc.name}: {source.name} has {source.type}, and {target.name} takes {target.type}"
            yield arc.position, what


def _check_transform(graph: Graph, arc: Arc, does: Transform, source: Space, target: Space) -> None:
    bound = inference.bind(does.pattern, source.type)
    if does.join is not None:
        table = graph.tables.get(does.join.table)
        if table is None:
            fail_all([Problem(arc.position, f"there is no table {does.join.table}", "arc-type")])
        bound = inference.bind(does.join.pattern, table.type, bound)
    inference.result(does.result, target.type, bound)


def arc_plan(graph: Graph, _: Sequence[Statement]) -> Found:
    """Spark can plan the arc on its own: the text of its expressions is within a limit."""
    for arc in (arc for arc in _arcs(graph) if not graph.knows(arc)):
        size = len(_planned(graph, arc))
        if size > FLOW_PLAN_CHARS_MAX:
            what = f"arc {arc.name} would be {size} characters of SQL, and {FLOW_PLAN_CHARS_MAX} can be read"
            yield arc.position, what


def _planned(graph: Graph, arc: Arc) -> str:
    """An arc in the words of Spark."""
    source, target = graph.spaces[arc.source].type, graph.spaces[arc.target].type
    if isinstance(arc.does, Merge):
        return widened("event", source, target)
    variables = Variables()
    plan = matches(arc.does.pattern, source, "event", variables)
    if isinstance(arc.does, Transform):
        if arc.does.join is not None:
            plan += matches(arc.does.join.pattern, graph.tables[arc.does.join.table].type, "row", variables)
        plan += made(arc.does.result, target, variables)
    elif isinstance(arc.does, Meet):
        plan += matches(arc.does.other, graph.spaces[arc.does.space].type, "other", variables)
        plan += made(arc.does.result, target, variables)
    return plan


def cycle(graph: Graph, _: Sequence[Statement]) -> Found:
    """No event comes back to a space it has passed."""
    outgoing = graph.outgoing()
    done: set[str] = set()
    for start in outgoing:
        path: list[str] = []
        walk = [(start, iter(outgoing[start]))] if start not in done else []
        while walk:
            space, arcs = walk[-1]
            if len(path) < len(walk):
                path.append(space)
            arc = next(arcs, None)
            if arc is None:
                done.add(path.pop())
                walk.pop()
            elif arc.target in path:
                round_trip = [*path[path.index(arc.target) :], arc.target]
                yield arc.position, f"arc {arc.name} closes a circle: {' -> '.join(round_trip)}"
            elif arc.target not in done:
                walk.append((arc.target, iter(outgoing.get(arc.target, ()))))


def ways(graph: Graph, _: Sequence[Statement]) -> Found:
    """There are few enough paths from a space for one plan; an arc counts once on each path."""
    outgoing = graph.outgoing()
    counts: dict[str, int] = {}

    def count(space: str) -> int:
        todo = [space]
        while todo:
            targets = [arc.target for arc in outgoing.get(todo[-1], ())]
            missing = [name for name in targets if name not in counts]
            if missing:
                todo += missing
            else:
                counts[todo.pop()] = sum(1 + counts[name] for name in targets)
        return counts[space]

    for name in outgoing:
        if count(name) > FLOW_WAYS_MAX:
            yield graph.spaces[name].position, f"more than {FLOW_WAYS_MAX} arcs on all paths from {name}"
            return


def _arcs(graph: Graph) -> Iterator[Arc]:
    return (arc for arcs in graph.arcs.values() for arc in arcs)


Check = Callable[[Graph, Sequence[Statement]], Found]
_GROUND: tuple[Check, ...] = (name_twice, arc_ends, meta_space, arc_state)
CHECKS: tuple[Check, ...] = (
    *_GROUND,
    arc_domain,
    table_rows,
    arc_type,
    cycle,
    ways,
    stream_ends,
    stream_ways,
    arc_plan,
)
