"""What a rule program must hold to, each a function of its own name; the printed rule of a problem is that name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from postroom.engine.steps.failures import SYSTEM_ERRORS
from postroom.errors import ProgramInvalid
from postroom.limits import QUEUE_NAME_CHARS_MAX
from postroom.model.definitions import Position, Problem, nearest, refuse
from postroom.model.message import SPHERE
from postroom.rules.compilation.translation import SYSTEM
from postroom.rules.language import functions
from postroom.rules.language.body import Body, Call
from postroom.rules.language.definitions import Expression, Program, PropertyDefinition, RuleDefinition
from postroom.rules.language.edits import line_column
from postroom.rules.language.expression import read
from postroom.rules.language.tokens import Unreadable, tokens_before
from postroom.store.tables.spheres import ABORTING


@dataclass
class Subject:
    """A program with what surrounds it: the room's other queues, its collections, and the bodies as they were read."""

    program: Program
    queues: frozenset[str]  # of the room, besides those of the program
    collections: frozenset[str] = frozenset()
    bodies: dict[str, Body] = field(default_factory=dict)
    unreadable: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        for rule in self.program.rules.values():
            try:
                self.bodies[rule.name] = read(rule.body.text, 0, len(rule.body.text))
            except Unreadable as error:
                self.unreadable.append(Problem(at(rule, rule.body, error.offset), error.what, "syntax"))

    @property
    def known_queues(self) -> frozenset[str]:
        return self.queues | frozenset(self.program.queues) | {SYSTEM_ERRORS}

    def rules(self) -> Iterator[tuple[RuleDefinition, Body]]:
        for rule in self.program.rules.values():
            if rule.name in self.bodies:
                yield rule, self.bodies[rule.name]


Found = Iterator[tuple[Position, str]]
Check = Callable[[Subject], Found]


def check(program: Program, queues: frozenset[str], collections: frozenset[str] = frozenset()) -> Subject:
    """Every check; raises with all problems found, in the order of the text."""
    subject = Subject(program, queues, collections)
    problems = list(subject.unreadable)
    for one in CHECKS:
        problems += [Problem(where, what, one.__name__.replace("_", "-")) for where, what in one(subject)]
    if problems:
        refuse(ProgramInvalid, problems)
    return subject


def at(definition: RuleDefinition | PropertyDefinition, expression: Expression, offset: int) -> Position:
    """A place inside an expression, as a place in its file."""
    line, column = line_column(expression.text, min(offset, len(expression.text)))
    start = expression.column - 1 if line == 1 else 0
    return Position(definition.position.file, expression.line + line - 1, column + start)


# --- definitions -------------------------------------------------------------------------------------------------


def name_unique(subject: Subject) -> Found:
    """Queues and slicings share their names: a rule may be for either."""
    seen: dict[tuple[str, str], Position] = {}
    for each in subject.program.definitions:
        group = "place" if each.what in ("queue", "slicing") else each.what
        first = seen.setdefault((group, each.name), each.position)
        if first is not each.position:
            yield each.position, f"the name {each.name} is taken: see {first}"


def name_form(subject: Subject) -> Found:
    for each in subject.program.definitions:
        if len(each.name) > QUEUE_NAME_CHARS_MAX:
            yield each.position, f"a name has at most {QUEUE_NAME_CHARS_MAX} characters"
        if each.what == "queue" and each.name == SYSTEM_ERRORS:
            yield each.position, f"{SYSTEM_ERRORS} is reserved, for errors that have no other queue"


def gateway_clauses(subject: Subject) -> Found:
    for queue in subject.program.queues.values():
        if "Gateway" not in queue.kind and (queue.interface or queue.port or queue.policies):
            yield queue.position, f"interface, port and using belong to gateways; {queue.name} is {queue.kind}"


def reliable_persistent(subject: Subject) -> Found:
    for queue in subject.program.queues.values():
        if queue.mode != "persistent" and any("Reliable" in policy.extension for policy in queue.policies):
            yield queue.position, f"reliable messaging needs mode persistent; {queue.name} is {queue.mode}"


def error_queue_known(subject: Subject) -> Found:
    for each in subject.program.definitions:
        errorqueue = getattr(each, "errorqueue", None)
        if errorqueue is None:
            continue
        if errorqueue not in subject.known_queues:
            yield each.position, f"no queue {errorqueue} for errors{nearest(errorqueue, subject.known_queues)}"
        elif errorqueue == each.name and each.what == "queue":
            yield each.position, f"{each.name} cannot take its own errors: they would go round for ever"
        elif errorqueue in subject.program.queues and subject.program.queues[errorqueue].kind == "echo":
            yield each.position, f"{errorqueue} is an echo queue and cannot take errors"


