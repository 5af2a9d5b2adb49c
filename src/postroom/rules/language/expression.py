"""The parser of rule bodies: text → body.

Saxon compiles the XQuery. This parser finds what Saxon does not know: ``do enqueue`` and ``do reset`` and whether they
are allowed, and missing ``else`` branches. It only determines where expressions end; Saxon checks the rest. It is a
recursive descent with generators: each yields the part to parse next, so depth needs no stack and has its own limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from postroom.limits import RULE_DEPTH_MAX
from postroom.rules.language import functions
from postroom.rules.language.body import (
    ELSE,
    NAMED,
    Binding,
    Body,
    Call,
    Compensate,
    Enqueue,
    Reset,
    Span,
    Transform,
    Update,
    With,
)
from postroom.rules.language.operands import ACTIONS, STATEMENTS, Operands, Walk
from postroom.rules.language.scope import Bound, plain
from postroom.rules.language.tokens import Namespace, Token, Unreadable, namespaces, tokens_before
from postroom.store.tables.spheres import ABORTING


def read(text: str, start: int, end: int, declared: Mapping[str, str] = MappingProxyType({}), place: str = "") -> Body:
    """The structure of the body ``text[start:end]``; Unreadable says what is wrong and where.

    ``declared`` are the prefixes of the program's prolog; ``place`` says why actions are not allowed.
    """
    tokens, problem = tokens_before(text, start, end)
    if problem is None:
        return _named(Reader(tokens, end).body(place), declared, namespaces(text, start, end))
    try:
        # A brace too many shows its effect late: what is wrong before it is what the user wants to hear of.
        Reader(tokens, problem.offset).body(place)
    except Unreadable as earlier:
        if earlier.offset < problem.offset:
            raise earlier from problem
    raise problem


def _named(body: Body, declared: Mapping[str, str], constructed: list[Namespace]) -> Body:
    """Resolve the names of calls: a constructor can bind a prefix to anything."""

    def meant(call: Call) -> Call:
        here = {
            namespace.prefix: namespace.uri
            for namespace in constructed
            if namespace.start <= call.start < namespace.end
        }
        return replace(call, name=functions.canonical(call.name, {**declared, **here}))

    return replace(body, calls=tuple(map(meant, body.calls)))


#: Where updates stand, and nothing that has a value.
MODIFYING: Final = "behind modify"
_PROLOG: Final = {
    "xquery": {"version", "encoding"},
    "module": {"namespace"},
    "import": {"schema", "module"},
    "declare": {"namespace", "default", "variable", "function", "option", "context", "base-uri", "boundary-space"}
    | {"construction", "ordering", "copy-namespaces", "decimal-format", "%"},
}


class Reader(Operands):
    """One pass over the tokens."""

    def __init__(self, tokens: list[Token], end: int) -> None:
        super().__init__(tokens, end)
        self.depth = 0
        self.enqueues: list[Enqueue] = []
        self.resets: list[Reset] = []
        self.missing: list[int] = []
        self.lists: list[Span] = []
        self.closings: list[tuple[int, str]] = []
        self.bounds: list[Bound] = []
        self.values: list[Span] = []
        self.comma: int | None = None
        self.transforms: list[Transform] = []
        self.updates: list[Update] = []
        self.otherwise = False
        self.simple: list[int] = []  # what stands behind the modify around us and is no update
        self.updated = False  # whether an update stands there
        self.modifying = 0  # how many modify clauses are around us

    def body(self, place: str = "") -> Body:
        if not self.tokens:
            raise Unreadable("the body is empty", self.end.start)
        self._refuse_prolog()
        self.focus += bool(place)  # what is not in a rule has no message for its context
        walks: list[Walk] = [self._outermost(place)]
        while walks:
            part = next(walks[-1], None)
            if part is None:
                walks.pop()
            else:
                walks.append(part)
        if self.at < len(self.tokens):
            self.unexpected("an operator or the end of the body")
        return Body(
            conditional=self._conditional(),
            updating=bool(self.actions),
            enqueues=tuple(self.enqueues),
            resets=tuple(self.resets),
            missing_else=tuple(self.missing),
            lists=tuple(self.lists),
            closings=tuple(self.closings),
            calls=tuple(sorted(self.calls, key=lambda call: call.start)),
            bindings=tuple(
                Binding(
                    bound.kind,
                    bound.name,
                    bound.value,
                    Span(bound.value.end, bound.end),
                    tuple(bound.uses),
                    bound.outer,
                    bound.regrouped,
                )
                for bound in sorted(self.bounds, key=lambda bound: bound.value)
            ),
            values=tuple(self.values),
            comma=self.comma,
            constructors=tuple(self.constructors),
            transforms=tuple(self.transforms),
            updates=tuple(self.updates),
            otherwise=self.otherwise,
        )

    def _refuse_prolog(self) -> None:
        first, second = self.peek(), self.peek(1)
        if first.kind == "name" and second.text in _PROLOG.get(first.text, ()):
            raise Unreadable(
                f"a body is one expression and cannot begin with {first.text} {second.text}; "
                "declarations stand at the beginning of the file",
                first.start,
            )

    def _conditional(self) -> bool:
        """Whether the body is a single if, perhaps in parentheses."""
        first, last = 0, len(self.tokens) - 1
        while self.symbol_at(first, "(") and self.ends.get(first) == last:
            first, last = first + 1, last - 1
        return self.tokens[first].text == "if" and self.ends.get(first) == last

    # --- expressions ---

    def _outermost(self, place: str) -> Walk:
        yield self._single(place)
        while self.symbol(","):
            self.comma = self.peek().start if self.comma is None else self.comma
            self.at += 1
            yield self._single(place)

    def _single(self, place: str) -> Walk:
        first, values = self.at, len(self.values)
        self.depth += 1
        if self.depth > RULE_DEPTH_MAX:
            raise Unreadable(f"expressions are nested deeper than {RULE_DEPTH_MAX}", self.peek().start)
        yield self._chosen(place)
        self.depth -= 1
        if not place and self.ends.get(first) != self.at - 1:
            del self.values[values:]
            self.values.append(self.since(first))
        if place == MODIFYING and self.ends.get(first) != self.at - 1 and not self._raises(first):
            self.simple.append(self.tokens[first].start)

    def _raises(self, first: int) -> bool:
        """Whether the body is a single call of error(), which has no value."""
        opening = first + 1
        if self.tokens[first].text not in ("error", "fn:error") or not self.symbol_at(opening, "("):
            return False
        depth = 0
        for number in range(opening, self.at):
            depth += self.symbol_at(number, "(") - self.symbol_at(number, ")")
            if not depth:
                return number == self.at - 1
        return False

    def _chosen(self, place: str) -> Walk:
        """Parse the kind of expression that the first two tokens select."""
        token, follow = self.peek(), self.peek(1)
        if token.kind != "name":
            return self._operators(place)
        if token.text == "do" and follow.kind == "name" and follow.text in ACTIONS:
            return self._action(place)
        if token.text in STATEMENTS and self.symbol("(", 1):
            return {"if": self._if, "switch": self._switch, "typeswitch": self._typeswitch}[token.text](place)
        if token.text in ("for", "let") and self._clause():
            return self._flwor(place)
        if token.text in ("some", "every") and follow.kind == "variable":
            return self._quantified()
        if token.text == "try" and self.symbol("{", 1):
            return self._try(place)
        if token.text == "copy" and follow.kind == "variable":
            return self._copy()
        if token.text in ("insert", "delete", "replace", "rename") and self._updates():
            return self._update(place)
        return self._operators(place)

    # --- actions ---

    def _action(self, place: str) -> Walk:
        first, verb = self.at, self.peek(1).text
        if place:
            raise Unreadable(f"do {verb} cannot stand {place}", self.peek().start)
        self.actions.append(self.peek().start)
        self.at += 2
        yield {"enqueue": self._enqueue, "reset": self._reset, "abort": self._vote}[verb](first)
        self._passes_on(first)
        if self._goes_on():
            self._refuse_actions(len(self.actions) - 1)

    def _enqueue(self, first: int) -> Walk:
        keyword, place, begin = self.since(first), "inside another do enqueue", self.at
        self.ours = "into"
        yield self._single(place)
        self.ours = "with"
        value, begin = self.since(begin), self.at
        self.need_word("into")
        queue = self.need_name("the name of a queue")
        into = self.since(begin)
        properties: list[With] = []
        while self.word("with"):
            begin = self.at
            self.at += 1
            name = self.need_name("the name of a property")
            self.need_word("value")
            clause, begin = self.since(begin), self.at
            yield self._single(place)
            properties.append(With(name.text, name.start, clause, self.since(begin)))
        undo: list[Compensate] = []
        if self.word("compensate") and self.word("with", 1):
            yield self._compensate(place, undo)
        self.ours = ""
        made = Enqueue(self.since(first), keyword, value, into, queue.text, queue.start, tuple(properties), *undo)
        self.enqueues.append(made)

    def _compensate(self, place: str, compensations: list[Compensate]) -> Walk:
        begin = self.at
        self.at += 2
        keyword, begin = self.since(begin), self.at
        self.ours = "into"
        yield self._single(place)
        value, begin = self.since(begin), self.at
        self.need_word("into")
        queue = self.need_name("the name of a queue")
        compensations.append(Compensate(keyword, value, self.since(begin), queue.text, queue.start))

    def _vote(self, first: int) -> Walk:
        """Parse a vote: a message for the state that the sphere should enter."""
        self.need_word("sphere")
        keyword, begin = self.since(first), self.at
        yield self._single("inside a do abort sphere")
        value = self.since(begin)
        into = Span(value.end, value.end)
        start = self.tokens[first].start
        self.enqueues.append(Enqueue(self.since(first), keyword, value, into, ABORTING, start, ()))

    def _reset(self, first: int) -> Walk:
        name, ends = self.peek(), self.peek().text in ("else", "case", "default")
        if name.kind != "name" or ends or (self._operator() and not self.word("key", 1)):
            self.resets.append(Reset(self.since(first), self.since(first), None, self.tokens[first].start, None))
            return
        self.need_name("the name of a slicing")
        self.need_word("key")
        keyword, begin = self.since(first), self.at
        yield self._single("inside a do reset")
        self.resets.append(Reset(self.since(first), keyword, name.text, name.start, self.since(begin)))

    # --- conditions ---

    def _if(self, place: str) -> Walk:
        first = self.at
        self.at += 1
        yield self._enclosed("in a condition", "(")
        self.need_word("then")
        yield self._listed(place)
        if self.skip_word("else"):
            self.otherwise = self.otherwise or first == 0
            yield self._listed(place)
        else:
            self.missing.append(self.tokens[self.at - 1].end)
            self.closings.append((self.missing[-1], ELSE))
        self._passes_on(first)

    def _listed(self, place: str) -> Walk:
        """A branch.

        At the top level it may be a list of actions, as in the paper: there a comma can mean nothing else.
        """
        begin = self.at
        yield self._single(place)
        if place or self.brackets or not self.symbol(","):
            return
        while self.skip_symbol(","):
            yield self._single(place)
        self.lists.append(self.since(begin))
        self.closings.append((self.lists[-1].end, ")"))

    def _switch(self, place: str) -> Walk:
        first = self.at
        self.at += 1
        yield self._enclosed("in a condition", "(")
        if not self.word("case"):
            self.unexpected("case")
        while self.skip_word("case"):
            yield self._inner("in a condition")
            if not self.word("case"):
                self.need_word("return")
                yield self._inner(place)
        self.need_word("default")
        self.need_word("return")
        yield self._single(place)
        self._passes_on(first)

    def _typeswitch(self, place: str) -> Walk:
        first = self.at
        self.at += 1
        yield self._enclosed("in a condition", "(")
        if not self.word("case"):
            self.unexpected("case")
        while self.skip_word("case"):
            names = self._case_variable()
            if names:
                self.need_word("as")
            self._type()
            while self.skip_symbol("|"):
                self._type()
            yield self._branch(names, place)
        self.need_word("default")
        yield self._branch(self._case_variable(), place, last=True)
        self._passes_on(first)

    def _case_variable(self) -> list[str]:
        return [self.take().text] if self.peek().kind == "variable" else []

    def _branch(self, names: list[str], place: str, last: bool = False) -> Walk:
        self.need_word("return")
        self.scope.hide(names)
        yield self._single(place) if last else self._inner(place)
        self.scope.forget(names)

    def _try(self, around: str) -> Walk:
        first, place = self.at, MODIFYING if around == MODIFYING else "inside try or catch"
        self.at += 1
        yield self._enclosed(place)
        if not self.word("catch"):
            self.unexpected("catch")
        while self.skip_word("catch"):
            self._error_name()
            while self.skip_symbol("|"):
                self._error_name()
            yield self._enclosed(place)
        if around == MODIFYING:
            self._passes_on(first)

    def _error_name(self) -> None:
        if self.peek().kind != "name" and not self.symbol("*"):
            self.unexpected("the name of an error")
        self.at += 1

    # --- copy and modify ---

    def _copy(self) -> Walk:
        first, place, names = self.at, "inside copy", list[str]()
        variables: list[tuple[str, Span]] = []
        self.at += 1
        keyword = self.since(first)
        while True:
            name = self.need_variable()
            self.need_symbol(":=")
            begin = self.at
            yield self._inner(place)
            variables.append((name, self.since(begin)))
            self.closings.append((variables[-1][1].end, "))"))
            if not self.skip_symbol(","):
                break
        names += [name for name, _ in variables]
        self.scope.hide(names)
        begin = self.at
        self.need_word("modify")
        modify, begin = self.since(begin), self.at
        self.modifying += 1
        around, self.simple, self.updated = (self.simple, self.updated), [], False
        yield self._inner(MODIFYING)
        if self.simple:
            code = "XUST0001" if self.updated else "XUST0002"
            why = f"{code}: behind modify stand updates, or () for none, in lists, conditions and loops"
            raise Unreadable(why, self.simple[0])
        self.simple, self.updated = around
        self.modifying -= 1
        begin = self.at
        self.need_word("return")
        self.transforms.append(Transform(keyword, tuple(variables), modify, self.since(begin)))
        yield self._single(place)
        self.scope.forget(names)

    def _updates(self) -> bool:
        """Whether an updating expression begins here. Its keywords are names elsewhere."""
        ahead = 3 if self.word("replace") and self.word("value", 1) and self.word("of", 2) else 1
        node = self.word("node", ahead) or (self.word("nodes", ahead) and self.peek().text in ("insert", "delete"))
        if not node:
            return False
        if not self.modifying:
            text = self.peek().text
            raise Unreadable(
                f"XUST0001: {text} node is allowed only after modify: copy $v := … modify …", self.peek().start
            )
        return True

    def _update(self, around: str) -> Walk:
        first, place = self.at, "inside copy"
        if around != MODIFYING:
            raise Unreadable(f"XUST0001: {self.peek().text} node cannot stand {around}", self.peek().start)
        verb = self.take().text
        self.updated = True
        valued = self.skip_word("value")
        self.at += 1 + valued  # of, and node
        keyword, begin = self.since(first), self.at
        yield self._inner(place)
        target = self.since(begin)
        if verb == "delete":
            self.updates.append(Update(verb, keyword))
            self.closings.append((target.end, "))"))
            self._passes_on(first)
            return
        begin = self.at
        kind = self._where() if verb == "insert" else verb
        if verb != "insert":
            self.need_word("as" if verb == "rename" else "with")
        middle, begin = self.since(begin), self.at
        yield self._inner(place)
        second = self.since(begin)
        self.updates.append(Update("value" if valued else kind, keyword, middle))
        self.closings.append((second.end, NAMED if verb == "rename" else "))"))
        self._passes_on(first)

    def _where(self) -> str:
        for word in ("before", "after"):
            if self.skip_word(word):
                return word
        kind = "into"
        if self.skip_word("as"):
            if not (self.word("first") or self.word("last")):
                self.unexpected("first or last")
            kind = self.take().text
        self.need_word("into")
        return kind

    # --- FLWOR and quantified expressions ---

    def _clause(self) -> str:
        """The clause that begins here; empty if none."""
        token, follow = self.peek(), self.peek(1)
        if token.kind != "name":
            return ""
        if token.text in ("for", "let", "count") and follow.kind == "variable":
            return token.text
        if token.text == "for" and follow.text in ("tumbling", "sliding") and self.word("window", 2):
            return "window"
        if token.text in ("group", "order") and self.word("by", 1):
            return token.text
        if token.text == "stable" and self.word("order", 1):
            return "stable"
        return "where" if token.text == "where" else ""

    def _flwor(self, place: str) -> Walk:
        first, names = self.at, list[str]()
        own: list[Bound] = []
        while clause := self._clause():
            self.at += 1
            if clause in ("for", "let"):
                yield self._bindings(clause, names, own)
            elif clause == "window":
                yield self._window(names, own)
            elif clause == "where":
                yield self._inner("in a where clause")
            elif clause == "group":
                yield self._group(names, own)
            elif clause == "count":
                names.append(self.take().text)
                self.scope.hide(names[-1:])
            else:
                yield self._order(clause)
        self.need_word("return")
        yield self._listed(place)
        self.scope.forget(names)
        for bound in own:
            bound.end = self.tokens[self.at - 1].end
        self._passes_on(first)

    def _bindings(self, clause: str, names: list[str], own: list[Bound]) -> Walk:
        """``for $a in E, $b at $i in E`` or ``let $a := E, $b := E``; each is visible from its end on."""
        while True:
            name, positions = self.need_variable(), list[str]()
            if clause == "for" and self.skip_word("allowing"):
                self.need_word("empty")
            self._declared_type()
            if clause == "for" and self.skip_word("at"):
                positions.append(self.need_variable())
            yield self._bound(clause, name, names, own)
            self.scope.hide(positions)
            names.extend(positions)
            if not self.skip_symbol(","):
                return

    def _bound(self, clause: str, name: str, names: list[str], own: list[Bound]) -> Walk:
        if clause == "let":
            self.need_symbol(":=")
        else:
            self.need_word("in")
        first = self.at
        yield self._inner(f"in a {clause} clause")
        self._bind(clause, name, self.since(first), names, own)

    def _bind(self, clause: str, name: str, value: Span, names: list[str], own: list[Bound]) -> None:
        bound = Bound(clause, plain(name), value, outer=not self.focus)
        self.scope.bind(bound)
        self.bounds.append(bound)
        own.append(bound)
        names.append(name)

    def _window(self, names: list[str], own: list[Bound]) -> Walk:
        self.at += 2
        name = self.need_variable()
        self._declared_type()
        self.need_word("in")
        first = self.at
        yield self._inner("in a for clause")
        value = self.since(first)
        if not self.word("start"):
            self.unexpected("start")
        while self.word("start") or self.word("end") or self.word("only"):
            self.skip_word("only")
            self.at += 1
            yield self._window_edge(names)
        self._bind("for", name, value, names, own)  # its edges do not see it

    def _window_edge(self, names: list[str]) -> Walk:
        while not self.word("when"):
            if self.word("at") or self.word("previous") or self.word("next"):
                self.at += 1
            names.append(self.need_variable())
            self.scope.hide(names[-1:])
        self.at += 1
        yield self._inner("in a window clause")

    def _group(self, names: list[str], own: list[Bound]) -> Walk:
        """Parse a group by: variables bound before it become sequences of a group's values."""
        self.need_word("by")
        while True:
            if self.symbol(":=", 1) or self.word("as", 1):
                name = self.need_variable()
                self._declared_type()
                self.need_symbol(":=")
                yield self._inner("in a group clause")
                self.scope.hide([name])
                names.append(name)
            elif self.peek().kind == "variable":
                # What is grouped is still what was bound: a use, not a new variable.
                self.scope.use(self.take())
            else:
                self.unexpected("a variable")
            self._collation()
            if not self.skip_symbol(","):
                break
        for bound in own:
            bound.regrouped = True

    def _order(self, clause: str) -> Walk:
        if clause == "stable":
            self.need_word("order")
        self.need_word("by")
        while True:
            yield self._inner("in an order clause")
            if self.word("ascending") or self.word("descending"):
                self.at += 1
            if self.skip_word("empty"):
                if not (self.word("greatest") or self.word("least")):
                    self.unexpected("greatest or least")
                self.at += 1
            self._collation()
            if not self.skip_symbol(","):
                return

    def _collation(self) -> None:
        if self.skip_word("collation"):
            if self.peek().kind != "string":
                self.unexpected("the name of a collation")
            self.at += 1

    def _quantified(self) -> Walk:
        place, names = "inside a quantified expression", list[str]()
        self.at += 1
        while True:
            name = self.need_variable()
            self._declared_type()
            self.need_word("in")
            yield self._inner(place)
            self.scope.hide([name])
            names.append(name)
            if not self.skip_symbol(","):
                break
        self.need_word("satisfies")
        yield self._single(place)
        self.scope.forget(names)
