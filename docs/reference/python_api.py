"""The page on Python: every public name with its signature and docstring, and what the verbs answer with."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import tempfile
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import postroom
from postroom import errors, spark, testing
from postroom.room.opening import Short

PARTS = (
    "access",
    "consumers",
    "definitions",
    "engine",
    "flows",
    "gateways",
    "journal",
    "operations",
    "queues",
    "spheres",
    "stations",
)

#: What definitions and steps of the engine are made of; it may change. Users read what ``as_dict()`` says of it.
INSIDE = (".definitions", ".forms.form", ".forms.drawing", ".steps.effects", ".steps.stage")

#: Modules with names of their own, and where they are shown in use.
MODULES = {
    spark: "[Queues in Spark](../guide/spark.md) shows it.",
    testing: "[Tests of workers](../guide/workers.md#tests) shows it.",
}
_ATTRIBUTE = re.compile(r"^    ([a-z]\w*): ([^=#\n]*\S)(?: += .*?)?(?:  # (.*))?$", re.MULTILINE)

INTRODUCTION = """\
`import postroom` gives the names of this page; names that are not here may change. `postroom.open` gives a
`Postroom`. Each capability is a part of it (`room.queues`, `room.spheres`, …). The common verbs can be called on the
room itself: `room.send` is `room.queues.send`. A result with more than one part has `as_dict()`: the document that the
command prints with `--json`. `postroom.aio` has the same with `await`;
[a table](../guide/workers.md#asyncio) says what is awaited and how. `postroom.http.app(room)` is a room as an ASGI
application, and `postroom.http.problem(error)` the answer for an error: [in FastAPI](../guide/frameworks.md). The
guides show them in use:
[queues](../guide/queues.md#from-python), [rules](../guide/rules.md#json-and-forms-from-python),
[flows](../guide/flows.md#from-python), [stations](../guide/stations.md#from-python),
[procedures](../guide/procedures.md#from-python), [spheres](../guide/spheres.md#from-python),
[consumers](../guide/consumers.md), [gateways](../guide/gateways.md)."""


def page(made: str) -> str:
    parts = ["# Python", made, INTRODUCTION]
    for name in postroom.__all__:
        thing = getattr(postroom, name)
        if inspect.isclass(thing):
            parts += [*_class(thing, name), *_members(thing)]
            if thing is postroom.Postroom:
                parts += [text for part in room_parts() for text in _part(part)]
        elif inspect.isfunction(thing):
            parts += [f"## {name}", _code(f"postroom.{name}{signature(thing)}"), _doc(thing)]
    parts += ["## __version__", "The version of Postroom, as text."]
    parts += ["## errors", "The tree of errors; [every one of them](errors.md) with what to do about it."]
    parts += [_code((errors.__doc__ or "").split("\n\n")[1])]
    for module, shown in MODULES.items():
        here = module.__name__.removeprefix("postroom.")
        parts += [f"## {here}", _doc(module).split("\n\n")[0] + f" {shown}"]
        for name in module.__all__:
            thing = getattr(module, name)
            parts += [f"### {here}.{name}", _code(f"{name}{signature(thing)}"), _doc(thing)]
            parts += _members(thing, "####") if inspect.isclass(thing) else []
    return "\n\n".join(part for part in parts if part) + "\n"


def public_classes() -> list[type]:
    return [thing for name in postroom.__all__ if inspect.isclass(thing := getattr(postroom, name))] + room_parts()


@cache
def _room() -> postroom.Postroom:
    return postroom.open(Path(tempfile.mkdtemp()) / "room.db")


def room_parts() -> list[type]:
    """The classes of the parts of a room."""
    return [type(getattr(_room(), name)) for name in PARTS]


def answers() -> list[type]:
    """The classes of what public methods answer with, and of all that is in such an answer."""
    found: set[type] = set()
    left = public_classes()
    while left:
        kind = left.pop()
        hints = [_answer(_function(member)) for _, member in members(kind)]
        hints += [*_hints(kind).values(), *getattr(kind, "__orig_bases__", ())]
        new = {each for hint in hints for each in _classes(hint) if not each.__module__.endswith(INSIDE)} - found
        found |= new
        left += new
    return sorted(found - set(room_parts()), key=lambda kind: (kind.__name__, kind.__module__))


def _hints(kind: type) -> dict[str, Any]:
    """The types of the public attributes of a class."""
    hints = typing.get_type_hints(kind, localns=_checker_names(kind.__module__))
    return {name: hint for name, hint in hints.items() if not name.startswith("_")}


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class in the order of their writing, inherited ones of ours first."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("postroom"):
            for name, member in vars(each).items():
                if isinstance(member, Short):
                    found[name] = getattr(_room(), name)
                elif not name.startswith("_") and name != "as_dict" and _is_member(member):
                    found[name] = member
    yield from found.items()


def _is_member(member: Any) -> bool:
    return isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def _answer(function: Any) -> Any:
    return typing.get_type_hints(function, localns=_checker_names(inspect.unwrap(function).__module__)).get("return")


@cache
def _checker_names(module: str) -> dict[str, Any]:
    """The names that a module imports for the type checker alone."""
    found = {}
    tree = ast.parse(inspect.getsource(import_module(module)))
    for block in (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        for line in block.body:
            if isinstance(line, ast.ImportFrom):
                source = import_module(str(line.module))
                found |= {each.asname or each.name: getattr(source, each.name) for each in line.names}
            elif isinstance(line, ast.Import):
                found |= {each.asname or each.name: import_module(each.name) for each in line.names}
    return found


def _classes(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and hint.__module__.startswith("postroom"):
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part)


def signature(function: Any) -> str:
    """As it is written, without self."""
    given = inspect.signature(function)
    parts: list[str] = []
    starred = False
    for each in given.parameters.values():
        if each.name in ("self", "cls") and not parts:
            continue
        if each.kind is each.VAR_POSITIONAL:
            starred = True
        elif each.kind is each.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        parts.append(_parameter(each))
    said = "" if given.return_annotation is given.empty else f" -> {_annotation(given.return_annotation)}"
    return f"({', '.join(parts)}){said}"


def _parameter(each: inspect.Parameter) -> str:
    star = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
    said = star + each.name
    if each.annotation is not each.empty:
        said += f": {_annotation(each.annotation)}"
    if each.default is not each.empty:
        shown = each.default.__name__ if callable(each.default) else repr(each.default)
        said += f" = {shown}"
    return said


def _annotation(given: Any) -> str:
    return str(given if isinstance(given, str) else getattr(given, "__name__", given))


def _class(kind: type, name: str, mark: str = "##") -> list[str]:
    parts = [f"{mark} {name}", _doc(kind)]
    if issubclass(kind, enum.Enum):
        parts.append(", ".join(f"`{name}.{each.name}`" for each in kind))
    parts.append("\n".join(f"- {each}" for each in (*_fields(kind), *_properties(kind))))
    return parts


def _fields(kind: type) -> Iterator[str]:
    if dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            if not each.name.startswith("_"):
                yield f"`{each.name}: {_annotation(each.type)}`"
    for name in getattr(kind, "_fields", ()):
        given = kind.__annotations__[name]
        yield f"`{name}: {getattr(given, '__forward_arg__', None) or _annotation(given)}`"
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "_fields"):
        yield from _attributes(kind)


def _attributes(kind: type) -> Iterator[str]:
    """What a class says of its attributes: the type of each, and the comment behind it."""
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("postroom"):
            for name, given, said in _ATTRIBUTE.findall(_source(each)):
                yield f"`{name}: {given}`" + (f". {said[0].upper()}{said[1:]}." if said else "")


def _source(kind: type) -> str:
    """The class before its first method."""
    return re.split(r"^    (?:@|def )", inspect.getsource(kind), maxsplit=1, flags=re.MULTILINE)[0]


def _properties(kind: type) -> Iterator[str]:
    for name, member in members(kind):
        if isinstance(member, property):
            said = _annotation(inspect.signature(_function(member)).return_annotation)
            yield f"`{name}: {said}`. {_doc(_function(member))}"


def _part(kind: type) -> Iterator[str]:
    """A part of a room, under the name that it has there."""
    name = PARTS[room_parts().index(kind)]
    yield from (f"### room.{name}", _doc(kind))
    for method, member in members(kind):
        yield from (
            f"#### room.{name}.{method}",
            _code(f"{method}{signature(_function(member))}"),
            _doc(_function(member)),
        )


def _members(kind: type, mark: str = "###") -> Iterator[str]:
    for name, member in members(kind):
        if not isinstance(member, property):
            function = _function(member)
            yield from (f"{mark} {kind.__name__}.{name}", _code(f"{name}{signature(function)}"), _doc(function))


def missing() -> list[str]:
    """Public classes, methods and properties that nobody has described."""
    found = []
    for kind in (*public_classes(), *answers()):
        if (kind.__doc__ or f"{kind.__name__}(").startswith(f"{kind.__name__}("):  # what a dataclass says of itself
            found.append(kind.__name__)
        found += [f"{kind.__name__}.{name}" for name, member in members(kind) if not _function(member).__doc__]
    return found


def _doc(thing: Any) -> str:
    """A docstring as Markdown: names in double back quotes are code."""
    said = inspect.getdoc(thing) or ""
    return re.sub(r"``([^`]+)``", r"`\1`", said)


def _code(text: str) -> str:
    return f"```text\n{text}\n```"
