"""The environment of a module's expressions: its declarations and imported library modules.

Declarations are put into the query as written, before the rules. Three things are added: library modules embedded
without a file; a wrapper around variables, which must not read the document of all messages; and parameters for
functions that read the message or sets of messages.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from postroom.model.definitions import Position
from postroom.rules.compilation.updates import with_functions
from postroom.rules.language.body import Body, Call, Span
from postroom.rules.language.definitions import Expression, LibraryDefinition, Program
from postroom.rules.language.edits import Edit, Edited, edited
from postroom.rules.language.functions import OURS, PREFIXES
from postroom.rules.language.prolog import Function, Import, Prolog, Variable
from postroom.rules.language.prolog import library as declarations

#: The variables through which a function sees what a rule sees.
SEEN = "$qs:m, $qs:message, $qs:sets"
_PARAMETERS = "$qs:m as element(), $qs:message as item()?, $qs:sets as map(*)"
_USUAL = ("qs", "map", "array", "math")  # prefixes that XQuery does not know by itself

#: A function by its canonical name and the number of its arguments, as calls name it.
Named = tuple[str, int]


def named(function: Function) -> Named:
    return f"Q{{{function.name[0]}}}{function.name[1]}", function.arity


def called(call: Call) -> Named:
    return call.name, call.arity if call.reference else len(call.arguments) + call.arrow


@dataclass(frozen=True)
class Environment:
    """The declarations of one module."""

    prolog: Prolog = field(default_factory=Prolog)
    where: Expression | None = None  # the text of the declarations, with its place
    file: str = ""
    libraries: Mapping[str, LibraryDefinition] = field(default_factory=dict)  # of the whole program, by namespace

    @cached_property
    def key(self) -> str:
        """A key: expressions with the same key may be in one query."""
        return "\n".join([self.prolog.text, *(self._reached(clause.uri) for clause in self.prolog.imports)])

    @cached_property
    def functions(self) -> frozenset[Named]:
        """The functions that expressions may call, besides XQuery's and ours."""
        own = {named(function) for function in self.prolog.functions}
        imported = (self._library(clause.uri).functions for clause in self.prolog.imports)
        return frozenset(own.union(*(map(named, some) for some in imported)))

    @cached_property
    def variables(self) -> frozenset[tuple[str, str]]:
        """By namespace and local name."""
        imported = (self._library(clause.uri).variables for clause in self.prolog.imports)
        return frozenset(variable.name for some in (self.prolog.variables, *imported) for variable in some)

    @cached_property
    def calls(self) -> dict[Named, frozenset[Named]]:
        """For each function of the module, the functions that it calls, of the module and of ours."""
        return {
            named(declaration): frozenset(map(called, body.calls))
            for declaration, body in self.prolog.bodies.items()
            if isinstance(declaration, Function)
        }

    @cached_property
    def seeing(self) -> frozenset[Named]:
        """The functions that read the message or sets of messages, directly or indirectly."""
        names = {name for name, some in self.calls.items() if any(callee in OURS for callee, _ in some)}
        while more := {name for name, some in self.calls.items() if some & names} - names:
            names |= more
        return frozenset(names)

    def reached(self, bodies: Iterable[Body]) -> frozenset[Named]:
        """The functions of the module that some expressions may call, at any depth."""
        names: set[Named] = set()
        todo = {called(call) for body in bodies for call in body.calls}
        while todo:
            names |= todo & self.calls.keys()
            todo = {callee for name in todo if name in self.calls for callee in self.calls[name]} - names
        return frozenset(names)

    def used(self, texts: Iterable[str]) -> set[str]:
        """The local names of module and imported variables that texts use, directly or indirectly."""
        every: list[Function | Variable] = [*self.prolog.variables, *self.prolog.functions]
        own = {
            declaration.name[1]: (declaration, self.prolog.text[slice(*_inside(declaration))]) for declaration in every
        }
        imported = {
            variable.name[1] for clause in self.prolog.imports for variable in self._library(clause.uri).variables
        }
        prefixes = "|".join(re.escape(clause.prefix) for clause in self.prolog.imports)
        names: set[str] = set()
        todo = list(texts)
        while todo:
            text = todo.pop()
            if prefixes and re.search(rf"(?<![\w.-])(?:{prefixes}):", text):
                names |= imported
            for name, (declaration, inside) in own.items():
                mark = r"\$(?:[\w.-]+:|Q\{[^}]*\})?" if isinstance(declaration, Variable) else r"(?<![\w.-])"
                if name not in names and re.search(rf"{mark}{re.escape(name)}(?![\w.-])", text):
                    names.add(name)
                    todo.append(inside)
        return names

    def _library(self, uri: str) -> Prolog:
        known = self.libraries.get(uri)
        return declarations(known.text) if known is not None else Prolog()

    def _reached(self, uri: str) -> str:
        known = self.libraries.get(uri)
        return "" if known is None else reference(self.libraries, uri)


