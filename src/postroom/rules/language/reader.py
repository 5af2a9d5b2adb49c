"""The definition language of rule programs (.demaq): from text to frozen definitions with their places."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NoReturn

from postroom.errors import ProgramInvalid
from postroom.model.definitions import Position, Problem, refuse
from postroom.rules.language.definitions import (
    AnyDefinition,
    CollectionDefinition,
    Expression,
    LibraryDefinition,
    ModuleDefinition,
    Policy,
    PropertyDefinition,
    PropertyValue,
    QueueDefinition,
    RuleDefinition,
    SlicingDefinition,
    SystemDefinition,
)
from postroom.rules.language.edits import line_column
from postroom.rules.language.prolog import library, prolog
from postroom.rules.language.tokens import CLOSERS, Statement, Token, Unreadable, parted, word_at

_PRIORITY = re.compile("-?[0-9]{1,7}")
RELIABLE = "WS-ReliableMessaging"
#: Of Web Services, those that the text names.
EXTENSIONS = (RELIABLE, "WS-Security")
KINDS = ("basic", "echo", "incomingGateway", "outgoingGateway")
MODES = ("persistent", "transient")
TYPES = (
    "anyURI boolean byte date dateTime dayTimeDuration decimal double duration float int integer long "
    "nonNegativeInteger positiveInteger short string time yearMonthDuration"
).split()


def parse(text: str, file: str) -> tuple[AnyDefinition, ...]:
    """The definitions of one file, in their order. A file is a module, named by ``create module`` or by itself."""
    module = file.replace("\\", "/").rpartition("/")[2].removesuffix(".demaq")
    definitions: list[AnyDefinition] = []
    problems: list[Problem] = []
    try:
        declared, parts = parted(text)
    except Unreadable as error:
        refuse(ProgramInvalid, [Problem(_position(text, file, error.offset), error.what, "syntax")])
    declarations = _prolog(text, file, declared, problems)
    for statement in parts:
        try:
            definitions += _with_queues(_Reader(text, file, statement, module).definition())
        except Unreadable as error:
            problems.append(Problem(_position(text, file, error.offset), error.what, "syntax"))
    if problems:
        refuse(ProgramInvalid, problems)
    named = [definition for definition in definitions if isinstance(definition, ModuleDefinition)]
    if len(named) > 1:
        second = Problem(named[1].position, "a file is one module; this is its second name", "one-module")
        refuse(ProgramInvalid, [second])
    if not named:
        return (ModuleDefinition(module, Position(file, 1), module, prolog=declarations), *definitions)
    definitions[definitions.index(named[0])] = replace(named[0], prolog=declarations)
    return tuple(replace(definition, module=named[0].name) for definition in definitions)


def _with_queues(definition: AnyDefinition) -> tuple[AnyDefinition, ...]:
    """A definition, and the queues of a rule with a timeout."""
    if not isinstance(definition, RuleDefinition) or definition.unless is None:
        return (definition,)
    place = (definition.position, definition.module)
    waiting = QueueDefinition(definition.waiting, "echo", "persistent", *place, rule=definition.name)
    due = QueueDefinition(definition.due, "basic", "persistent", *place, rule=definition.name)
    return (waiting, due, definition)


def parse_library(text: str, file: str) -> LibraryDefinition:
    """A library module, a definition of its own."""
    try:
        known = library(text)
    except Unreadable as error:
        refuse(ProgramInvalid, [Problem(_position(text, file, error.offset), error.what, "syntax")])
    name = file.replace("\\", "/").rpartition("/")[2]
    return LibraryDefinition(known.uri, Position(file, 1), f"library {known.uri}", name, text)


def _prolog(text: str, file: str, tokens: Sequence[Token], problems: list[Problem]) -> Expression | None:
    if not tokens:
        return None
    start, end = tokens[0].start, tokens[-1].end
    try:
        prolog(text[start:end])
    except Unreadable as error:
        problems.append(Problem(_position(text, file, start + error.offset), error.what, "syntax"))
    return Expression(text[start:end], *line_column(text, start))


def _position(text: str, file: str, offset: int) -> Position:
    return Position(file, *line_column(text, min(offset, len(text))))


class _Reader:
    """Reads one statement, word by word."""

    def __init__(self, text: str, file: str, statement: Statement, module: str) -> None:
        self._text = text
        self._tokens = statement.tokens
        self._at = 1  # behind create
        self._module = module
        self.position = _position(text, file, statement.start)

    def definition(self) -> AnyDefinition:
        readers: dict[str, Callable[[], AnyDefinition]] = {
            "queue": self._queue,
            "property": self._property,
            "slicing": self._slicing,
            "collection": self._collection,
            "rule": self._rule,
            "module": self._module_name,
            "system": self._system,
        }
        return readers[self._keyword(*readers)]()

    # --- words ---

    @property
    def _here(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _fail(self, wanted: str) -> NoReturn:
        here = self._here
        if here is None:
            raise Unreadable(f"{wanted} is missing at the end of the statement", self._tokens[-1].end)
        raise Unreadable(f"{wanted} is wanted here, not {here.text[:40]!r}", here.start)

    def _is(self, *words: str) -> bool:
        here = self._here
        return here is not None and here.kind == "name" and here.text in words

    def _keyword(self, *words: str) -> str:
        here = self._here
        if here is None or not self._is(*words):
            self._fail(" or ".join(words))
        self._at += 1
        return here.text

    def _name(self, what: str) -> str:
        here = self._here
        if here is None or here.kind != "name" or "*" in here.text or here.text.startswith("Q{"):
            self._fail(f"the name of {what}")
        self._at += 1
        return here.text

    def _word(self, what: str) -> str:
        """A file name or the like: everything up to white space."""
        here = self._here
        if here is None:
            self._fail(what)
        word, end = word_at(self._text, here)
        while self._here is not None and self._here.start < end:
            self._at += 1
        return word

    def _done(self) -> None:
        if self._here is not None:
            self._fail("the end of the statement, or create,")

    # --- statements ---

    def _queue(self) -> QueueDefinition:
        name = self._name("a queue")
        clauses: dict[str, str] = {}
        policies: list[Policy] = []
        while self._here is not None:
            offset = self._here.start
            clause = self._keyword("kind", "mode", "schema", "priority", "errorqueue", "interface", "port", "using")
            if clause == "using":
                extension = self._word("a Web Service extension")
                # The others that there are mean nothing without one; of what is unknown a check tells.
                if self._is("policy") or (extension != RELIABLE and extension in EXTENSIONS):
                    self._keyword("policy")
                    policies.append(Policy(extension, self._word("the file of a policy")))
                else:
                    policies.append(Policy(extension))
                continue
            if clause in clauses:
                raise Unreadable(f"{clause} stands twice", offset)
            clauses[clause] = self._clause(clause)
        for needed in ("kind", "mode"):
            if needed not in clauses:
                self._fail(needed)
        return QueueDefinition(
            name,
            clauses["kind"],
            clauses["mode"],
            self.position,
            self._module,
            priority=int(clauses.get("priority", 0)),
            schema=clauses.get("schema"),
            errorqueue=clauses.get("errorqueue"),
            interface=clauses.get("interface"),
            port=clauses.get("port"),
            policies=tuple(policies),
        )

    def _clause(self, clause: str) -> str:
        if clause == "kind":
            return self._keyword(*KINDS)
        if clause == "mode":
            return self._keyword(*MODES)
        if clause == "errorqueue":
            return self._name("an error queue")
        if clause == "priority":
            here = self._here
            word = self._word("a priority")
            if not _PRIORITY.fullmatch(word) or not -1_000_000 <= int(word) <= 1_000_000:
                raise Unreadable("a priority is a whole number up to 1000000", here.start if here else 0)
            return word
        return self._word({"schema": "a schema file", "interface": "an interface file", "port": "a port"}[clause])

    def _property(self) -> PropertyDefinition:
        name = self._name("a property")
        self._keyword("as")
        type = self._type()
        flags = {"inherited": False, "fixed": False}
        while self._is("inherited", "fixed"):
            flags[self._keyword("inherited", "fixed")] = True
        values = []
        while self._is("queue"):
            values.append(self._property_value())
        if not values:
            self._fail("queue")
        self._done()
        return PropertyDefinition(name, type, self.position, self._module, values=tuple(values), **flags)

    def _type(self) -> str:
        here = self._here
        if here is None or here.kind != "name":
            self._fail("a type such as xs:string")
        type = here.text.removeprefix("xs:")
        if type not in TYPES or not here.text.startswith("xs:"):
            raise Unreadable(f"{here.text} is not a type; known are xs:{', xs:'.join(TYPES)}", here.start)
        self._at += 1
        return type

    def _property_value(self) -> PropertyValue:
        self._keyword("queue")
        queues = [self._name("a queue")]
        while self._here is not None and self._here.text == ",":
            self._at += 1
            queues.append(self._name("a queue"))
        if not self._is("value"):
            return PropertyValue(tuple(queues), None)
        self._at += 1
        begin = self._at
        if self._here is None:
            self._fail("a value expression")
        self._at += 1
        while self._here is not None and self._at not in self._next_queues:
            self._at += 1
        return PropertyValue(tuple(queues), self._expression(begin, self._at))

    @cached_property
    def _next_queues(self) -> frozenset[int]:
        """The tokens where a next ``queue A, B value`` may begin: the word queue outside of brackets, after an
        operand."""
        depth, queues = 0, []
        for number, token in enumerate(self._tokens):
            if token.kind == "symbol" and token.text in ("(", "[", "{"):
                depth += 1
            elif token.kind == "symbol" and token.text in (")", "]", "}"):
                depth -= 1
            elif token.text == "queue" and token.kind == "name" and not depth and number:
                before, after = self._tokens[number - 1], self._tokens[number + 1 : number + 2]
                operand = before.kind != "symbol" or before.text in (")", "]", "}", ".", "..", "*")
                if operand and after and after[0].kind == "name":
                    queues.append(number)
        return frozenset(queues)

    def _slicing(self) -> SlicingDefinition:
        name = self._name("a slicing")
        self._keyword("on")
        property = self._name("a property")
        self._done()
        return SlicingDefinition(name, property, self.position, self._module)

    def _collection(self) -> CollectionDefinition:
        name = self._name("a collection")
        self._done()
        return CollectionDefinition(name, self.position, self._module)

    def _rule(self) -> RuleDefinition:
        name = self._name("a rule")
        self._keyword("for")
        target = self._name("a queue or a slicing")
        errorqueue = None
        if self._is("errorqueue"):
            self._at += 1
            errorqueue = self._name("an error queue")
        unless = deadline = None
        if self._is("unless"):
            self._at += 1
            unless = self._parenthesized("a condition in parentheses")
            self._keyword("within", "by")
            here = self._here
            if here is not None and here.kind == "string":
                self._at += 1
                deadline = self._expression(self._at - 1, self._at)
            else:
                deadline = self._parenthesized("a text in quotes, or an expression in parentheses")
        if self._here is None:
            self._fail("the rule's body, if (…) then …,")
        body = self._expression(self._at, len(self._tokens))
        return RuleDefinition(name, target, body, self.position, self._module, errorqueue, unless, deadline)

    def _parenthesized(self, what: str) -> Expression:
        """An expression in parentheses, returned without them."""
        if self._here is None or self._here.text != "(":
            self._fail(what)
        begin, depth = self._at, 0
        while self._here is not None:
            here = self._here
            depth += (here.text in CLOSERS) - (here.text in CLOSERS.values()) if here.kind == "symbol" else 0
            self._at += 1
            if not depth:
                break
        if self._at - begin < 3:
            raise Unreadable(f"{what} is wanted here, not ()", self._tokens[begin].start)
        return self._expression(begin + 1, self._at - 1)

    def _module_name(self) -> ModuleDefinition:
        name = self._name("a module")
        errorqueue = None
        if self._here is not None:
            self._keyword("errorqueue")
            errorqueue = self._name("an error queue")
        self._done()
        return ModuleDefinition(name, self.position, name, errorqueue)

    def _system(self) -> SystemDefinition:
        self._keyword("errorqueue")
        errorqueue = self._name("an error queue")
        self._done()
        return SystemDefinition("errors", errorqueue, self.position, self._module)

    def _expression(self, begin: int, end: int) -> Expression:
        start, stop = self._tokens[begin].start, self._tokens[end - 1].end
        line, column = line_column(self._text, start)
        return Expression(self._text[start:stop], line, column)
