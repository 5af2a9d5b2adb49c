"""The comparisons in a pattern that an index can answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from postroom.flows.language.inference import constant_value, places
from postroom.flows.language.patterns import Anything, Condition, Constant, Equal, Parts, Pattern, Variable
from postroom.flows.language.types import Scalar, Tuple, Type
from postroom.flows.language.values import label

#: Types whose values an index can compare: Arrow has them as they are.
INDEXED = ("string", "atom", "int", "float", "boolean")
Plain = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of one value, found by its path in the event, with a constant."""

    path: tuple[str, ...]
    sign: str
    value: Plain


def predicates(pattern: Pattern, type: Type) -> list[Predicate] | None:
    """The pattern as comparisons of single values with constants; None if it has other conditions."""
    try:
        return list(_predicates(pattern, type, (), set()))
    except _AsksMore:
        return None


class _AsksMore(Exception):
    pass


def _predicates(pattern: Pattern, type: Type, path: tuple[str, ...], bound: set[str]) -> Iterator[Predicate]:
    if isinstance(pattern, Anything):
        return
    if isinstance(pattern, Equal):
        yield Predicate(path, "=", _plain(pattern.value, type))
    elif isinstance(pattern, Variable):
        if pattern.name in bound:
            raise _AsksMore  # two values that must be equal
        if pattern.name:
            bound.add(pattern.name)
        yield from (_compared(condition, type, path) for condition in pattern.conditions)
    elif isinstance(pattern, Parts) and isinstance(type, Tuple):
        for place, part in places(pattern.parts, type, pattern.position):
            yield from _predicates(part, type.fields[place].type, (*path, label(type, place)), bound)
    else:
        raise _AsksMore


def _compared(condition: Condition, type: Type, path: tuple[str, ...]) -> Predicate:
    if not isinstance(condition.value, Constant):
        raise _AsksMore
    return Predicate(path, condition.sign, _plain(condition.value, type))


def _plain(constant: Constant, type: Type) -> Plain:
    """A constant as a value of the index's column."""
    if not isinstance(type, Scalar) or type.name not in INDEXED:
        raise _AsksMore
    value: Plain = constant_value(constant, type)
    return value
