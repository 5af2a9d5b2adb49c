"""The rule compiler: all rules of a queue and of its slicings become one query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from postroom.model.types import MessageType
from postroom.rules.compilation.caught import caught_edits, with_places
from postroom.rules.compilation.environment import (
    Environment,
    environment,
    finished,
    library_edited,
    library_environment,
    reference,
)
from postroom.rules.compilation.plan import (
    CATCHING,
    Absence,
    Index,
    Plan,
    PlannedProperty,
    Query,
    QueuePlan,
    Source,
    Target,
)
from postroom.rules.compilation.translation import (
    Composed,
    Surroundings,
    cast,
    casts,
    closing_edits,
    collection_variable,
    composed,
    computed,
    declared,
    indexed,
    prolog,
)
from postroom.rules.compilation.updates import RAISE, update_edits
from postroom.rules.language.body import Body
from postroom.rules.language.definitions import Expression, Program, PropertyDefinition, RuleDefinition
from postroom.rules.language.edits import Edit, Edited, edited
from postroom.rules.language.expression import read

_TRY = re.compile(r"\btry\b")


def compiled(
    program: Program,
    version: int,
    mark: str,
    *,
    types: Mapping[str, MessageType] | None = None,
    collections: Mapping[str, str] | None = None,
    known: frozenset[str] = frozenset(),
    filled: frozenset[str] | None = None,
) -> Plan:
    """The plan of a checked program; with ``filled`` it uses only these indexes."""
    indexes: dict[str, Index] = {}
    for queue in program.watched:  # what some rule reads by an index, others must keep up to date
        reader = Surroundings(program, queue, mark, filled=filled)
        for _ in _groups(program, reader):
            pass
        indexes |= reader.indexes
    indexed_queues = frozenset(index.queue for index in indexes.values())
    arounds = {queue: Surroundings(program, queue, mark, indexed_queues, filled) for queue in program.watched}
    groups = {queue: list(_groups(program, arounds[queue])) for queue in program.watched}
    masters = dict.fromkeys(program.collections, "<c/>") | dict(collections or {})
    # A worker reads the documents of a query it has not seen: other documents are another query.
    edition = blake2b("".join(masters.values()).encode(), digest_size=8).hexdigest()
    targets = {name: target(program, name, indexes, mark) for name in program.mentioned}
    queues = {
        queue: _queue_plan(program, arounds[queue], groups[queue], indexes, masters, edition)
        for queue in program.watched
    }
    errors = {queue: tuple(program.error_queues(queue, None)) for queue in [*program.watched, *program.queues]}
    for queue in program.watched:
        for rule in program.rules_of(queue):
            errors[f"{queue} {rule.name}"] = tuple(program.error_queues(queue, rule.name))
    echoes = tuple(definition.name for definition in program.queues.values() if definition.kind == "echo")
    parameters = {collection_variable(name): text for name, text in masters.items()}
    absences = {
        rule.due: Absence(rule.waiting, rule.target if rule.target in program.slicings else None)
        for rule in program.rules.values()
        if rule.unless is not None
    }
    return Plan(version, mark, queues, targets, indexes, parameters, types or {}, errors, echoes, known, absences)


@dataclass
class Group:
    """Rules of a queue whose modules have the same declarations: one query."""

    around: Surroundings
    first: int  # the number of the first rule
    rules: list[tuple[RuleDefinition, Composed]] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + len(self.rules))


def _groups(program: Program, around: Surroundings) -> Iterator[Group]:
    groups: list[Group] = []
    for number, rule in enumerate(program.rules_of(around.queue)):
        known = environment(program, rule.module)
        if not groups or groups[-1].around.environment.key != known.key:
            groups.append(Group(around.within(known), number))
        group = groups[-1]
        body = read(rule.body.text, 0, len(rule.body.text), known.prolog.namespaces)
        group.rules.append((rule, composed(rule, group.around, number, body)))
        others = [other for other in (rule.unless, rule.deadline) if other is not None]
        group.bodies.append(body)
        group.bodies += [read(other.text, 0, len(other.text), known.prolog.namespaces) for other in others]
    for group in groups:
        declared(group.around, group.bodies)  # what functions read
        yield group


def read_alone(rule: RuleDefinition, program: Program, queue: str, mark: str) -> Surroundings:
    """What a single rule reads."""
    known = environment(program, rule.module)
    around = Surroundings(program, queue, mark, environment=known)
    composed(rule, around, 0)
    declared(around, [read(rule.body.text, 0, len(rule.body.text), known.prolog.namespaces)])
    return around


def target(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> Target:
    defined = program.queues.get(queue)
    properties = tuple(
        PlannedProperty(
            definition.name,
            definition.type,
            definition.inherited,
            definition.fixed,
            definition.value_for(queue) is not None,
        )
        for definition in program.properties_of(queue)
    )
    mine = tuple(index.name for index in indexes.values() if index.queue == queue)
    made = Target(
        queue,
        properties,
        tuple((slicing.name, slicing.property) for slicing in program.slicings_into(queue)),
        mine,
        defined.schema_text if defined else None,
        echo=bool(defined and defined.kind == "echo"),
        connection=bool(defined and defined.kind == "incomingGateway"),
    )
    if not properties and not mine:
        return made
    return replace(made, entry_queries=tuple(_entry_queries(program, queue, indexes, mark)))


def _properties(
    program: Program, queue: str, known: Environment
) -> Iterator[tuple[PropertyDefinition, Expression, Edited, str]]:
    """The computed properties of a queue under the same declarations, with their expressions."""
    for definition in program.properties_of(queue):
        value = definition.value_for(queue)
        if value is not None and environment(program, definition.module).key == known.key:
            expression = property_value(value, known, definition.type)
            yield definition, value, expression, computed(definition, expression.text)


def _foreign(program: Program, queue: str, known: Environment) -> bool:
    """Whether a property of a queue is computed under other declarations."""
    return any(
        definition.value_for(queue) is not None and environment(program, definition.module).key != known.key
        for definition in program.properties_of(queue)
    )


def _worked_out(program: Program, queue: str, indexes: Mapping[str, Index], mark: str, known: Environment) -> list[str]:
    """The expressions computed for a new message of a queue, over $qs:message, $qs:p (explicit) and $qs:h."""
    parts = [text for _, _, _, text in _properties(program, queue, known)]
    return parts + [indexed(index, mark) for index in indexes.values() if index.queue == queue]


def property_value(value: Expression, known: Environment, type: str = "string") -> Edited:
    """A value expression in plain XQuery, with a prefix for error places."""
    body = read(value.text, 0, len(value.text), known.prolog.namespaces, "in a value")
    edits = [Edit(call.start, call.end, "$qs:message") for call in body.calls if call.name == "qs:message"]
    edits += [*closing_edits(body), *update_edits(body), *caught_edits(value.text, 0, len(value.text))]
    end = len(value.text)
    if type == "boolean" and value.text.strip() in (
        "true",
        "false",
    ):  # as the paper writes it; to XQuery this would be an element's name
        last = len(value.text.rstrip())
        edits.append(Edit(last, last, "()"))
    before = Edit(0, 0, f"{RAISE}, {cast(type)}, $qs:message ! (")
    return edited(value.text, 0, end, [before, *edits, Edit(end, end, ")")])


def _entry_queries(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> Iterator[Query]:
    """Queries for messages from outside: convert given properties, compute the rest.

    One query for each set of declarations; usually there is one.
    """
    valued = [definition for definition in program.properties_of(queue) if definition.value_for(queue) is not None]
    arounds = {known.key: known for known in (environment(program, definition.module) for definition in valued)}
    given = "".join(
        f'if (@n = "{definition.name}") then qs:as-{definition.type}({RAISE}, '
        f'{cast(definition.type)}, "{definition.name}", string(.)) else '
        for definition in program.properties_of(queue)
    )
    types = {definition.type: None for definition in program.properties_of(queue)}
    set_by_sender = f"let $qs:p := $qs:m/Q{{}}p ! ({given}qs:as-given({RAISE}, @n, qs:given(.))) return"
    for number, known in enumerate(arounds.values() or (Environment(),)):
        around = Surroundings(program, queue, mark, environment=known)
        parts = ["$qs:p"] if not number else []
        parts += _worked_out(program, queue, {} if number else indexes, mark, known)
        parts_text = f"{set_by_sender} ({', '.join(parts)})"
        ours = (
            f"for $qs:m in /Q{{}}b/Q{{}}m let $qs:message := qs:doc($qs:m/Q{{}}d) let $qs:h := () return "
            f"{answered(_guarded(parts_text, 0, mark, careful=True))}"
        )
        written = [value.text for _, value, _ in _valued(program, [queue], around)]
        text = f"{prolog(mark, (), around)} {casts(types, mark)}{_catching(known, written)}\n{ours}"
        text = finished(text, known, mark)
        sources = sources_of(text, _declared(around), _valued(program, [queue], around))
        libraries = _libraries(known)
        yield Query(with_places(text, sources, libraries), sources=sources, libraries=libraries)


def _declared(around: Surroundings, bodies: Sequence[Body] = ()) -> list[tuple[Edited, Expression, str]]:
    """The users' declarations in a query."""
    made, known = declared(around, bodies), around.environment
    return [] if made is None or known.where is None else [(made, known.where, known.file)]