def _inside(declaration: Function | Variable) -> Span:
    return declaration.body if isinstance(declaration, Function) else declaration.value


def environment(program: Program, module: str) -> Environment:
    known = program.modules.get(module)
    if known is None or known.prolog is None:
        return Environment()
    return Environment(program.prolog(module), known.prolog, known.position.file, program.libraries)


def library_environment(libraries: Mapping[str, LibraryDefinition], uri: str) -> Environment:
    """The declarations of a library module."""
    known = libraries[uri]
    return Environment(declarations(known.text), Expression(known.text, 1, 1), known.position.file, libraries)


def place(environment: Environment, offset: int) -> Position:
    """An offset in the declarations as a place in their file."""
    where = environment.where
    assert where is not None
    return where.place(environment.file, offset)


# --- text ---


def import_edits(imports: Iterable[Import], libraries: Mapping[str, LibraryDefinition]) -> list[Edit]:
    return [
        Edit(*clause.span, f'import module namespace {clause.prefix} = "{quoted(clause.uri)}" at "{library}"')
        for clause in imports
        if (library := reference(libraries, clause.uri))
    ]


def reference(libraries: Mapping[str, LibraryDefinition], uri: str) -> str:
    """A library module as a data URL with its whole text, so that no file is read."""
    return f"data:application/xquery;base64,{b64encode(library_edited(libraries, uri).text.encode()).decode()}"


def library_edited(libraries: Mapping[str, LibraryDefinition], uri: str) -> Edited:
    known = declarations(libraries[uri].text)
    edits = import_edits(known.imports, libraries) + framed(known.variables)
    return edited(known.text, 0, len(known.text), edits)


def framed(variables: Iterable[Variable]) -> list[Edit]:
    """Wrap variables, so that their values have no context item: it would be the document of all messages."""
    edits = []
    for variable in variables:
        edits += [Edit(variable.value.start, variable.value.start, "(function() { ")]
        edits += [Edit(variable.value.end, variable.value.end, " })()")]
    return edits


def parameters(function: Function) -> Edit:
    comma = ", " if function.parameters else ""
    return Edit(function.opening, function.opening, f"{_PARAMETERS}{comma}")


def call_edits(call: Call, text: str) -> list[Edit]:
    """Pass the context parameters in calls of functions that need them.

    A function reference is wrapped in a function. Saxon 13 does not support default arguments of functions that are
    declared later.
    """
    name = text[call.start : call.opening - (not call.reference)].rstrip()
    if call.reference:
        return [Edit(call.start, call.end, _around(name, ["?"] * call.arity))]
    if call.arrow:
        return [Edit(call.start, call.opening - 1, f"({_around(name, ['?'] * called(call)[1])})")]
    gaps = [text[argument.start : argument.end] == "?" for argument in call.arguments]
    if not any(gaps):
        return [Edit(call.opening, call.opening, f"{SEEN}, " if call.arguments else SEEN)]
    given = [(number, argument) for number, argument in enumerate(call.arguments) if not gaps[number]]
    values = ["?" if gap else f"$qs:a{number}" for number, gap in enumerate(gaps)]
    edits, at = [], call.start
    for number, argument in given:
        before = "(let" if at == call.start else "),"
        edits.append(Edit(at, argument.start, f"{before} $qs:a{number} := ("))
        at = argument.end
    last = f") return {_around(name, values)})" if given else f"({_around(name, values)})"
    return [*edits, Edit(at, call.end, last)]


def _around(name: str, values: Sequence[str]) -> str:
    """A wrapping function with a parameter for each ``?``."""
    values_text = [f"$qs:g{number}" if value == "?" else value for number, value in enumerate(values)]
    open = ", ".join(parameter for parameter, value in zip(values_text, values, strict=True) if value == "?")
    return f"function({open}) {{ {name}({', '.join([SEEN, *values_text])}) }}"


def usual_namespaces(environment: Environment) -> str:
    """The default prefixes of queries, except those that the module declares."""
    return " ".join(
        f'declare namespace {prefix} = "{PREFIXES[prefix]}";'
        for prefix in _USUAL
        if prefix not in environment.prolog.namespaces
    )


def finished(text: str, environment: Environment, mark: str) -> str:
    """A complete query; with a default element namespace, our own elements are still in none."""
    text = with_functions(text)
    if not environment.prolog.default:
        return text
    return re.sub(rf"<([a-z]-{mark})(?=[ >])", r'<\1 xmlns=""', text)


def quoted(uri: str) -> str:
    return uri.replace("&", "&amp;").replace('"', "&quot;")
