"""The rule compiler: all rules of a queue and of its slicings become one query."""

from __future__ import annotations

from collections.abc import Mapping

from postroom.model.types import MessageType
from postroom.rules.definitions import SYSTEM_ERRORS, Expression, Program, RuleDefinition
from postroom.rules.edits import Edit, Edited, edited
from postroom.rules.expression import read
from postroom.rules.plan import Index, Plan, PlannedProperty, QueuePlan, Target
from postroom.rules.translation import SYSTEM, Surroundings, casts, computed, indexed, prolog, translated


def compiled(
    program: Program,
    version: int,
    mark: str,
    *,
    types: Mapping[str, MessageType] | None = None,
    collections: Mapping[str, str] | None = None,
    known: frozenset[str] = frozenset(),
) -> Plan:
    """The plan of a program that has passed its checks."""
    arounds, bodies = {}, {}
    for queue in program.watched:
        around = arounds[queue] = Surroundings(program, queue, mark)
        bodies[queue] = [(rule, translated(rule, around)) for rule in program.rules_of(queue)]
    indexes = {name: index for around in arounds.values() for name, index in around.indexes.items()}
    masters = {name: "<c/>" for name in program.collections} | dict(collections or {})
    targets = {name: target(program, name, indexes, mark) for name in _reachable(program)}
    queues = {
        queue: _queue_plan(program, arounds[queue], bodies[queue], indexes, tuple(masters)) for queue in program.watched
    }
    errors = {queue: tuple(program.error_queues(queue, None)) for queue in [*program.watched, *program.queues]}
    for queue in program.watched:
        for rule in program.rules_of(queue):
            errors[f"{queue} {rule.name}"] = tuple(program.error_queues(queue, rule.name))
    echoes = tuple(each.name for each in program.queues.values() if each.kind == "echo")
    parameters = {f"collection-{name}": text for name, text in masters.items()}
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
    if not made.queried and not any(not each.computed for each in properties):
        return made
    return Target(
        queue,
        properties,
        made.slicings,
        mine,
        made.schema,
        echo=made.echo,
        connection=made.connection,
        door=_door(program, queue, indexes, mark),
    )


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


def _door(program: Program, queue: str, indexes: Mapping[str, Index], mark: str) -> str:
    """The query for messages that come from outside: type what the sender gave, work out the rest."""
    parts = _worked_out(program, queue, indexes, mark)
    given = "".join(
        f'if (@n = "{each.name}") then qs:as-{each.type}("{each.name}", string(.)) else '
        for each in program.properties_of(queue)
    )
    types = {each.type: None for each in program.properties_of(queue)}
    return (
        f"{prolog(mark, ())} {casts(types).replace('-MARK', f'-{mark}')}\n"
        f"for $qs:m in /b/m let $qs:message := qs:doc($qs:m/d) let $qs:h := () return "
        f'<r-{mark} i="{{$qs:m/@i}}">{{try {{ '
        f"let $qs:p := $qs:m/p ! ({given}qs:as-given(@n, qs:given(.))) return "
        f"({', '.join(['$qs:p', *parts])}) }} catch * {{ {_caught(mark)} }} }}</r-{mark}>"
    )


def _caught(mark: str) -> str:
    return f'<x-{mark} c="{{$err:code}}">{{$err:description}}</x-{mark}>'


def _queue_plan(
    program: Program,
    around: Surroundings,
    bodies: list[tuple[RuleDefinition, Edited]],
    indexes: Mapping[str, Index],
    collections: tuple[str, ...],
) -> QueuePlan:
    for rule, _ in bodies:
        if rule.target in program.slicings:
            around.slicing(rule.target)
    inherited = tuple(each.name for each in program.properties.values() if each.inherited)
    parts = [rule_call(program, around, number, rule, body.text) for number, (rule, body) in enumerate(bodies)]
    query = f"{head(program, around, indexes, collections)}\n{main(around, ', '.join(parts))}"
    definition = program.queues.get(around.queue)
    return QueuePlan(
        around.queue,
        definition.priority if definition else 0,
        query,
        tuple(rule.name for rule, _ in bodies),
        tuple(around.reads),
        tuple(around.properties),
        tuple(around.system),
        inherited,
        tuple((name, program.slicings[name].property) for name in around.slicings),
    )


def head(program: Program, around: Surroundings, indexes: Mapping[str, Index], collections: tuple[str, ...]) -> str:
    """Everything before the query itself, on one line."""
    mark = around.mark
    types = {each.type: None for each in program.properties.values()}
    functions = []
    for queue, number in around.into.items():
        parts = _worked_out(program, queue, indexes, mark)
        inside = "let $qs:d := qs:body($b) let $qs:message := qs:made($qs:d) return " if parts else ""
        content = "".join(f"{{{part}}}" for part in parts)
        made = "$qs:d" if parts else "qs:body($b)"
        functions.append(
            f"declare function qs:into-{number}($b as item()*, $qs:p as element()*, $qs:h as xs:string*) as element() "
            f'{{ {inside}<e-{mark} q="{queue}">{{$qs:p}}{content}{{{made}}}</e-{mark}> }};'
        )
    said = " ".join((prolog(mark, collections), casts(types).replace("-MARK", f"-{mark}"), *functions))
    return said.replace("\n", " ")


def main(around: Surroundings, rules: str) -> str:
    mark = around.mark
    return (
        "let $qs:sets := map:merge(/b/s ! map:entry(string(@id), d ! qs:doc(.))) "
        "for $qs:m in /b/m let $qs:message := qs:doc($qs:m/d) let $qs:h := tokenize($qs:m/@h) return "
        f'<r-{mark} i="{{$qs:m/@i}}">{{{rules}}}</r-{mark}>'
    )


def rule_call(program: Program, around: Surroundings, number: int, rule: RuleDefinition, body: str) -> str:
    """One rule inside the query: its own try, its own number; a slicing's rule only for messages that have a slice."""
    mark = around.mark
    guarded = f"try {{ $qs:message ! (\n{body}\n) }} catch * {{ {_caught(mark)} }}"
    if rule.target in program.slicings:
        guarded = f"if (exists($qs:m/@k{around.slicing(rule.target)})) then ({guarded}) else ()"
    return f'<a-{mark} r="{number}">{{{guarded}}}</a-{mark}>'


def system_target() -> Target:
    return Target(SYSTEM_ERRORS)