def _valued(program: Program, queues: Iterable[str], around: Surroundings) -> list[tuple[Edited, Expression, str]]:
    return [
        (expression, value, definition.position.file)
        for queue in queues
        if not _foreign(program, queue, around.environment) or queue == around.queue
        for definition, value, expression, _ in _properties(program, queue, around.environment)
    ]


def _catching(known: Environment, written: Iterable[str]) -> str:
    """A marker for queries in which a user catches errors."""
    texts = [known.prolog.text, *(source.said.text for _, source in _libraries(known)), *written]
    return f" {CATCHING}" if any(_TRY.search(text) for text in texts) else ""


def _libraries(known: Environment) -> tuple[tuple[str, Source], ...]:
    """The library modules that some declarations import, at any depth."""
    libraries: dict[str, tuple[str, Source]] = {}
    todo = [imported.uri for imported in known.prolog.imports]
    while todo:
        uri = todo.pop()
        if uri not in libraries:
            library = known.libraries[uri]
            source = Source(
                1, library_edited(known.libraries, uri), Expression(library.text, 1, 1), library.position.file
            )
            libraries[uri] = (reference(known.libraries, uri), source)
            todo += [imported.uri for imported in library_environment(known.libraries, uri).prolog.imports]
    return tuple(libraries.values())