def property_queues(subject: Subject) -> Found:
    for each in subject.program.properties.values():
        if each.name in (*SYSTEM, SPHERE):
            yield each.position, f"{each.name} is a property of the system and cannot be defined"
        for queue in each.queues:
            if queue not in subject.known_queues:
                yield each.position, f"property {each.name}: no queue {queue}{nearest(queue, subject.known_queues)}"
            if each.queues.count(queue) > 1:
                yield each.position, f"property {each.name}: queue {queue} appears twice"
                break


def property_fixed(subject: Subject) -> Found:
    for each in subject.program.properties.values():
        if each.fixed and each.inherited:
            yield each.position, f"property {each.name} is fixed, so it is always computed and cannot be inherited"
        if each.fixed and any(value.value is None for value in each.values):
            yield each.position, f"property {each.name} is fixed, so each of its queues needs a value"


def property_value(subject: Subject) -> Found:
    for each in subject.program.properties.values():
        for value in each.values:
            if value.value is None:
                continue
            try:
                body = read(value.value.text, 0, len(value.value.text))
            except Unreadable as error:
                yield at(each, value.value, error.offset), error.what
                continue
            if body.updating:
                yield at(each, value.value, 0), f"property {each.name}: a value cannot contain an action"
            for call in body.calls:
                why = functions.refusal(call.name)
                ours = call.name in functions.OURS and call.name != "qs:message"
                if why or ours:
                    yield at(each, value.value, call.start), why or f"{call.name}() is for rules, not for properties"


def slicing_property(subject: Subject) -> Found:
    for each in subject.program.slicings.values():
        if each.property not in subject.program.properties and each.property != "connection":
            known = subject.program.properties
            yield each.position, f"slicing {each.name}: no property {each.property}{nearest(each.property, known)}"


# --- rules -------------------------------------------------------------------------------------------------------


def rule_target(subject: Subject) -> Found:
    for rule in subject.program.rules.values():
        places = subject.known_queues | frozenset(subject.program.slicings)
        if rule.target not in places:
            yield rule.position, f"rule {rule.name}: no queue or slicing {rule.target}{nearest(rule.target, places)}"
        elif rule.target == SYSTEM_ERRORS:
            yield rule.position, f"rule {rule.name}: {SYSTEM_ERRORS} is the end of all errors; no rule may watch it"
        elif rule.target in subject.program.queues and subject.program.queues[rule.target].kind == "echo":
            yield rule.position, f"rule {rule.name}: an echo queue passes its messages on; watch their target queue"


def conditional(subject: Subject) -> Found:
    for rule, body in subject.rules():
        if not body.conditional:
            where = at(rule, rule.body, body.comma or 0)
            hint = " (put several actions into parentheses)" if body.comma is not None else ""
            yield where, f"rule {rule.name}: a body is one conditional, if (…) then …{hint}"
        elif not body.updating:
            yield (
                at(rule, rule.body, 0),
                f"rule {rule.name}: a body has at least one do enqueue or do reset",
            )


