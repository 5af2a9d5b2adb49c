"""The rule compiler: all rules of a queue and of its slicings become one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b

from postroom.model.types import MessageType
from postroom.rules.compilation.plan import Index, Plan, PlannedProperty, QueuePlan, Target
from postroom.rules.compilation.translation import (
    SYSTEM,
    Surroundings,
    casts,
    collection_variable,
    computed,
    indexed,
    prolog,
    translated,
)
from postroom.rules.language.definitions import Expression, Program, RuleDefinition
from postroom.rules.language.edits import Edit, Edited, edited
from postroom.rules.language.expression import read


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
    """The plan of a program that has passed its checks; with ``filled`` it reads through these indexes alone."""
    indexes: dict[str, Index] = {}
    for queue in program.watched:  # what some rule reads by an index, others must keep up to date
        reader = Surroundings(program, queue, mark, filled=filled)
        for rule in program.rules_of(queue):
            translated(rule, reader)
        indexes |= reader.indexes
    indexed_queues = frozenset(index.queue for index in indexes.values())
    arounds, bodies = {}, {}
    for queue in program.watched:
        around = arounds[queue] = Surroundings(program, queue, mark, indexed_queues, filled)
        rules = enumerate(program.rules_of(queue))
        bodies[queue] = [(rule, translated(rule, around, number)) for number, rule in rules]
    masters = dict.fromkeys(program.collections, "<c/>") | dict(collections or {})
    # A worker reads the documents of a query it has not seen: other documents are another query.
    edition = blake2b("".join(masters.values()).encode(), digest_size=8).hexdigest()
    targets = {name: target(program, name, indexes, mark) for name in _reachable(program)}
    queues = {
        queue: _queue_plan(program, arounds[queue], bodies[queue], indexes, masters, edition)
        for queue in program.watched
    }
    errors = {queue: tuple(program.error_queues(queue, None)) for queue in [*program.watched, *program.queues]}
    for queue in program.watched:
        for rule in program.rules_of(queue):
            errors[f"{queue} {rule.name}"] = tuple(program.error_queues(queue, rule.name))
    echoes = tuple(each.name for each in program.queues.values() if each.kind == "echo")
    parameters = {collection_variable(name): text for name, text in masters.items()}
    return Plan(version, mark, queues, targets, indexes, parameters, types or {}, errors, echoes, known)


def _reachable(program: Program) -> dict[str, None]:
    """Every queue that the program says something about."""
    names = dict.fromkeys(program.queues)
    for definition in program.properties.values():
        names.update(dict.fromkeys(definition.queues))
    for queue in program.watched:
        names.setdefault(queue)
    return names


def target(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> Target:
    defined = program.queues.get(queue)
    properties = tuple(
        PlannedProperty(each.name, each.type, each.inherited, each.fixed, each.value_for(queue) is not None)
        for each in program.properties_of(queue)
    )
    slicings = [(slicing.name, slicing.property) for slicing in program.slicings_of(queue)]
    slicings += [(each.name, each.property) for each in program.slicings.values() if each.property in SYSTEM]
    slicings = list(dict.fromkeys(slicings))  # a message that waits belongs to its connection, too
    mine = tuple(index.name for index in indexes.values() if index.queue == queue)
    made = Target(
        queue,
        properties,
        tuple(slicings),
        mine,
        defined.schema_text if defined else None,
        echo=bool(defined and defined.kind == "echo"),
        connection=bool(defined and defined.kind == "incomingGateway"),
    )
    return replace(made, entry_query=_entry_query(program, queue, indexes, mark)) if properties or mine else made


def _worked_out(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> list[str]:
    """The expressions for what a new message of a queue gets; over $qs:message, $qs:p (explicit) and $qs:h."""
    parts = []
    for each in program.properties_of(queue):
        value = each.value_for(queue)
        if value is not None:
            parts.append(computed(each, property_value(value), mark))
    parts += [indexed(index, mark) for index in indexes.values() if index.queue == queue]
    return parts


def property_value(value: Expression) -> Expression:
    """A value expression with our own functions in XQuery's words."""
    body = read(value.text, 0, len(value.text))
    edits = [Edit(each.start, each.end, "$qs:message") for each in body.calls if each.name == "qs:message"]
    return Expression(edited(value.text, 0, len(value.text), edits).text, value.line, value.column)


