"""The checks of a rule program. Each is a function, whose name is printed with its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from postroom.errors import ProgramInvalid
from postroom.limits import QUEUE_NAME_CHARS_MAX
from postroom.model.definitions import Position, Problem, nearest, refuse
from postroom.model.message import SPHERE
from postroom.rules.compilation.environment import Environment, called, environment, library_environment, place
from postroom.rules.compilation.ports import port_of, unusable
from postroom.rules.compilation.translation import SYSTEM
from postroom.rules.language import functions
from postroom.rules.language.body import Body, Call, Span
from postroom.rules.language.definitions import (
    Expression,
    LibraryDefinition,
    Program,
    PropertyDefinition,
    RuleDefinition,
)
from postroom.rules.language.expression import read
from postroom.rules.language.prolog import Function, Variable
from postroom.rules.language.reader import EXTENSIONS
from postroom.rules.language.tokens import Unreadable, namespaces, tokens_before
from postroom.store.kernel.queues import SYSTEM_ERRORS
from postroom.store.tables.endpoints import IN, OUT, REPLY, Endpoint, Port
from postroom.store.tables.spheres import ABORTING


@dataclass(frozen=True)
class Declared:
    """A function or a variable of a program or of a library module."""

    around: Environment
    declaration: Function | Variable
    body: Body
    at: Callable[[int], Position]
    library: bool = False

    def __str__(self) -> str:
        return f"{'function' if isinstance(self.declaration, Function) else 'variable'} {self.declaration.name[1]}"


@dataclass
class Subject:
    """A program with its context: the room's other queues, its collections, and the parsed bodies."""

    program: Program
    queues: frozenset[str]  # of the room, besides those of the program
    collections: frozenset[str] = frozenset()
    endpoints: Mapping[str, Endpoint] | None = None  # that an operator has set; None if there is no room to ask
    bodies: dict[str, Body] = field(default_factory=dict)
    unreadable: list[Problem] = field(default_factory=list)
    others: list[tuple[RuleDefinition, Expression, Body]] = field(default_factory=list)  # beside the bodies
    _environments: dict[str, Environment] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.program.rules.values():
            declared = self.program.prolog(rule.module).namespaces
            try:
                self.bodies[rule.name] = read(rule.body.text, 0, len(rule.body.text), declared)
            except Unreadable as error:
                self.unreadable.append(Problem(at(rule, rule.body, error.offset), error.what, "syntax"))
            for condition in (condition for condition in (rule.unless, rule.deadline) if condition is not None):
                try:
                    body = read(condition.text, 0, len(condition.text), declared, "in a condition")
                    self.others.append((rule, condition, body))
                except Unreadable as error:
                    self.unreadable.append(Problem(at(rule, condition, error.offset), error.what, "syntax"))

    @property
    def known_queues(self) -> frozenset[str]:
        return self.queues | frozenset(self.program.queues) | {SYSTEM_ERRORS}

    def environment(self, module: str) -> Environment:
        """The declarations around the expressions of a module."""
        if module not in self._environments:
            self._environments[module] = environment(self.program, module)
        return self._environments[module]

    def declarations(self) -> Iterator[Declared]:
        """Every function and variable that the program and its library modules declare."""
        for module in self.program.modules:
            around = self.environment(module)
            for declaration, body in around.prolog.bodies.items():
                yield Declared(around, declaration, body, partial(place, around))
        for name in self.program.libraries:
            around = library_environment(self.program.libraries, name)
            for declaration, body in around.prolog.bodies.items():
                yield Declared(around, declaration, body, partial(place, around), library=True)

    def expressions(self) -> Iterator[tuple[RuleDefinition, Expression, Body]]:
        """Every expression of a rule."""
        yield from ((rule, rule.body, body) for rule, body in self.rules())
        yield from self.others

    def rules(self) -> Iterator[tuple[RuleDefinition, Body]]:
        for rule in self.program.rules.values():
            if rule.name in self.bodies:
                yield rule, self.bodies[rule.name]


Found = Iterator[tuple[Position, str]]
Check = Callable[[Subject], Found]


def check(
    program: Program,
    queues: frozenset[str],
    collections: frozenset[str] = frozenset(),
    endpoints: Mapping[str, Endpoint] | None = None,
) -> Subject:
    """Every check; raises with all problems found, in the order of the text."""
    subject = Subject(program, queues, collections, endpoints)
    problems = list(subject.unreadable)
    for one in CHECKS:
        problems += [Problem(where, what, one.__name__.replace("_", "-")) for where, what in one(subject)]
    if problems:
        refuse(ProgramInvalid, problems)
    return subject


