"""Aggregates of some events, which can be merged with those of others: the content of a state, as plain JSON."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any, NamedTuple

from postroom.flows.evaluation.closures import Bound, evaluator
from postroom.flows.language.aggregates import Aggregate
from postroom.flows.language.arithmetic import calculated, decimal_number, whole_number
from postroom.flows.language.codecs import data_of_value, value_of_data
from postroom.flows.language.types import DECIMAL, FLOAT, INT, Type

_EXACT_DIGITS = 200


class _Work(NamedTuple):
    """How one aggregate is computed."""

    name: str
    begun: Callable[[Bound, int], Any]  # the part of one event, by its variables and time
    joined: Callable[[Any, Any], Any]  # of two parts; the first has come before
    result: Callable[[Any], Any]


@dataclass(frozen=True)
class Partials:
    """The aggregates of an arc, over what its pattern binds."""

    aggregates: Sequence[Aggregate]
    bound: Mapping[str, Type]

    @cached_property
    def _works(self) -> list[_Work]:
        return [_work(aggregate, dict(self.bound)) for aggregate in self.aggregates]

    def begun(self, bound: Bound, time: int) -> list[Any]:
        """The state of a single event."""
        return [work.begun(bound, time) for work in self._works]

    def joined(self, earlier: Sequence[Any], later: Sequence[Any]) -> list[Any]:
        """Merge two states; the events of the first came earlier."""
        return [work.joined(one, two) for work, one, two in zip(self._works, earlier, later, strict=True)]

    def results(self, partials: Sequence[Any]) -> Bound:
        """The value of each aggregate, by its name."""
        return {work.name: work.result(partial) for work, partial in zip(self._works, partials, strict=True)}


def _work(aggregate: Aggregate, types: dict[str, Type]) -> _Work:
    name, function = aggregate.name, aggregate.function
    if aggregate.argument is None:
        return _Work(name, lambda bound, time: 1, operator.add, lambda partial: partial)
    value, type = evaluator(aggregate.argument, types)
    write, read = data_of_value(type), value_of_data(type)

    def begun(bound: Bound, time: int) -> Any:
        return write(value(bound))

    if function == "sum":
        joined = operator.add if type == INT else _sum
        return _Work(name, begun, joined, lambda partial: _number(partial, type))
    if function == "avg":
        return _Work(
            name,
            lambda bound, time: [write(value(bound)), 1],
            lambda one, two: [_sum(one[0], two[0]), one[1] + two[1]],
            lambda partial: _average(partial, type),
        )
    if function in ("first", "last"):
        joined = _first if function == "first" else _last
        return _Work(name, lambda bound, time: [time, write(value(bound))], joined, lambda partial: read(partial[1]))
    joined = _least(function, type)
    return _Work(name, begun, joined, read)


def _first(one: Any, two: Any) -> Any:
    return two if two[0] < one[0] else one


def _last(one: Any, two: Any) -> Any:
    return two if two[0] >= one[0] else one


def _least(function: str, type: Type) -> Callable[[Any, Any], Any]:
    """The smaller or greater of two values; the JSON of dates and moments sorts like them."""
    if type == DECIMAL:
        chosen = min if function == "min" else max
        return lambda one, two: chosen((one, two), key=lambda text: (Decimal(text), text))
    if function == "min":
        return lambda one, two: two if two < one else one
    return lambda one, two: two if two > one else one


def _sum(one: Any, two: Any) -> Any:
    """An exact sum, however large: a number, or the text of a decimal."""
    if isinstance(one, int):
        return one + two
    with localcontext(prec=_EXACT_DIGITS):
        return format(Decimal(one) + Decimal(two), "f")


def _average(partial: Any, type: Type) -> Any:
    whole = (_number(partial[0], type), type)
    return calculated("/", whole, (partial[1], INT), FLOAT if type == INT else DECIMAL)


def _number(plain: Any, type: Type) -> Any:
    """A sum as a value of a type; raises if it does not fit."""
    return whole_number(plain) if type == INT else decimal_number(Decimal(plain))
