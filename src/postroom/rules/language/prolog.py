"""The declarations at the beginning of a program, and library modules, which have nothing else.

Namespaces, functions, variables and imports, as XQuery has them. This parser finds their extents and resolves their
names; Saxon compiles them. Declarations that would change the meaning of our generated text are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from postroom.rules.language.body import Body, Span
from postroom.rules.language.expression import Reader, read
from postroom.rules.language.functions import PREFIXES, collapsed, expanded, is_taken
from postroom.rules.language.tokens import CLOSERS, Token, Unreadable, decoded, tokens

#: A declaration that is refused, and why.
REFUSED: Final = {
    "declare default function namespace": "functions without a prefix are XQuery's",
    "declare default collation": "texts are compared by their characters, as an index compares them",
    "declare default order": "the query has one order for all programs; write empty least or empty greatest",
    "declare boundary-space": "the query around a rule is written for the usual one, strip",
    "declare construction": "the query around a rule is written for the usual one",
    "declare copy-namespaces": "the query around a rule is written for the usual one, preserve, inherit",
    "declare ordering": "the query around a rule is written for the usual one, ordered",
    "declare base-uri": "no file and no network is reached from a rule",
    "declare context": "the context of a rule is its message",
    "declare option": "options are instructions to a processor, and could open what is closed",
    "declare revalidation": "no schema is known against which a changed copy could be validated",
    "declare updating": "functions do not update; copy … modify … changes a copy",
    "import schema": "the XQuery processor knows no schemas; a queue has one, create queue … schema",
    "xquery version": "a program is no XQuery by itself; a library module may begin with it",
    "xquery encoding": "files are in UTF-8",
}
_FORMATS: Final = frozenset(
    "decimal-separator grouping-separator infinity minus-sign NaN percent per-mille zero-digit digit pattern-separator "
    "exponent-separator".split()
)


@dataclass(frozen=True, slots=True)
class Function:
    """``declare function p:f($a, $b) {…}``. ``opening`` is the place before its first parameter."""

    name: tuple[str, str]  # its namespace and its local name
    parameters: tuple[str, ...]
    opening: int
    body: Span

    @property
    def arity(self) -> int:
        return len(self.parameters)


@dataclass(frozen=True, slots=True)
class Variable:
    name: tuple[str, str]
    value: Span


@dataclass(frozen=True, slots=True)
class Import:
    """``import module namespace p = "uri" at "file"``; ``span`` excludes the semicolon."""

    prefix: str
    uri: str
    files: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Prolog:
    """The declarations of a text, as offsets into it."""

    text: str = ""
    uri: str = ""  # of a library module
    namespaces: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None  # the namespace of elements without a prefix
    functions: tuple[Function, ...] = ()
    variables: tuple[Variable, ...] = ()
    imports: tuple[Import, ...] = ()

    @cached_property
    def bodies(self) -> dict[Function | Variable, Body]:
        """The bodies of functions and variables. Functions without a body return nothing, and are left out."""
        walked: dict[Function | Variable, Body] = {}
        spans: list[tuple[Function | Variable, Span]] = [(function, function.body) for function in self.functions]
        for declaration, span in [*spans, *((variable, variable.value) for variable in self.variables)]:
            if span.start < span.end:
                walked[declaration] = read(self.text, span.start, span.end, self.namespaces, "in a declaration")
        return walked


@lru_cache(maxsize=64)
def prolog(text: str) -> Prolog:
    """The declarations of a program; Unreadable says what is wrong and where."""
    return _Declarations(text, tokens(text), library=False).read() if text else Prolog()


@lru_cache(maxsize=64)
def library(text: str) -> Prolog:
    """A library module."""
    return _Declarations(text, tokens(text), library=True).read()


class _Declarations(Reader):
    """Parses declarations one by one, each up to its semicolon."""

    def __init__(self, text: str, tokens: list[Token], library: bool) -> None:
        super().__init__(tokens, len(text))
        self._text = text
        self._library = library
        self._uri = ""
        self._namespaces: dict[str, str] = {}
        self._default: str | None = None
        self._functions: list[Function] = []
        self._variables: list[Variable] = []
        self._imports: list[Import] = []

    def read(self) -> Prolog:
        if self._library:
            self._header()
        while self.at < len(self.tokens):
            self._declaration()
            self.need_symbol(";")
        made = Prolog(
            self._text,
            self._uri,
            self._namespaces,
            self._default,
            tuple(self._functions),
            tuple(self._variables),
            tuple(self._imports),
        )
        made.bodies  # noqa: B018 - what is unreadable is told now
        return made

    def _header(self) -> None:
        if self.word("xquery"):
            while not self.symbol(";") and self.peek().kind in ("name", "string"):
                self.at += 1
            self.need_symbol(";")
        if not (self.word("module") and self.word("namespace", 1)):
            self.unexpected("module namespace PREFIX = URI")
        self.at += 2
        _, self._uri = self._namespace()
        if is_taken(self._uri):
            raise Unreadable(f"the namespace {self._uri} is taken", self.tokens[0].start)
        self.need_symbol(";")

    def _declaration(self) -> None:
        first, words = self.peek(), f"{self.peek().text} {self.peek(1).text}"
        for refused, why in REFUSED.items():
            if f"{words} {self.peek(2).text} {self.peek(3).text} ".startswith(f"{refused} "):
                raise Unreadable(f"{refused} is refused: {why}", first.start)
        annotated = words == "declare %"
        self.at += 2 - annotated
        if words == "import module":
            self._import(first)
        elif words == "declare namespace":
            self._namespace()
        elif words == "declare default":
            self._default_namespace()
        elif words == "declare decimal-format":
            self.need_name("the name of a decimal format")
            self._decimal_format()
        elif annotated or words in ("declare function", "declare variable"):
            self.at -= not annotated
            self._annotated(first)
        else:
            self.at -= 2 - annotated
            self.unexpected("declare namespace, default element namespace, function or variable, or import module")

    # --- names ---

    def _literal(self, what: str) -> str:
        token = self.peek()
        value = decoded(token) if token.kind == "string" else None
        if value is None:
            self.unexpected(what)
        self.at += 1
        return value

    def _namespace(self) -> tuple[str, str]:
        """``p = "uri"``. Our own prefixes cannot be rebound, because generated text uses them."""
        name = self.need_name("a prefix")
        if ":" in name.text or name.text.startswith("Q{"):
            raise Unreadable("a prefix has no colon", name.start)
        self.need_symbol("=")
        uri = collapsed(self._literal("a namespace in quotes"))
        usual = PREFIXES.get(name.text)
        if name.text in self._namespaces:
            raise Unreadable(f"the prefix {name.text} is declared twice", name.start)
        if usual is not None and uri != usual:
            raise Unreadable(f"the prefix {name.text} means {usual} in every program", name.start)
        if not uri:
            raise Unreadable(f"the prefix {name.text} needs a namespace", name.start)
        self._namespaces[name.text] = uri
        return name.text, uri

    def _default_namespace(self) -> None:
        if self.word("decimal-format"):
            self.at += 1
            self._decimal_format()
            return
        here = self.need_word("element")
        self.need_word("namespace")
        if self._default is not None:
            raise Unreadable("the default element namespace is declared twice", here.start)
        self._default = collapsed(self._literal("a namespace in quotes"))

    def _decimal_format(self) -> None:
        while self.peek().kind == "name" and self.peek().text in _FORMATS:
            self.at += 1
            self.need_symbol("=")
            self._literal("a text in quotes")

    def _declared_name(self, name: Token, what: str) -> tuple[str, str]:
        known = expanded(name.text.removeprefix("$"), self._namespaces)
        if what == "variable" and not name.text.startswith("$Q{") and ":" not in name.text:
            known = ("", name.text[1:])
        if known is None:
            raise Unreadable(f"nothing declares the prefix of {name.text}", name.start)
        if what == "function" and is_taken(known[0]):
            raise Unreadable(f"{name.text}: a function of a program has a prefix of its own, or local:", name.start)
        if is_taken(known[0]):
            raise Unreadable(f"{name.text}: the namespace {known[0]} is taken", name.start)
        if self._library and known[0] != self._uri:
            raise Unreadable(f"{name.text}: what a library module declares is in its namespace", name.start)
        return known

    # --- functions, variables, imports ---

    def _annotated(self, first: Token) -> None:
        self._annotations()
        if self.skip_word("function"):
            self._declared_function(first)
        elif self.skip_word("variable"):
            self._declared_variable()
        else:
            self.unexpected("function or variable")

    def _declared_function(self, first: Token) -> None:
        name = self._declared_name(self.need_name("the name of a function"), "function")
        opening = self.need_symbol("(").end
        parameters: list[str] = []
        while not self.symbol(")"):
            here = self.peek()
            parameters.append(self.need_variable())
            if ":" in parameters[-1]:
                raise Unreadable(f"{parameters[-1]}: a parameter's name has no prefix", here.start)
            self._declared_type()
            if not self.symbol(")"):
                self.need_symbol(",")
        self.at += 1
        self._declared_type()
        if self.word("external"):
            raise Unreadable("external is refused: nothing outside of the program gives a function", self.peek().start)
        if any(function.name == name and function.arity == len(parameters) for function in self._functions):
            raise Unreadable(f"the function {name[1]} with {len(parameters)} parameters is declared twice", first.start)
        self._functions.append(Function(name, tuple(parameters), opening, self._braces()))

    def _braces(self) -> Span:
        """The span between a brace and its closing one."""
        begin = self.need_symbol("{").end
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                self.unexpected("}")
            if token.kind == "symbol":
                depth += (token.text in CLOSERS) - (token.text in CLOSERS.values())
        inside = self.tokens[self.at - 2]
        return Span(begin, max(begin, inside.end if inside.start >= begin else begin))

    def _declared_variable(self) -> None:
        here = self.peek()
        self.need_variable()
        name = self._declared_name(here, "variable")
        self._declared_type()
        if self.word("external"):
            raise Unreadable("external is refused: nothing outside of the program gives a value", self.peek().start)
        self.need_symbol(":=")
        begin, depth = self.at, 0
        while depth or not self.symbol(";"):
            token = self.take()
            if token.kind == "end":
                self.unexpected(";")
            if token.kind == "symbol":
                depth += (token.text in CLOSERS) - (token.text in CLOSERS.values())
        if self.at == begin:
            self.unexpected("a value")
        if any(variable.name == name for variable in self._variables):
            raise Unreadable(f"the variable {here.text} is declared twice", here.start)
        self._variables.append(Variable(name, self.since(begin)))

    def _import(self, first: Token) -> None:
        begin = self.at - 2
        if not self.word("namespace"):
            raise Unreadable("an import names its prefix: import module namespace PREFIX = URI", first.start)
        self.at += 1
        prefix, uri = self._namespace()
        files: list[str] = []
        if self.skip_word("at"):
            files.append(self._literal("the name of a file in quotes"))
            while self.skip_symbol(","):
                files.append(self._literal("the name of a file in quotes"))
        self._imports.append(Import(prefix, uri, tuple(files), self.since(begin)))
