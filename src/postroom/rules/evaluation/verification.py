"""The last check of a program: Saxon compiles every rule and property value, alone and in its context."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import blake2b

from postroom.errors import ProgramInvalid
from postroom.model.definitions import Position, Problem, refuse
from postroom.rules.compilation import compiler
from postroom.rules.compilation.checks import Subject, at
from postroom.rules.compilation.environment import (
    Environment,
    called,
    finished,
    library_edited,
    place,
    quoted,
    reference,
)
from postroom.rules.compilation.plan import Source
from postroom.rules.compilation.translation import (
    Composed,
    Surroundings,
    collection_variable,
    composed,
    computed,
    declared,
    prolog,
)
from postroom.rules.evaluation.xquery import TOO_MUCH, QueryFailed
from postroom.rules.evaluation.xquery_process import Compilation
from postroom.rules.language.body import Call
from postroom.rules.language.definitions import Expression, RuleDefinition
from postroom.rules.language.functions import OURS

_MARK = "check"


class Verified:
    """A cache of checked programs: one is compiled before a transaction, and not again inside."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, None] = OrderedDict()

    def needs(self, subject: Subject) -> Callable[[], None] | None:
        """The remaining checks of a program; None if it is in the cache."""
        text = repr((subject.program.definitions, sorted(subject.collections)))
        digest = blake2b(text.encode(), digest_size=16).digest()
        return None if digest in self._found else partial(self._verify, digest, subject)

    def _verify(self, digest: bytes, subject: Subject) -> None:
        verify(subject)
        self._found[digest] = None
        if len(self._found) > 32:
            self._found.popitem(last=False)


def verify(subject: Subject) -> None:
    """Raise with all errors of the XQuery compiler, with places in the user's files."""
    values = [value.value for definition in subject.program.properties.values() for value in definition.values]
    texts = [*(rule.body for rule in subject.program.rules.values()), *filter(None, values)]
    compilation = Compilation(sum(len(text.text) for text in texts))
    for check in (_calls, _libraries, _declarations, _compiled):  # what others stand on comes first
        problems: dict[Position, Problem] = {}
        for problem in check(subject, compilation):
            problems[problem.position] = problem
            if problem.rule == TOO_MUCH:  # whoever loads it waits: the others are told when this one is mended
                break
        if problems:
            refuse(ProgramInvalid, list(problems.values()))


def _compiled(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    yield from _properties(subject, compilation)
    yield from _rules(subject, compilation)


def _libraries(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    """Compile each library module alone, so that places are those of its file."""
    libraries = subject.program.libraries
    for uri, known in libraries.items():
        made = library_edited(libraries, uri)
        query = f'import module namespace m = "{quoted(uri)}" at "{reference(libraries, uri)}"; ()'
        try:
            compilation.check(query)
        except QueryFailed as error:
            where = Source(1, made, Expression(known.text, 1, 1), known.position.file).place(error.line, error.column)
            yield Problem(where, f"library module {uri}: {error.what}", error.code)


def _declarations(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    """Compile the declarations of each module, without its rules."""
    for module in subject.program.modules:
        known = subject.environment(module)
        around = Surroundings(subject.program, "", _MARK, environment=known)
        made = declared(around)
        if made is None or known.where is None:
            continue
        query = finished(f"{prolog(_MARK, (), around)} ()", known, _MARK)
        try:
            compilation.check(query)
        except QueryFailed as error:
            line = query[: query.index(made.text)].count("\n") + 1
            source = Source(line, made, known.where, known.file)
            where = source.place(error.line, error.column) if source.holds(error.line) else place(known, 0)
            yield Problem(where, f"module {module}: {error.what}", error.code)


def _calls(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    """Find calls with a wrong number of arguments: in a branch Saxon reports them only at run time."""
    for rule, body in subject.rules():
        for call in body.calls:
            why = _unfitting(call, subject.environment(rule.module))
            if why is not None:
                yield Problem(at(rule, rule.body, call.start), f"rule {rule.name}: {why.what}", why.code)
    for declaration in subject.declarations():
        for call in declaration.body.calls:
            why = _unfitting(call, declaration.around)
            if why is not None:
                yield Problem(declaration.at(call.start), f"{declaration}: {why.what}", why.code)


def _unfitting(call: Call, around: Environment) -> QueryFailed | None:
    known = call.name in OURS or call.reference or called(call) in around.functions
    return None if known else _unfit(*called(call))


@lru_cache(maxsize=1000)
def _unfit(name: str, arity: int) -> QueryFailed | None:
    try:
        Compilation().check(f"{prolog(_MARK, ())} exists({name}#{arity})")
    except QueryFailed as error:
        return error
    return None


def _properties(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    for definition in subject.program.properties.values():
        for value in definition.values:
            if value.value is None:
                continue
            known = subject.environment(definition.module)
            around = Surroundings(subject.program, "", _MARK, environment=known)
            text = computed(definition, compiler.property_value(value.value, known, definition.type).text)
            query = f"{prolog(_MARK, (), around)} for $qs:m in /Q{{}}b/Q{{}}m let $qs:message := qs:doc($qs:m) "
            query += f"let $qs:p := () let $qs:h := () return {text}"
            try:
                compilation.check(finished(query, known, _MARK))
            except QueryFailed as error:
                yield Problem(at(definition, value.value, 0), f"property {definition.name}: {error.what}", error.code)


def _rules(subject: Subject, compilation: Compilation) -> Iterator[Problem]:
    program = subject.program
    collections = tuple({*program.collections, *subject.collections})
    for rule in program.rules.values():
        slicing = program.slicings.get(rule.target)
        queues = program.sliced(slicing) if slicing else (rule.target,)
        known = subject.environment(rule.module)
        places = [queues[0] if queues else rule.target, *([rule.due] if rule.unless is not None else [])]
        for around in (Surroundings(program, queue, _MARK, environment=known) for queue in places):
            body = composed(rule, around, 0, subject.bodies[rule.name])
            call = compiler.rule_call(program, around, 0, rule, body.text)
            before = compiler.head(program, around, {}, collections, [subject.bodies[rule.name]])
            query = finished(f"{before}\n{compiler.main(call)}", known, _MARK)
            try:
                compilation.check(query, [collection_variable(name) for name in collections])
            except QueryFailed as error:
                where = _place(rule, query, body, error, subject)
                yield Problem(where, f"rule {rule.name}: {error.what}", error.code)


def _place(rule: RuleDefinition, query: str, body: Composed, error: QueryFailed, subject: Subject) -> Position:
    """The place in the user's file for a place in the query; an unknown function is found by name."""
    if error.code == "XPST0017":
        for call in subject.bodies[rule.name].calls:
            if f"{call.name.rpartition(':')[2]}(" in error.what:
                return at(rule, rule.body, call.start)
    for made, expression in body.pieces:
        start = query.rindex(f"\n{made.text}\n") + 1
        first = query.count("\n", 0, start) + 1
        if first <= error.line <= first + made.text.count("\n"):
            lines = made.text.split("\n")[: error.line - first]
            offset = sum(len(line) + 1 for line in lines) + error.column - 1
            inside = min(max(offset, 0), len(made.text))
            return at(rule, expression, min(made.origin(inside), len(expression.text)))
    return at(rule, rule.body, 0)