def only_actions(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for span in body.values if body.updating else ():
            said = rule.body.text[span.start : span.end].split("\n")[0][:40]
            yield at(rule, rule.body, span.start), f"rule {rule.name}: {said!r} is a value; a rule returns actions"


def queue_known(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for each in (each for enqueue in body.enqueues for each in enqueue.sent):
            if each.queue not in subject.known_queues and each.queue != ABORTING:
                close = nearest(each.queue, subject.known_queues)
                yield at(rule, rule.body, each.offset), f"rule {rule.name}: no queue {each.queue}{close}"


def property_settable(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for enqueue in body.enqueues:
            names = [each.name for each in enqueue.properties]
            for each in enqueue.properties:
                known = subject.program.properties.get(each.name)
                where = at(rule, rule.body, each.offset)
                if each.name in (*SYSTEM, SPHERE):
                    yield where, f"property {each.name} is set by the system"
                elif known and known.fixed:
                    yield where, f"property {each.name} is fixed: it is computed and cannot be set"
                elif known and enqueue.queue not in known.queues:
                    yield where, f"property {each.name} is not defined for queue {enqueue.queue}"
                elif names.count(each.name) > 1:
                    yield where, f"property {each.name} is set twice"


def echo_properties(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for enqueue in body.enqueues:
            queue = subject.program.queues.get(enqueue.queue)
            given = {each.name for each in enqueue.properties}
            missing = [name for name in ("target", "timeout") if name not in given and queue and queue.kind == "echo"]
            if missing and not any(name in subject.program.properties for name in missing):
                where = at(rule, rule.body, enqueue.offset)
                yield where, f"echo queue {enqueue.queue}: set {' and '.join(missing)} with … value …"


def reset_slicing(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for reset in body.resets:
            where = at(rule, rule.body, reset.span.start)
            if reset.slicing is None and rule.target not in subject.program.slicings:
                yield where, f"rule {rule.name}: say which slice: do reset SLICING key …"
            elif reset.slicing is not None and reset.slicing not in subject.program.slicings:
                close = nearest(reset.slicing, subject.program.slicings)
                yield where, f"rule {rule.name}: no slicing {reset.slicing}{close}"


def function_allowed(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for call in body.calls:
            why = functions.refusal(call.name)
            if why is not None:
                yield at(rule, rule.body, call.start), f"rule {rule.name}: {why}"


def function_arguments(subject: Subject) -> Found:
    """Our own functions take literal names, so that what a rule reads is known before it runs."""
    for rule, body in subject.rules():
        for call in body.calls:
            wanted = functions.OURS.get(call.name)
            if wanted is None:
                continue
            what = _misused(call, wanted, rule, subject)
            if what is not None:
                yield at(rule, rule.body, call.start), f"rule {rule.name}: {what}"


def variable_name(subject: Subject) -> Found:
    """Variables of our own namespace hold what surrounds a rule: through them it would see its neighbours."""
    expressions: list[tuple[RuleDefinition | PropertyDefinition, Expression]] = []
    expressions += [(rule, rule.body) for rule in subject.program.rules.values()]
    for each in subject.program.properties.values():
        expressions += [(each, value.value) for value in each.values if value.value is not None]
    for definition, expression in expressions:
        for token in tokens_before(expression.text, 0, len(expression.text))[0]:
            if token.kind == "variable" and ":" in token.text:  # any prefix may be made to mean our namespace
                yield at(definition, expression, token.start), f"{token.text}: a variable's name has no prefix"


def _misused(call: Call, wanted: tuple[int, ...], rule: RuleDefinition, subject: Subject) -> str | None:
    name = call.name
    if call.reference or call.arrow:
        return f"{name} must be called by its name, as in {name}({'…' if max(wanted) else ''})"
    if len(call.arguments) not in wanted:
        return f"{name}() takes {' or '.join(map(str, wanted))} arguments, not {len(call.arguments)}"
    if any(literal is None for literal in call.literals):
        return f"{name}() takes a name in quotes"
    literal = call.literals[0] if call.literals else None
    if name in ("qs:slice", "qs:slicekey") and rule.target not in subject.program.slicings:
        return f"{name}() is for rules on slicings; {rule.target} is a queue"
    if name == "qs:queue" and literal is not None and literal not in subject.known_queues:
        return f"no queue {literal}{nearest(literal, subject.known_queues)}"
    if name == "collection" and literal not in subject.collections | frozenset(subject.program.collections):
        known = subject.collections | frozenset(subject.program.collections)
        return f"no collection {literal}{nearest(literal or '', known)}; make it with create collection {literal}"
    if name == "qs:property" and literal not in _settable(subject):
        return f"no property {literal}{nearest(literal or '', _settable(subject))}"
    return None


def _settable(subject: Subject) -> frozenset[str]:
    """Every property that some message may have: defined, of the system, or set by a rule."""
    explicit = {each.name for _, body in subject.rules() for enqueue in body.enqueues for each in enqueue.properties}
    return frozenset(subject.program.properties) | frozenset(SYSTEM) | explicit | {"target", "timeout", SPHERE}


CHECKS: tuple[Check, ...] = (
    name_unique,
    name_form,
    gateway_clauses,
    reliable_persistent,
    error_queue_known,
    property_queues,
    property_fixed,
    property_value,
    slicing_property,
    rule_target,
    conditional,
    only_actions,
    queue_known,
    property_settable,
    echo_properties,
    reset_slicing,
    function_allowed,
    function_arguments,
    variable_name,
)
