"""An operation of a server: a method of a part of the room, at a path, for users with a right.

Its parameters come from the method's signature, so that a row of the table repeats nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Unpack, get_args, get_origin, get_type_hints

from postroom.interfaces.http.contract.answers import Answer
from postroom.interfaces.http.contract.kinds import (
    BESIDE,
    FILES,
    NAMES,
    NUMBER,
    OBJECT,
    TEXT,
    Kind,
    kind_of,
    may_be_none,
)
from postroom.model.arguments import parameter_types
from postroom.model.rights import VERBS

#: What a path names besides arguments of the verb: the object whose verb it is.
PLACES: dict[str, Kind] = {"station": TEXT, "sphere": TEXT, "lease": NUMBER}
#: What is asked inside a commit, and so refused for a server's room.
UNSENT = ("agree",)
#: About the machine of whoever calls, and never sent.
LOCAL = (*UNSENT, "progress", "master", "conf", "deliver", "report", "before", "broker", "token", "detached", "of_user")
_OBJECTS = {"queue": ("queue", "key", "lease", "name"), "space": ("space",), "station": ("station",)}
_DEEP = ("queue", "object")  # in a path they may have a slash


class Parameter(NamedTuple):
    name: str
    kind: Kind
    where: str  # path, query, body or header
    required: bool = False
    nullable: bool = False  # null says something: no limit, or for ever


ANY = "?"


class Need(NamedTuple):
    """A right that an operation needs, and the parameter that names its object.

    None means everything; ``?`` means that the right to any object is enough, for things of the user's own.
    """

    verb: str
    of: str | None


@dataclass(frozen=True)
class Operation:
    """``rights`` are verbs of grants, each with ``:`` and the parameter that names its object, unless it is the usual
    one."""

    name: str
    method: str
    path: str
    rights: str
    answer: Answer
    owner: type
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        return self.name.split(".")[0]

    @property
    def verb(self) -> str:
        return self.name.split(".")[1]

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        names = [parameter.name for parameter in self.parameters]
        return tuple(_need(word, names) for word in self.rights.split())

    @property
    def right(self) -> str:
        """The first right that it needs."""
        return self.needs[0].verb

    @property
    def of(self) -> str | None:
        """The parameter that names its object."""
        return self.needs[0].of

    @cached_property
    def function(self) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.owner, self.verb)
        return method

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(self._parameters())

    def _parameters(self) -> Iterator[Parameter]:
        inside = re.findall(r"\{(\w+)\}", self.path)
        for place in inside:
            if place in PLACES and place not in self.signature.parameters:
                yield Parameter(place, PLACES[place], "path", True)
        rest = "query" if self.method in ("GET", "DELETE") else "body"
        for name, kind, required, nullable in self._taken():
            if name in inside:
                yield Parameter(name, NAMES if name == "queue" else kind, "path", True)
            elif name == "idempotency_key":
                yield Parameter(name, kind, "header")
            elif not (self.method == "GET" and name == "queue"):
                yield Parameter(name, kind, rest, required, nullable)
            if kind is FILES:
                yield Parameter("beside", BESIDE, rest)

    def _taken(self) -> Iterator[tuple[str, Kind, bool, bool]]:
        """The parameters of the method that can be sent as JSON."""
        hints = parameter_types(self.function)
        for name, parameter in list(self.signature.parameters.items())[1:]:
            hint = hints.get(name, Any)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                yield from _named(name, hint, self.signature)
                continue
            kind = None if name in LOCAL else kind_of(name, hint, several=parameter.kind is parameter.VAR_POSITIONAL)
            if kind is not None:
                required = parameter.default is parameter.empty
                yield name, kind, required, required and may_be_none(hint)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression for the path. A queue may have slashes; other names have none."""
        return re.compile(re.sub(r"\\\{(\w+)\\\}", group_of, re.escape(self.path)))

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.function) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")

    def call(self, part: Any, arguments: Mapping[str, Any]) -> Any:
        """Call the method; variadic parameters are unpacked."""
        named, positional = dict(arguments), []
        kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        spread = next((name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), None)
        for name, kind in kinds.items():
            if name == spread:
                positional.extend(named.pop(name, ()))
            elif spread is not None and kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and name in named:
                positional.append(named.pop(name))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                named |= named.pop(name, {})
        return getattr(part, self.verb)(*positional, **named)


def group_of(match: re.Match[str]) -> str:
    return f"(?P<{match[1]}>{'.+' if match[1] == 'queue' else '.*' if match[1] in _DEEP else '[^/]*'})"


def _need(word: str, names: list[str]) -> Need:
    verb, _, of = word.partition(":")
    usual = next((name for name in _OBJECTS.get(VERBS[verb], ()) if name in names), None)
    return Need(verb, (None if of == "*" else of) or (usual if not of else None))


def _named(name: str, hint: Any, signature: inspect.Signature) -> Iterator[tuple[str, Kind, bool, bool]]:
    """The parameters taken by keyword: the keys of a TypedDict, or one object."""
    if get_origin(hint) is Unpack:
        for key, hinted in get_type_hints(get_args(hint)[0]).items():
            kind = kind_of(key, hinted)
            assert kind is not None
            yield key, kind, False, may_be_none(hinted)
    elif "fields" not in signature.parameters:
        yield name, OBJECT, False, False
