"""The parser of expressions: operators, paths, calls, constructors, types.

It finds the extent and the calls of each. Operator precedence does not matter here, and Saxon checks what is accepted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, TypeAlias

from postroom.rules.language.body import Call, Span
from postroom.rules.language.cursor import Cursor
from postroom.rules.language.scope import Scope
from postroom.rules.language.tokens import CLOSERS, OPERATOR_WORDS, Token, Unreadable, decoded

# A generator that yields others of its kind: the parts to be read before it goes on.
Walk: TypeAlias = "Iterator[Walk]"

_OPERATOR_SYMBOLS: Final = frozenset({"=", "!=", "<", "<=", ">", ">=", "<<", ">>", "|", "||", "+", "-", "*", "!"})
_SUFFIXES: Final = frozenset({"/", "//", "[", "(", "?", "=>"})
_TYPE_WORDS: Final = {"instance": "of", "treat": "as", "castable": "as", "cast": "as"}
_KIND_TESTS: Final = frozenset(
    {"attribute", "comment", "document-node", "element", "namespace-node", "node", "processing-instruction", "text"}
    | {"schema-attribute", "schema-element"}
)
# These look like calls and are tests of nodes or of types; none can be the name of a function.
_TESTS: Final = _KIND_TESTS | {"array", "empty-sequence", "item", "map"}
STATEMENTS: Final = frozenset({"if", "switch", "typeswitch"})
ACTIONS: Final = frozenset({"enqueue", "reset", "abort"})  # behind do
_BLOCKS: Final = frozenset({"document", "text", "comment", "ordered", "unordered"})
#: What stands in expressions of XQuery and is refused, and why.
REFUSED: Final = {
    "validate": "the XQuery processor knows no schemas; a queue has one, create queue … schema",
    "transform with": "write copy … modify … return …",
    "%updating": "functions do not update; copy … modify … changes a copy",
}
_NAMED_BLOCKS: Final = frozenset({"element", "attribute", "namespace", "processing-instruction"})
_OPERAND: Final = "as an operand of an operator"


class Operands(Cursor, ABC):
    """``place`` says why an action is not allowed here; empty if it is."""

    def __init__(self, tokens: list[Token], end: int) -> None:
        super().__init__(tokens, end)
        self.scope = Scope()
        self.calls: list[Call] = []
        self.actions: list[int] = []  # where each begins
        self.brackets = 0  # how many are open
        self.focus = 0  # how many predicates, steps and functions around us have another context than the message
        self.constructors: list[Span] = []  # the outermost direct ones
        self.constructing = 0
        self.ours = ""  # the word that ends the part of a do that we are in, if what we read can end it
        # First and last token of each expression that passes on the results of its parts.
        self.ends: dict[int, int] = {}

    @abstractmethod
    def _single(self, place: str) -> Walk:
        """One expression, up to a comma or anything else that cannot continue it."""

    def _inner(self, place: str) -> Walk:
        """One expression that cannot be the end of the one around it."""
        ours, self.ours = self.ours, ""
        yield self._single(place)
        self.ours = ours

    def _sequence(self, place: str) -> Walk:
        yield self._single(place)
        while self.skip_symbol(","):
            yield self._single(place)

    def _enclosed(self, place: str, opener: str = "{") -> Walk:
        """An expression in brackets, which may be empty; Saxon reports where that is wrong."""
        ours, self.ours = self.ours, ""
        self.need_symbol(opener)
        self.brackets += 1
        if not self.symbol(CLOSERS[opener]):
            yield self._sequence(place)
        self.brackets -= 1
        self.need_symbol(CLOSERS[opener])
        self.ours = ours

    def _passes_on(self, first: int) -> None:
        self.ends[first] = self.at - 1

    def _refuse_actions(self, before: int) -> None:
        if len(self.actions) > before:
            raise Unreadable(f"do cannot stand {_OPERAND}", self.actions[before])

    # --- operators and paths ---

    def _operator(self) -> bool:
        token = self.peek()
        return (token.kind == "symbol" and token.text in _OPERATOR_SYMBOLS) or (
            token.kind == "name" and token.text in OPERATOR_WORDS
        )

    def _type_operator(self) -> bool:
        token = self.peek()
        return token.kind == "name" and token.text in _TYPE_WORDS and self.word(_TYPE_WORDS[token.text], 1)

    def _goes_on(self) -> bool:
        """Whether the next token would make an operand of the one before."""
        token = self.peek()
        return self._operator() or self._type_operator() or (token.kind == "symbol" and token.text in _SUFFIXES)

    def _operators(self, place: str) -> Walk:
        """Operands with operators between them; precedence does not matter here."""
        first, actions = self.at, len(self.actions)
        while True:
            while self.symbol("+") or self.symbol("-"):
                self.at += 1
                place = _OPERAND
            yield self._elsewhere(self._path(place)) if self._behind("!") else self._path(place)
            if self._type_operator() or self.symbol("=>"):
                self._refuse_actions(actions)
                yield self._converted()
            if self.word("transform") and self.word("with", 1):
                self._refuse("transform with", self.peek())
            if not self._operator():
                break
            self._refuse_actions(actions)
            self.at += 1
            place = _OPERAND
        if self.symbol_at(first, "(") and self.ends.get(first) != self.at - 1:
            self.ends.pop(first, None)

    def _behind(self, symbol: str) -> bool:
        return self.at > 0 and self.symbol_at(self.at - 1, symbol)

    def _elsewhere(self, part: Walk) -> Walk:
        """A part with another context item."""
        self.focus += 1
        yield part
        self.focus -= 1

    def _converted(self) -> Walk:
        """Postfix forms such as ``=> f()`` and ``cast as T``."""
        while True:
            if self.skip_symbol("=>"):
                yield self._arrow()
            elif self._type_operator():
                single = self.take().text in ("cast", "castable")
                self.at += 1
                self._type(single)
            else:
                return

    def _arrow(self) -> Walk:
        token = self.peek()
        if token.kind == "name":
            yield self._call(arrow=True)
            return
        if token.kind == "variable":
            self.scope.use(self.take())
        else:
            yield self._enclosed(_OPERAND, "(")
        yield self._arguments([])

    def _path(self, place: str) -> Walk:
        actions = len(self.actions)
        if self.skip_symbol("/"):
            place = _OPERAND
            if not self._step_begins():
                return
        elif self.skip_symbol("//"):
            place = _OPERAND
        yield self._step(place)
        while self.symbol("/") or self.symbol("//"):
            self._refuse_actions(actions)
            self.at += 1
            yield self._elsewhere(self._step(_OPERAND))

    def _step_begins(self) -> bool:
        """Whether a step follows a leading ``/``. In XQuery any name does; the keywords after ``do`` are ours."""
        token = self.peek()
        if token.kind == "symbol":
            return token.text in (".", "..", "@", "*", "?", "(", "[", "%")
        if token.kind == "name" and self.ours == token.text == "into" and self.peek(1).kind == "name":
            follow = self.peek(2)
            return follow.text not in (",", ")", "with", "compensate", "else", "case", "default", "")
        if token.kind == "name" and self.ours and token.text == "compensate":
            return not self.word("with", 1)
        if token.kind == "name" and self.ours and token.text == "with" and self.peek(1).kind == "name":
            return not self.word("value", 2)
        return token.kind not in ("end", "close-constructor")

    def _step(self, place: str) -> Walk:
        actions = len(self.actions)
        if self.skip_symbol("@"):
            self._node_test()
        elif self.symbol("::", 1) and self.peek().kind == "name":
            self.at += 2
            self._node_test()
        elif not self.skip_symbol(".."):
            yield self._primary(place)
        while self.symbol("[") or self.symbol("(") or self.symbol("?"):
            self._refuse_actions(actions)
            if self.symbol("["):
                yield self._elsewhere(self._enclosed("inside a predicate", "["))
            elif self.symbol("("):
                yield self._arguments([])
            else:
                self.at += 1
                yield self._key()

    def _node_test(self) -> None:
        if self.peek().kind != "name" and not self.symbol("*"):
            self.unexpected("the name of a node")
        test = self.take()
        if test.text in _KIND_TESTS and self.symbol("("):
            self._type_parentheses()

    def _key(self) -> Walk:
        """The key after the ``?`` of a lookup."""
        if self.symbol("("):
            yield self._enclosed("inside a lookup", "(")
        elif self.peek().kind in ("name", "number") or self.symbol("*"):
            self.at += 1
        else:
            self.unexpected("a key")

    # --- operands ---

    def _primary(self, place: str) -> Walk:
        token = self.peek()
        if token.kind in ("string", "number"):
            self.at += 1
        elif token.kind == "variable":
            self.scope.use(self.take())
        elif token.kind == "name":
            yield self._named()
        elif token.kind == "open-constructor":
            yield self._constructor()
        elif token.kind == "pragma":
            yield self._pragma()
        elif token.kind == "symbol" and token.text in "([?%":
            yield self._bracketed(token.text, place)
        elif self.symbol(".") or self.symbol("*"):
            self.at += 1
        else:
            self.unexpected("an expression")

    def _bracketed(self, symbol: str, place: str) -> Walk:
        first = self.at
        if symbol == "(":
            yield self._enclosed(place, "(")
            self._passes_on(first)
        elif symbol == "[":
            yield self._enclosed("inside an array", "[")
        elif symbol == "?":
            self.at += 1
            yield self._key()
        else:
            self._annotations()
            yield self._function()

    def _pragma(self) -> Walk:
        while self.peek().kind == "pragma":
            self.at += 1
        yield self._enclosed("inside a pragma")

    def _constructor(self) -> Walk:
        """A direct or string constructor; only enclosed expressions in it are parsed."""
        depth, first = 0, self.at
        self.constructing += 1
        while True:
            token = self.peek()
            if token.kind == "symbol":
                yield self._enclosed("inside an element constructor", token.text)
                continue
            if token.kind == "end":
                self.unexpected("the rest of the element")
            depth += 1 if token.kind == "open-constructor" else -1
            self.at += 1
            if depth == 0:
                break
        self.constructing -= 1
        if not self.constructing:
            self.constructors.append(self.since(first))

    def _named(self) -> Walk:
        """A name: a step, a call, a constructor, or an expression that needs parentheses here."""
        token, follow = self.peek(), self.peek(1)
        if follow.kind == "symbol" and follow.text == "(":
            return self._name_and_parentheses(token)
        if follow.kind == "symbol" and follow.text == "#":
            return self._reference()
        if token.text == "do" and follow.kind == "name" and follow.text in ACTIONS:
            raise Unreadable(f"do {follow.text} cannot stand {_OPERAND}", token.start)
        if token.text in ("for", "let", "some", "every") and follow.kind == "variable":
            raise Unreadable(f"{token.text} must stand in parentheses here", token.start)
        if self.symbol("{", 1) or self.symbol("{", 2) or self.symbol("{", 3):
            return self._computed(token)
        return self._name()

    def _name(self) -> Walk:
        self.at += 1
        return iter(())

    def _name_and_parentheses(self, token: Token) -> Walk:
        if token.text == "function":
            return self._function()
        if token.text in STATEMENTS:
            raise Unreadable(f"{token.text} must stand in parentheses here", token.start)
        if token.text in _TESTS:
            self.at += 1
            self._type_parentheses()
            return iter(())
        return self._call()

    def _call(self, arrow: bool = False) -> Walk:
        first, name = self.at, self.need_name("the name of a function")
        arguments: list[Span] = []
        literals: list[str | None] = []
        opening = self.peek().end
        yield self._arguments(arguments, literals)
        span = self.since(first)
        given = (tuple(arguments), tuple(literals))
        self.calls.append(Call(name.text, span.start, span.end, *given, arrow=arrow, opening=opening))

    def _arguments(self, spans: list[Span], literals: list[str | None] | None = None) -> Walk:
        self.need_symbol("(")
        while not self.symbol(")"):
            first = self.at
            if self.symbol("?") and (self.symbol(",", 1) or self.symbol(")", 1)):
                self.at += 1
            else:
                yield self._inner("in a function argument")
            spans.append(self.since(first))
            if literals is not None:
                token = self.tokens[first]
                literals.append(decoded(token) if token.kind == "string" and self.at == first + 1 else None)
            if not self.symbol(")"):
                self.need_symbol(",")
                if self.symbol(")"):
                    self.unexpected("an argument")
        self.at += 1

    def _reference(self) -> Walk:
        first, name = self.at, self.need_name("the name of a function")
        self.at += 1
        if self.peek().kind != "number" or not self.peek().text.isdecimal():
            self.unexpected("a number of arguments")
        arity = int(self.take().text)
        span = self.since(first)
        self.calls.append(
            Call(name.text, span.start, span.end, (), (), reference=True, opening=name.end, arity=min(arity, 1000))
        )
        return iter(())

    def _computed(self, token: Token) -> Walk:
        """``element a {…}``, ``map {…}``: names, then braces."""
        place, follow = f"inside {token.text} {{…}}", self.peek(1)
        if token.text == "validate" and self._validates():
            self._refuse("validate", token)
        if self.symbol("{", 1):
            self.at += 1
            if token.text == "map":
                yield self._map()
            elif token.text in _BLOCKS or token.text == "array":
                yield self._enclosed(place)
            elif token.text in _NAMED_BLOCKS:
                yield self._enclosed(place)
                yield self._enclosed(place)
        elif self.symbol("{", 2) and follow.kind == "name" and token.text in _NAMED_BLOCKS:
            self.at += 2
            yield self._enclosed(place)
        else:
            self.at += 1

    def _map(self) -> Walk:
        self.need_symbol("{")
        while not self.symbol("}"):
            yield self._inner("inside a map")
            self.need_symbol(":")
            yield self._inner("inside a map")
            if not self.symbol("}"):
                self.need_symbol(",")
                if self.symbol("}"):
                    self.unexpected("an entry")
        self.at += 1

    def _function(self) -> Walk:
        names: list[str] = []
        self.need_word("function")
        self.need_symbol("(")
        while not self.symbol(")"):
            names.append(self.need_variable())
            self._declared_type()
            if not self.symbol(")"):
                self.need_symbol(",")
        self.at += 1
        self._declared_type()
        self.scope.hide(names)
        yield self._elsewhere(self._enclosed("inside a function"))
        self.scope.forget(names)

    # --- types ---

    def _validates(self) -> bool:
        """Whether ``validate``, which may also be an element name, is followed by braces."""
        if self.word("lax", 1) or self.word("strict", 1):
            return self.symbol("{", 2)
        typed = self.word("type", 1) and self.peek(2).kind == "name"
        return self.symbol("{", 3 if typed else 1)

    def _refuse(self, what: str, here: Token) -> None:
        raise Unreadable(f"{what} is refused: {REFUSED[what]}", here.start)

    def _annotations(self) -> None:
        while self.skip_symbol("%"):
            name = self.need_name("the name of an annotation")
            if name.text in ("updating", "fn:updating"):
                self._refuse("%updating", name)
            if self.symbol("("):
                self._type_parentheses()

    def _declared_type(self) -> None:
        if self.skip_word("as"):
            self._type()

    def _type(self, single: bool = False) -> None:
        """A sequence type; that of a cast is a name with an optional ``?``."""
        marks = 1  # one more for each function(…) as: the first belongs to what the function returns
        while True:
            self._annotations()
            if self.symbol("("):
                self._type_parentheses()
                break
            name = self.need_name("a type")
            if self.symbol("(") and not single:
                self._type_parentheses()
            marks -= name.text == "empty-sequence"
            if name.text != "function" or not self.skip_word("as"):
                break
            marks += 1
        while marks and (self.symbol("?") or (not single and (self.symbol("*") or self.symbol("+")))):
            self.at += 1
            marks -= 1

    def _type_parentheses(self) -> None:
        """Types in parentheses, which have no expressions: names, marks, literals."""
        depth = 0
        while True:
            token = self.peek()
            if token.kind not in ("name", "string", "number", "symbol") or token.text in "[]{};":
                self.unexpected("a type")
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            self.at += 1
            if depth == 0:
                return