def at(definition: RuleDefinition | PropertyDefinition, expression: Expression, offset: int) -> Position:
    """A place inside an expression, as a place in its file."""
    return expression.place(definition.position.file, offset)


# --- definitions -------------------------------------------------------------------------------------------------


def name_unique(subject: Subject) -> Found:
    """Queues and slicings have different names: a rule may be for either."""
    seen: dict[tuple[str, str], Position] = {}
    for definition in subject.program.definitions:
        group = "place" if definition.what in ("queue", "slicing") else definition.what
        names = [(group, definition.name)]
        if isinstance(
            definition, LibraryDefinition
        ):  # imports, and printed programs, know them by the names of their files
            names.append(("file", definition.file))
        for name in names:
            first = seen.setdefault(name, definition.position)
            if first is not definition.position:
                yield definition.position, f"the name {name[1]} is taken: see {first}"


def name_form(subject: Subject) -> Found:
    for definition in subject.program.definitions:
        if len(definition.name) > QUEUE_NAME_CHARS_MAX:
            yield definition.position, f"a name has at most {QUEUE_NAME_CHARS_MAX} characters"
        if definition.what == "queue" and definition.name == SYSTEM_ERRORS:
            yield definition.position, f"{SYSTEM_ERRORS} is reserved, for errors that have no other queue"


def gateway_clauses(subject: Subject) -> Found:
    for queue in subject.program.queues.values():
        if "Gateway" not in queue.kind and (queue.interface or queue.port or queue.policies):
            yield queue.position, f"interface, port and using belong to gateways; {queue.name} is {queue.kind}"


def reliable_persistent(subject: Subject) -> Found:
    for queue in subject.program.queues.values():
        if queue.mode != "persistent" and any("Reliable" in policy.extension for policy in queue.policies):
            yield queue.position, f"reliable messaging needs mode persistent; {queue.name} is {queue.mode}"


def extension_known(subject: Subject) -> Found:
    """Unsupported extensions are refused, so that no message goes out without the protection that a policy requires."""
    for queue in subject.program.queues.values():
        named = [policy.extension for policy in queue.policies]
        for policy in queue.policies:
            if policy.extension not in EXTENSIONS:
                known = ", ".join(EXTENSIONS)
                yield queue.position, f"no Web Service extension {policy.extension}; there are {known}"
            elif named.count(policy.extension) > 1:
                yield queue.position, f"{queue.name} uses {policy.extension} twice"


def interface_usable(subject: Subject) -> Found:
    """WSDL files and policies are checked when the program is loaded, not at the first message."""
    for queue in subject.program.queues.values():
        if "Gateway" in queue.kind:
            why = unusable(queue)
            if why is not None:
                yield queue.position, why


def _replying_endpoints(subject: Subject) -> set[str]:
    """The endpoints that a queue sends to and that may reply."""
    queues = () if subject.endpoints is None else subject.program.queues.values()
    sending = (queue for queue in queues if queue.kind == "outgoingGateway" and not unusable(queue))
    ports = [port_of(queue, subject.endpoints or {}) for queue in sending]
    return {port.endpoint for port in ports if isinstance(port, Port) and port.direction == OUT}


def gateway_known(subject: Subject) -> Found:
    """An endpoint that a program names must exist: otherwise its messages would be lost silently."""
    taken: dict[tuple[str, str], str] = {}
    agreed: dict[str, tuple[str, str]] = {}  # by port: who named it first, and with which terms
    replying = _replying_endpoints(subject)
    for queue in subject.program.queues.values() if subject.endpoints is not None else ():
        assert subject.endpoints is not None
        port = None if unusable(queue) else port_of(queue, subject.endpoints)
        if isinstance(port, str):
            yield queue.position, port
            continue
        if port is not None and port.terms is not None:
            first, terms = agreed.setdefault(port.endpoint, (queue.name, port.terms))
            if terms != port.terms:
                yield queue.position, f"{first} has another interface or policy for the port {port.endpoint}"
        if port is not None and port.direction == REPLY and port.endpoint not in replying:
            yield (
                queue.position,
                f"{queue.name}: the gateway {port.endpoint} takes nothing in, as it was added, "
                "and no outgoing gateway at this port has replies for it",
            )
        if port is not None and port.direction in (IN, REPLY):
            first = taken.setdefault((port.endpoint, port.direction), queue.name)
            if first != queue.name:
                yield (
                    queue.position,
                    f"what comes from {port.endpoint} goes to {first}; {queue.name} cannot have it too",
                )