def sources_of(text: str, *written: Iterable[tuple[Edited, Expression, str]]) -> tuple[Source, ...]:
    """The positions of user-written pieces in a query; they are in this order, each on its own lines."""
    sources, at = [], 0
    for made, expression, file in (piece for some in written for piece in some):
        begin = text.find(f"\n{made.text}\n", at)
        if begin >= 0:
            sources.append(Source(text.count("\n", 0, begin) + 2, made, expression, file))
            at = begin + len(made.text)
    return tuple(sources)


def answered(text: str) -> str:
    """The part of the query that returns the results, message by message."""
    return f"($qs:r, {text})"


def _guarded(text: str, number: int, mark: str, *, careful: bool) -> str:
    """An expression whose errors are caught.

    Saxon cannot catch an error after output has begun (XTDE3530), and it streams output. A ``careful`` answer is
    collected in an element first, which is slower.
    """
    caught = (
        f'<x-{mark} r="{number}" c="{{$err:code}}" v="{{$err:description}}" l="{{$err:line-number}}" '
        f'o="{{$err:column-number}}" m="{{$err:module}}"/>'
    )
    if not careful:
        return f"(try {{ {text} }} catch * {{ {caught} }})"
    # Not a direct constructor, which would say what names without a prefix mean inside of it.
    made = f"element Q{{}}g-{mark}"
    return f"(try {{ {made} {{ {text} }} }} catch * {{ {made} {{ {caught} }} }})/node()"


def _queue_plan(
    program: Program,
    around: Surroundings,
    groups: Sequence[Group],
    indexes: Mapping[str, Index],
    collections: Iterable[str],
    edition: str,
) -> QueuePlan:
    rules = [rule for group in groups for rule, _ in group.rules]
    for rule in rules:
        if rule.target in program.slicings:
            around.slicing(rule.target)
    inherited = tuple(candidate.name for candidate in program.properties.values() if candidate.inherited)
    definition = program.queues.get(around.queue)
    return QueuePlan(
        around.queue,
        definition.priority if definition else 0,
        tuple(_query(program, group, indexes, tuple(collections), edition) for group in groups),
        tuple(rule.name for rule in rules),
        tuple(around.reads),
        tuple(around.properties),
        tuple(around.system),
        inherited,
        tuple((name, program.slicings[name].property) for name in around.slicings),
        tuple(around.templates),
        tuple((rule.position.file, rule.body) for rule in rules),
    )


