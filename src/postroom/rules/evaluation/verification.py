"""The last check of a program: every rule and every property value is compiled by Saxon, alone and in its place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import blake2b

from postroom.errors import ProgramInvalid
from postroom.model.definitions import Position, Problem, refuse
from postroom.rules.compilation import compiler
from postroom.rules.compilation.checks import Subject, at
from postroom.rules.compilation.translation import Surroundings, collection_variable, computed, prolog, translated
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.rules.language.body import Call
from postroom.rules.language.definitions import RuleDefinition
from postroom.rules.language.edits import Edited
from postroom.rules.language.functions import OURS

_MARK = "check"


class Verified:
    """Programs that were found right of late: one is compiled before a transaction, and not again inside of it."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, None] = OrderedDict()

    def needs(self, subject: Subject) -> Callable[[], None] | None:
        """What must be done before the program can be taken; None if it is known to be right."""
        said = repr((subject.program.definitions, sorted(subject.collections)))
        digest = blake2b(said.encode(), digest_size=16).digest()
        return None if digest in self._found else partial(self._verify, digest, subject)

    def _verify(self, digest: bytes, subject: Subject) -> None:
        verify(subject)
        self._found[digest] = None
        if len(self._found) > 32:
            self._found.popitem(last=False)


def verify(subject: Subject) -> None:
    """Raise with every error that the XQuery compiler finds, at its place in the user's file."""
    problems = {problem.position: problem for problem in (*_calls(subject), *_properties(subject), *_rules(subject))}
    if problems:
        refuse(ProgramInvalid, list(problems.values()))


def _calls(subject: Subject) -> Iterator[Problem]:
    """Calls with more or fewer arguments than the function takes: in a branch Saxon would tell it only when it runs."""
    for rule, body in subject.rules():
        for call in body.calls:
            why = None if call.name in OURS or call.reference else _unfit(call.name, _arity(call))
            if why is not None:
                yield Problem(at(rule, rule.body, call.start), f"rule {rule.name}: {why.what}", why.code)


def _arity(call: Call) -> int:
    return len(call.arguments) + call.arrow


@lru_cache(maxsize=1000)
def _unfit(name: str, arity: int) -> QueryFailed | None:
    try:
        BoundedXQuery().check(f"{prolog(_MARK, ())} exists({name}#{arity})")
    except QueryFailed as error:
        return error
    return None


def _properties(subject: Subject) -> list[Problem]:
    problems = []
    for each in subject.program.properties.values():
        for value in each.values:
            if value.value is None:
                continue
            text = computed(each, compiler.property_value(value.value), _MARK)
            query = f"{prolog(_MARK, ())} for $qs:m in /b/m let $qs:message := qs:doc($qs:m) "
            query += f"let $qs:p := () let $qs:h := () return {text}"
            try:
                BoundedXQuery().check(query)
            except QueryFailed as error:
                problems.append(Problem(at(each, value.value, 0), f"property {each.name}: {error.what}", error.code))
    return problems


def _rules(subject: Subject) -> list[Problem]:
    program = subject.program
    collections = tuple({*program.collections, *subject.collections})
    problems = []
    for rule in program.rules.values():
        slicing = program.slicings.get(rule.target)
        queues = program.sliced(slicing) if slicing else (rule.target,)
        around = Surroundings(program, queues[0] if queues else rule.target, _MARK)
        body = translated(rule, around, body=subject.bodies[rule.name])
        call = compiler.rule_call(program, around, 0, rule, body.text)
        query = f"{compiler.head(program, around, {}, collections)}\n{compiler.main(call)}"
        try:
            BoundedXQuery().check(query, [collection_variable(name) for name in collections])
        except QueryFailed as error:
            where = _place(rule, query, body, error, subject)
            problems.append(Problem(where, f"rule {rule.name}: {error.what}", error.code))
    return problems


def _place(rule: RuleDefinition, query: str, body: Edited, error: QueryFailed, subject: Subject) -> Position:
    """A place in the query as a place in the user's file; an unknown function is looked for by its name."""
    if error.code == "XPST0017":
        for call in subject.bodies[rule.name].calls:
            if f"{call.name.rpartition(':')[2]}(" in error.what:
                return at(rule, rule.body, call.start)
    start = query.index(body.text)
    lines = query.split("\n")
    offset = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    inside = min(max(offset - start, 0), len(body.text))
    return at(rule, rule.body, min(body.origin(inside), len(rule.body.text)))