def error_queue_known(subject: Subject) -> Found:
    for definition in subject.program.definitions:
        errorqueue = getattr(definition, "errorqueue", None)
        if errorqueue is None:
            continue
        if errorqueue not in subject.known_queues:
            yield definition.position, f"no queue {errorqueue} for errors{nearest(errorqueue, subject.known_queues)}"
        elif errorqueue == definition.name and definition.what == "queue":
            yield definition.position, f"{definition.name} cannot take its own errors: they would go round for ever"
        elif errorqueue in subject.program.queues and subject.program.queues[errorqueue].kind == "echo":
            yield definition.position, f"{errorqueue} is an echo queue and cannot take errors"


def property_queues(subject: Subject) -> Found:
    for definition in subject.program.properties.values():
        if definition.name in (*SYSTEM, SPHERE):
            yield definition.position, f"{definition.name} is a property of the system and cannot be defined"
        for queue in definition.queues:
            if queue not in subject.known_queues:
                yield (
                    definition.position,
                    f"property {definition.name}: no queue {queue}{nearest(queue, subject.known_queues)}",
                )
            if definition.queues.count(queue) > 1:
                yield definition.position, f"property {definition.name}: queue {queue} appears twice"
                break


def property_fixed(subject: Subject) -> Found:
    for definition in subject.program.properties.values():
        if definition.fixed and definition.inherited:
            yield (
                definition.position,
                f"property {definition.name} is fixed, so it is always computed and cannot be inherited",
            )
        if definition.fixed and any(value.value is None for value in definition.values):
            yield definition.position, f"property {definition.name} is fixed, so each of its queues needs a value"


def property_value(subject: Subject) -> Found:
    for definition in subject.program.properties.values():
        for value in definition.values:
            if value.value is None:
                continue
            around = subject.environment(definition.module)
            try:
                body = read(value.value.text, 0, len(value.value.text), around.prolog.namespaces)
            except Unreadable as error:
                yield at(definition, value.value, error.offset), error.what
                continue
            if body.updating:
                yield at(definition, value.value, 0), f"property {definition.name}: a value cannot contain an action"
            for call in body.calls:
                why = _refusal(call, value.value.text, around)
                ours = call.name in functions.OURS and call.name != "qs:message"
                if why or ours or called(call) in around.seeing:
                    problem = f"{_written(call, value.value.text)}() is for rules, not for properties"
                    yield at(definition, value.value, call.start), why or problem


def slicing_property(subject: Subject) -> Found:
    for slicing in subject.program.slicings.values():
        if slicing.property not in subject.program.properties and slicing.property != "connection":
            known = subject.program.properties
            yield (
                slicing.position,
                f"slicing {slicing.name}: no property {slicing.property}{nearest(slicing.property, known)}",
            )


# --- rules -------------------------------------------------------------------------------------------------------


_OF_TREE = "; a queue of a tree is named as postroom count lists it, such as INP_0000"


def rule_target(subject: Subject) -> Found:
    for rule in subject.program.rules.values():
        places = subject.known_queues | frozenset(subject.program.slicings)
        if rule.target not in places:
            hint = nearest(rule.target, places) or _OF_TREE
            yield rule.position, f"rule {rule.name}: no queue or slicing {rule.target}{hint}"
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


def absence(subject: Subject) -> Found:
    """A rule that waits for a message has exactly one action for its absence."""
    for rule, body in subject.rules():
        if rule.unless is not None and body.conditional:
            if not rule.body.text.startswith("if"):
                yield at(rule, rule.body, 0), f"rule {rule.name}: behind unless … the body begins with if"
            elif body.otherwise:
                yield at(rule, rule.body, 0), f"rule {rule.name}: a rule with unless has no else"