def _query(
    program: Program, group: Group, indexes: Mapping[str, Index], collections: tuple[str, ...], edition: str
) -> Query:
    around, known = group.around, group.around.environment
    written = [rule.body.text for rule, _ in group.rules] + [
        value.text for _, value, _ in _valued(program, around.into, around)
    ]
    before = f"{head(program, around, indexes, collections, group.bodies)} (: {edition} :){_catching(known, written)}"

    def text(careful: bool) -> str:
        calls = (
            rule_call(program, around, number, rule, body.text, careful=careful)
            for number, (rule, body) in zip(group.numbers, group.rules, strict=True)
        )
        return finished(f"{before}\n{main(', '.join(calls))}", known, around.mark)

    quick = text(careful=False)
    values = _valued(program, around.into, around)
    bodies = [(made, expression, rule.position.file) for rule, body in group.rules for made, expression in body.pieces]
    sources = sources_of(quick, _declared(around, group.bodies), values, bodies)
    foreign = frozenset(queue for queue in program.mentioned if _foreign(program, queue, known))
    libraries = _libraries(known)
    quick, careful = (with_places(query, sources, libraries) for query in (quick, text(careful=True)))
    return Query(quick, careful, sources, group.numbers, foreign, libraries, _users(group))


def _users(group: Group) -> dict[str, tuple[int, ...]]:
    """For each local name of a declared or imported variable, the numbers of the rules that use it."""
    users: dict[str, tuple[int, ...]] = {}
    for number, (rule, _) in zip(group.numbers, group.rules, strict=True):
        pieces = [piece.text for piece in (rule.body, rule.unless, rule.deadline) if piece is not None]
        for name in sorted(group.around.environment.used(pieces)):
            users[name] = (*users.get(name, ()), number)
    return users


def head(
    program: Program,
    around: Surroundings,
    indexes: Mapping[str, Index],
    collections: tuple[str, ...],
    bodies: Sequence[Body],
) -> str:
    """Everything before the main query."""
    mark, known = around.mark, around.environment
    types = {definition.type: None for definition in program.properties.values()}
    functions = []
    for queue, number in around.into.items():
        parts = [] if _foreign(program, queue, known) else _worked_out(program, queue, indexes, mark, known)
        # The form is looked at first: of what is not one document nothing is worked out, so its error is the one told.
        inside = f"let $qs:message := qs:made($b) return ({', '.join(parts)})"
        worked_out = f", (if ($qs:f) then ({inside}) else ())" if parts else ""
        # Flat, with the message behind the element that tells of it: what is not wrapped is not copied.
        functions.append(
            f"declare function qs:into-{number}($qs:e as function(*), $qs:r as xs:string, $b as item()*, "
            f"$qs:p as element()*, "
            f"$qs:h as xs:string*) as node()* {{ let $qs:f := qs:form($qs:e, $b) return ("
            f'<e-{mark} q="{queue}" r="{{$qs:r}}" f="{{$qs:f}}"/>, qs:content($b), $qs:p{worked_out}) }};'
        )
    templates = [
        f'declare variable $qs:t{number} := processing-instruction {{ "t-{mark}" }} {{ "{number}" }};'
        for number in around.templates.values()
    ]
    return " ".join((prolog(mark, collections, around, bodies), casts(types, mark), *templates, *functions))


def main(rules: str) -> str:
    """The main query."""
    return (
        "let $qs:all := /Q{}b/Q{}d ! qs:doc(.) "
        "let $qs:sets := map:merge(/Q{}b/Q{}s ! map:entry(string(@id), qs:some($qs:all, string(@d)))) "
        "for $qs:m in /Q{}b/Q{}m "
        "let $qs:message := if ($qs:m/@d) then $qs:all[xs:integer($qs:m/@d)] else qs:doc($qs:m/Q{}d) "
        "let $qs:h := tokenize($qs:m/@h) "
        f"return {answered(rules)}"
    )


def rule_call(
    program: Program, around: Surroundings, number: int, rule: RuleDefinition, body: str, *, careful: bool = False
) -> str:
    """A rule in the query, with its own try and number; slicing rules only for messages with a slice."""
    guarded = _guarded(f"$qs:message ! (\n{body}\n)", number, around.mark, careful=careful)
    if rule.target in program.slicings:
        return f"(if (exists($qs:m/@k{around.slicing(rule.target)})) then {guarded} else ())"
    return guarded
