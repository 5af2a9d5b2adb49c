"""Checks the arguments of public methods against their annotations before anything is done.

Python callers may pass anything. A type checker finds most of it; the rest must not fail deep inside, after half of the
work.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints, is_typeddict

from postroom.errors import ArgumentInvalid
from postroom.limits import INT_MAX, INT_MIN

C = TypeVar("C", bound=type)
_WORDS = {str: "text", bool: "True or False", bytes: "bytes", type(None): "None"}
_TEXTS = (str, bytes, bytearray)


class Check(NamedTuple):
    """A check of a value against a type, and the type's name for errors."""

    fits: Callable[[Any], bool]
    words: str
    sure: frozenset[type] = frozenset()  # whose values all fit: most calls are checked by a look here


def check_methods(kind: C) -> C:
    """A class decorator: public methods raise for arguments of the wrong type."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and not name.startswith("_") and _takes_some(member.__code__):
            setattr(kind, name, _checking(member))
    return kind


def check_call(method: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raise if a method does not accept these arguments; for indirect calls."""
    _taken(method).check(args, named)


def _takes_some(code: types.CodeType) -> bool:
    """Whether a method has parameters besides ``self``."""
    several = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return bool(several) or code.co_argcount + code.co_kwonlyargcount > 1


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    known: list[_Taken] = []  # found at the first call: not all that is imported at the start is called

    @wraps(function)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        if not known:
            known.append(_Taken(function))
        known[0].check(args, named)
        return function(self, *args, **named)

    return checked


class _Taken:
    """The checks of a function's parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = parameter_types(function)
        self._by_place: list[tuple[str, Check | None]] = []
        self._by_name: dict[str, Check | None] = {}
        self._rest: tuple[str, Check | None] = ("", None)
        self._only: Collection[str] | None = None  # the names that there are, if they are known
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            hint = hints.get(parameter.name, Any)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = (parameter.name, check_of(hint))
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._take_names(hint)
            else:
                self._by_name[parameter.name] = check_of(hint)
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self._by_place.append((parameter.name, self._by_name[parameter.name]))

    def _take_names(self, hint: Any) -> None:
        if get_origin(hint) is Unpack and is_typeddict(get_args(hint)[0]):
            hints = get_type_hints(get_args(hint)[0])
            self._by_name |= {name: check_of(annotation) for name, annotation in hints.items()}
            self._only = set(self._by_name)

    def check(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Raise if an argument has the wrong type."""
        for place, value in enumerate(args):
            name, check = self._by_place[place] if place < len(self._by_place) else self._rest
            if check is not None and type(value) not in check.sure and not check.fits(value):
                raise _refusal(name, value, check)
        for name, value in named.items():
            check = self._by_name.get(name)
            if check is not None and type(value) not in check.sure and not check.fits(value):
                raise _refusal(name, value, check)
            if self._only is not None and name not in self._only:
                known = ", ".join(sorted(self._only))
                raise ArgumentInvalid(argument=name, why=f"there is no such name; one of {known}")


@cache
def _taken(method: Callable[..., Any]) -> _Taken:
    return _Taken(inspect.unwrap(method))


def _refusal(name: str, value: Any, check: Check) -> ArgumentInvalid:
    if check.fits(0) and isinstance(value, int) and not isinstance(value, bool):
        return ArgumentInvalid(argument=name, why="a number has at most 64 bits")
    given = "None" if value is None else type(value).__name__
    if isinstance(value, _TEXTS) or not isinstance(value, collections.abc.Iterable):
        return ArgumentInvalid(argument=name, why=f"{check.words} is expected, not {given}")
    return ArgumentInvalid(argument=name, why=f"{check.words} is expected, not this {given}")


class _Unimported:
    """Stands in for a module that is imported only for type checking: its names match anything."""

    def __getattr__(self, name: str) -> Any:
        return Any


def parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function's parameters; names imported only for type checking match anything."""
    written = " ".join(map(str, function.__annotations__.values()))
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(function, localns=unknown)
        except NameError as error:
            name = str(error.name)
            unknown[name] = _Unimported() if re.search(rf"\b{name}\.", written) else Any


def check_of(hint: Any) -> Check | None:
    """The check of a type; None if anything is accepted."""
    if get_origin(hint) in (Union, types.UnionType):
        return _one_of([check_of(part) for part in get_args(hint)])
    if get_origin(hint) is Literal:
        return _literal(get_args(hint))
    if hint is int:
        return Check(_is_whole, "a whole number", frozenset([int]))
    if hint is float:
        return Check(_is_number, "a number", frozenset([float]))
    if hint in _WORDS:
        return Check(lambda value: isinstance(value, hint), _WORDS[hint], frozenset([hint]))
    return _collection(hint)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Whether it is a number that a float can represent."""
    if isinstance(value, int) and not isinstance(value, bool):
        return INT_MIN <= value <= INT_MAX
    return isinstance(value, Real) and not isinstance(value, bool)


def _literal(values: tuple[Any, ...]) -> Check:
    def fits(value: Any) -> bool:
        return any(type(value) is type(option) and value == option for option in values)

    return Check(fits, " or ".join(map(repr, values)))


def _one_of(checks: list[Check | None]) -> Check | None:
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return None
    words = [check.words for check in known]
    tests = [check.fits for check in known]

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110  # a generator would take three times as long, in every call of every verb
            if test(value):
                return True
        return False

    sure = frozenset[type]().union(*(check.sure for check in known))
    return Check(fits, " or ".join(dict.fromkeys(words)), sure)


def _collection(hint: Any) -> Check | None:
    origin: Any = get_origin(hint) or hint
    if origin == collections.abc.Callable:
        return Check(callable, "a function")
    if hint in (Any, object) or not inspect.isclass(origin) or getattr(origin, "_is_protocol", False):
        return None
    plain = not issubclass(origin, collections.abc.Iterable) or issubclass(origin, _TEXTS)
    if plain or origin.__module__.startswith("postroom"):
        return Check(lambda value: isinstance(value, origin), f"a {origin.__name__}")
    inside = _inside(hint)
    if issubclass(origin, collections.abc.Mapping):
        return Check(lambda value: isinstance(value, origin), "a mapping")
    member_check = inside if issubclass(origin, collections.abc.Collection) else None  # others are read once

    def fits(value: Any) -> bool:
        members: Any = value
        if not isinstance(value, origin) or isinstance(value, _TEXTS):
            return False
        return member_check is None or all(member_check.fits(member) for member in members)

    return Check(fits, "a list" if inside is None else f"a list of {inside.words}")


def _inside(hint: Any) -> Check | None:
    """The check for the elements of a collection."""
    parts = [part for part in get_args(hint) if part is not Ellipsis]
    return check_of(parts[0]) if len(parts) == 1 else None