def _entry_query(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> str:
    """The query for messages that come from outside: type what the sender gave, work out the rest."""
    parts = _worked_out(program, queue, indexes, mark)
    given = "".join(
        f'if (@n = "{each.name}") then qs:as-{each.type}("{each.name}", string(.)) else '
        for each in program.properties_of(queue)
    )
    types = {each.type: None for each in program.properties_of(queue)}
    set_by_sender = f"let $qs:p := $qs:m/p ! ({given}qs:as-given(@n, qs:given(.))) return"
    said = f"{set_by_sender} ({', '.join(['$qs:p', *parts])})"
    return (
        f"{prolog(mark, ())} {casts(types, mark)}\n"
        f"for $qs:m in /b/m let $qs:message := qs:doc($qs:m/d) let $qs:h := () return "
        f"{answered(_guarded(said, 0, mark, careful=True))}"
    )


def answered(said: str) -> str:
    """What is said of each message, in their order."""
    return f"($qs:r, {said})"


def _guarded(said: str, number: int, mark: str, *, careful: bool) -> str:
    """An expression whose errors are caught.

    Saxon cannot catch an error when a part of the answer is written (XTDE3530), and it writes as early as it can. A
    careful answer is gathered in an element of its own, which is looked into when it is whole; that is slower.
    """
    caught = f'<x-{mark} r="{number}" c="{{$err:code}}" v="{{$err:description}}"/>'
    if not careful:
        return f"(try {{ {said} }} catch * {{ {caught} }})"
    return f"(try {{ <g-{mark}>{{ {said} }}</g-{mark}> }} catch * {{ <g-{mark}>{{ {caught} }}</g-{mark}> }})/node()"


def _queue_plan(
    program: Program,
    around: Surroundings,
    bodies: list[tuple[RuleDefinition, Edited]],
    indexes: Mapping[str, Index],
    collections: Iterable[str],
    edition: str,
) -> QueuePlan:
    for rule, _ in bodies:
        if rule.target in program.slicings:
            around.slicing(rule.target)
    inherited = tuple(each.name for each in program.properties.values() if each.inherited)
    before = f"{head(program, around, indexes, tuple(collections))} (: {edition} :)"

    def query(careful: bool) -> str:
        calls = (
            rule_call(program, around, number, rule, body.text, careful=careful)
            for number, (rule, body) in enumerate(bodies)
        )
        return f"{before}\n{main(', '.join(calls))}"

    definition = program.queues.get(around.queue)
    return QueuePlan(
        around.queue,
        definition.priority if definition else 0,
        query(careful=False),
        query(careful=True),
        tuple(rule.name for rule, _ in bodies),
        tuple(around.reads),
        tuple(around.properties),
        tuple(around.system),
        inherited,
        tuple((name, program.slicings[name].property) for name in around.slicings),
        tuple(around.templates),
    )


def head(program: Program, around: Surroundings, indexes: Mapping[str, Index], collections: tuple[str, ...]) -> str:
    """Everything before the query itself, on one line."""
    mark = around.mark
    types = {each.type: None for each in program.properties.values()}
    functions = []
    for queue, number in around.into.items():
        parts = _worked_out(program, queue, indexes, mark)
        # The form is looked at first: of what is not one document nothing is worked out, so its error is the one told.
        inside = f"let $qs:message := qs:made($b) return ({', '.join(parts)})"
        worked_out = f", (if ($qs:f) then ({inside}) else ())" if parts else ""
        # Flat, with the message behind the element that tells of it: what is not wrapped is not copied.
        functions.append(
            f"declare function qs:into-{number}($qs:r as xs:string, $b as item()*, $qs:p as element()*, "
            f"$qs:h as xs:string*) as node()* {{ let $qs:f := qs:form($b) return ("
            f'<e-{mark} q="{queue}" r="{{$qs:r}}" f="{{$qs:f}}"/>, qs:content($b), $qs:p{worked_out}) }};'
        )
    templates = [
        f'declare variable $qs:t{number} := processing-instruction {{ "t-{mark}" }} {{ "{number}" }};'
        for number in around.templates.values()
    ]
    said = " ".join((prolog(mark, collections), casts(types, mark), *templates, *functions))
    return said.replace("\n", " ")


def main(rules: str) -> str:
    """The query itself."""
    return (
        "let $qs:all := /b/d ! qs:doc(.) "
        "let $qs:sets := map:merge(/b/s ! map:entry(string(@id), qs:some($qs:all, string(@d)))) "
        "for $qs:m in /b/m let $qs:message := if ($qs:m/@d) then $qs:all[xs:integer($qs:m/@d)] else qs:doc($qs:m/d) "
        "let $qs:h := tokenize($qs:m/@h) "
        f"return {answered(rules)}"
    )


def rule_call(
    program: Program, around: Surroundings, number: int, rule: RuleDefinition, body: str, *, careful: bool = False
) -> str:
    """One rule inside the query: its own try, its own number; a slicing's rule only for messages that have a slice."""
    guarded = _guarded(f"$qs:message ! (\n{body}\n)", number, around.mark, careful=careful)
    if rule.target in program.slicings:
        return f"(if (exists($qs:m/@k{around.slicing(rule.target)})) then {guarded} else ())"
    return guarded