def only_actions(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for span in body.values if body.updating else ():
            line = rule.body.text[span.start : span.end].split("\n")[0][:40]
            yield at(rule, rule.body, span.start), f"rule {rule.name}: {line!r} is a value; a rule returns actions"


def queue_known(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for goal in (goal for enqueue in body.enqueues for goal in enqueue.sent):
            if goal.queue not in subject.known_queues and goal.queue != ABORTING:
                close = nearest(goal.queue, subject.known_queues)
                yield at(rule, rule.body, goal.offset), f"rule {rule.name}: no queue {goal.queue}{close}"


def property_settable(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for enqueue in body.enqueues:
            names = [setting.name for setting in enqueue.properties]
            for setting in enqueue.properties:
                known = subject.program.properties.get(setting.name)
                where = at(rule, rule.body, setting.offset)
                if setting.name in (*SYSTEM, SPHERE):
                    yield where, f"property {setting.name} is set by the system"
                elif known and known.fixed:
                    yield where, f"property {setting.name} is fixed: it is computed and cannot be set"
                elif known and enqueue.queue not in known.queues:
                    yield where, f"property {setting.name} is not defined for queue {enqueue.queue}"
                elif names.count(setting.name) > 1:
                    yield where, f"property {setting.name} is set twice"


def echo_properties(subject: Subject) -> Found:
    for rule, body in subject.rules():
        for enqueue in body.enqueues:
            queue = subject.program.queues.get(enqueue.queue)
            given = {setting.name for setting in enqueue.properties}
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
    for rule, expression, body in subject.expressions():
        for call in body.calls:
            why = _refusal(call, expression.text, subject.environment(rule.module))
            if why is not None:
                yield at(rule, expression, call.start), f"rule {rule.name}: {why}"
    for declaration in subject.declarations():
        for call in declaration.body.calls:
            why = _refusal(call, declaration.around.prolog.text, declaration.around)
            if why is not None:
                yield declaration.at(call.start), f"{declaration}: {why}"


def _written(call: Call, text: str) -> str:
    """The name of a function as written."""
    return text[call.start : call.opening - (not call.reference)].rstrip()


def _refusal(call: Call, text: str, around: Environment) -> str | None:
    """Why a call is not allowed: the function belongs to no module, library, XQuery or us."""
    name, arity = called(call)
    if (name, arity) in around.functions:
        return None
    takes = sorted(count for known, count in around.functions if known == name)
    if takes:
        return f"{_written(call, text)}() takes {' or '.join(map(str, takes))} arguments, not {arity}"
    why = functions.refusal(name)
    return None if why is None else why.replace(f"{name}()", f"{_written(call, text)}()")


def function_arguments(subject: Subject) -> Found:
    """Our functions need literal names, so that it is known before the run what a rule reads."""
    for rule, expression, body in subject.expressions():
        for call in body.calls:
            wanted = functions.OURS.get(call.name)
            if wanted is None:
                continue
            what = _misused(call, wanted, rule.target, subject)
            if what is None and rule.unless is not None and call.name == "qs:queue" and not call.arguments:
                what = "name the queue: the current message of a rule with unless has waited in another one"
            if what is not None:
                yield at(rule, expression, call.start), f"rule {rule.name}: {what}"
    for declaration in subject.declarations():
        for call in declaration.body.calls:
            what = _misplaced(call, declaration) or (
                _misused(call, functions.OURS[call.name], None, subject) if call.name in functions.OURS else None
            )
            if what is not None:
                yield declaration.at(call.start), f"{declaration}: {what}"


def _misplaced(call: Call, declared: Declared) -> str | None:
    """Why one of our functions cannot be called in a declaration."""
    ours = call.name in functions.OURS
    if isinstance(declared.declaration, Variable) and (ours or called(call) in declared.around.seeing):
        name = _written(call, declared.around.prolog.text)
        return f"a variable is evaluated once, for all messages, and cannot call {name}(); declare a function"
    if ours and declared.library:
        return f"a library module cannot call {call.name}(): give its functions what they look at as an argument"
    if call.name in ("qs:slice", "qs:slicekey"):
        return f"{call.name}() depends on the rule: give it to the function as an argument"
    return None


def variable_name(subject: Subject) -> Found:
    """Variables of our namespace are internal: through them a rule could read other messages.

    Any prefix may be bound to it, so only declared variables and those of a catch may have a namespace.
    """
    for rule in subject.program.rules.values():
        for expression in (part for part in (rule.body, rule.unless, rule.deadline) if part is not None):
            names = _variables(expression.text, Span(0, len(expression.text)), subject.environment(rule.module))
            yield from ((at(rule, expression, offset), what) for offset, what in names)
    for definition in subject.program.properties.values():
        around = subject.environment(definition.module)
        for value in (value.value for value in definition.values if value.value is not None):
            names = _variables(value.text, Span(0, len(value.text)), around)
            yield from ((at(definition, value, offset), what) for offset, what in names)
    for declared in subject.declarations():
        span = declared.declaration.body if isinstance(declared.declaration, Function) else declared.declaration.value
        names = _variables(declared.around.prolog.text, span, declared.around)
        yield from ((declared.at(offset), what) for offset, what in names)


def _variables(text: str, span: Span, around: Environment) -> Iterator[tuple[int, str]]:
    """The undeclared variables with a namespace."""
    tokens, problem = tokens_before(text, *span)
    prefixed = [token for token in tokens if token.kind == "variable" and ":" in token.text]
    constructed = namespaces(text, *span) if prefixed and problem is None else []
    for token in prefixed:
        here = {
            namespace.prefix: namespace.uri
            for namespace in constructed
            if namespace.start <= token.start < namespace.end
        }
        name = functions.expanded(token.text[1:], {**around.prolog.namespaces, **here})
        if name is None or (name not in around.variables and name[0] != functions.ERRORS):
            yield token.start, f"{token.text}: a variable with a prefix is one that the program declares, or $err:code"


def library_updates(subject: Subject) -> Found:
    """Library modules are not translated, so they cannot contain updates."""
    for declaration in subject.declarations():
        for transform in declaration.body.transforms if declaration.library else ():
            where = declaration.at(transform.keyword.start)
            yield (
                where,
                f"{declaration}: copy … modify is for programs; a library module is read by the processor as it is",
            )


def import_known(subject: Subject) -> Found:
    """Imports refer only to loaded library modules."""
    libraries = subject.program.libraries
    arounds = [subject.environment(module) for module in subject.program.modules]
    arounds += [library_environment(libraries, name) for name in libraries]
    for around in arounds:
        for imported in around.prolog.imports:
            where, known = place(around, imported.span.start), libraries.get(imported.uri)
            if known is None:
                yield (
                    where,
                    f"no library module {imported.uri} is loaded{nearest(imported.uri, libraries)}; load its file, too",
                )
                continue
            for file in imported.files:
                if file.replace("\\", "/").rpartition("/")[2] != known.file:
                    yield where, f"the library module {imported.uri} was loaded from {known.file}, not from {file}"
            if around.prolog.uri and around.prolog.uri in _imported(imported.uri, libraries):
                yield where, f"the library module {around.prolog.uri} imports itself, by way of {imported.uri}"


def _imported(uri: str, libraries: Mapping[str, LibraryDefinition]) -> set[str]:
    """A library module and all that it imports, at any depth."""
    names: set[str] = set()
    todo = {uri}
    while todo:
        name = todo.pop()
        names.add(name)
        around = library_environment(libraries, name) if name in libraries else Environment()
        todo |= {imported.uri for imported in around.prolog.imports} - names
    return names


def _misused(call: Call, wanted: tuple[int, ...], target: str | None, subject: Subject) -> str | None:
    name = call.name
    if call.reference or call.arrow:
        return f"{name} must be called by its name, as in {name}({'…' if max(wanted) else ''})"
    if len(call.arguments) not in wanted:
        return f"{name}() takes {' or '.join(map(str, wanted))} arguments, not {len(call.arguments)}"
    if any(literal is None for literal in call.literals):
        return f"{name}() takes a name in quotes"
    literal = call.literals[0] if call.literals else None
    if name in ("qs:slice", "qs:slicekey") and target not in subject.program.slicings:
        return f"{name}() is for rules on slicings; {target} is a queue"
    if name == "qs:queue" and literal is not None and literal not in subject.known_queues:
        return f"no queue {literal}{nearest(literal, subject.known_queues)}"
    if name == "collection" and literal not in subject.collections | frozenset(subject.program.collections):
        known = subject.collections | frozenset(subject.program.collections)
        return f"no collection {literal}{nearest(literal or '', known)}; make it with create collection {literal}"
    if name == "qs:property" and literal not in _settable(subject):
        return f"no property {literal}{nearest(literal or '', _settable(subject))}"
    return None


def _settable(subject: Subject) -> frozenset[str]:
    """Every property that a message may have: defined, system, or set by a rule."""
    explicit = {
        setting.name for _, body in subject.rules() for enqueue in body.enqueues for setting in enqueue.properties
    }
    return frozenset(subject.program.properties) | frozenset(SYSTEM) | explicit | {"target", "timeout", SPHERE}


CHECKS: tuple[Check, ...] = (
    name_unique,
    name_form,
    gateway_clauses,
    reliable_persistent,
    extension_known,
    interface_usable,
    gateway_known,
    error_queue_known,
    property_queues,
    property_fixed,
    property_value,
    slicing_property,
    rule_target,
    conditional,
    absence,
    only_actions,
    queue_known,
    property_settable,
    echo_properties,
    reset_slicing,
    function_allowed,
    function_arguments,
    variable_name,
    library_updates,
    import_known,
)
