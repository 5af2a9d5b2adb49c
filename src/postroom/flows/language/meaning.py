"""Patterns and expressions as plain Python, one event at a time: columns and the index must agree with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from postroom.flows.language.arithmetic import NoValue, calculated, called, joined, widened, wider
from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.inference import arithmetic, constant_value, is_number, places, result_places, type_of
from postroom.flows.language.patterns import (
    Anything,
    Arithmetic,
    Call,
    Constant,
    Equal,
    Expression,
    Made,
    MadeTagged,
    Parts,
    Pattern,
    Tag,
    Use,
    Variable,
)
from postroom.flows.language.types import Bag, List, Tuple, Type, Union, accepts
from postroom.flows.language.values import Tagged, as_json, decimal_of, fitted, in_order

Values = dict[str, tuple[Any, Type]]


def match(pattern: Pattern, type: Type, value: Any, bound: Values | None = None) -> Values | None:
    """The bindings of a pattern in a value; None if it does not match.

    If a condition has no value and everything else matches, raises ``NoValue``.
    """
    return matched([(pattern, type, value)], bound)


def matched(triples: Sequence[tuple[Pattern, Type, Any]], bound: Values | None = None) -> Values | None:
    """The bindings of several patterns, each with its value: an event and a table's row."""
    matching = _Matching(dict(bound or {}))
    if not all(matching.matches(pattern, type, value) for pattern, type, value in triples):
        return None
    if matching.open:
        raise NoValue
    return matching.bound


@dataclass
class _Matching:
    bound: Values
    open: bool = field(default=False)

    def matches(self, pattern: Pattern, type: Type, value: Any) -> bool:
        if isinstance(pattern, Anything):
            return True
        if isinstance(pattern, Equal):
            return bool(constant_value(pattern.value, type) == value)
        if isinstance(pattern, Tag):
            assert isinstance(type, Union)
            inside = type.of(pattern.tag)
            assert inside is not None
            return value.tag == pattern.tag and self.matches(pattern.inside, inside, value.value)
        if isinstance(pattern, Variable):
            return self._variable(pattern, type, value)
        if pattern.bracket == "[":
            assert isinstance(type, Tuple)
            placed = places(pattern.parts, type, pattern.position)
            return all(self.matches(part, type.fields[place].type, value[place]) for place, part in placed)
        return self._several(pattern, type, value)

    def _variable(self, pattern: Variable, type: Type, value: Any) -> bool:
        if pattern.name in self.bound:
            if not _same(value, type, *self.bound[pattern.name]):
                return False
        elif pattern.name:
            self.bound[pattern.name] = value, type
        for condition in pattern.conditions:
            try:
                if not _compared(condition.sign, value, type, condition.value, self.bound):
                    return False
            except NoValue:
                self.open = True
        return True

    def _several(self, pattern: Parts, type: Type, value: Any) -> bool:
        assert isinstance(type, Bag | List)
        left = list(value)
        for _, part in pattern.parts:
            if pattern.bracket == "(":
                if not left or not self.matches(part, type.of, left.pop(0)):
                    return False
                continue
            place = next((place for place, element in enumerate(left) if self.matches(part, type.of, element)), None)
            if place is None:
                return False
            del left[place]
        return not left if pattern.rest is None else self.matches(pattern.rest, type, tuple(left))


def _same(left: Any, left_type: Type, right: Any, right_type: Type) -> bool:
    """Whether two values are equal, where one type accepts the other."""
    if accepts(left_type, right_type):
        return bool(left == widened(right, right_type, left_type))
    return bool(widened(left, left_type, right_type) == right)


def _compared(sign: str, left: Any, type: Type, given: Expression, bound: Values) -> bool:
    """Compare two values: numbers by the wider type, a constant as a value of the other's type."""
    if isinstance(given, Constant):
        right = constant_value(given, type)
    elif is_number(type):
        value, right_type = evaluate(given, bound)
        both = wider(type, right_type)
        left, right = widened(left, type, both), widened(value, right_type, both)
    else:
        right = make(given, type, bound)
    if sign in ("=", "!="):
        return bool((left == right) == (sign == "="))
    return bool({">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[sign])


def make(expression: Expression, wanted: Type, bound: Values) -> Any:
    """The value of an expression where a type is wanted."""
    if isinstance(expression, Constant):
        return constant_value(expression, wanted)
    if isinstance(expression, MadeTagged):
        assert isinstance(wanted, Union)
        of = wanted.of(expression.tag)
        assert of is not None
        return Tagged(expression.tag, make(expression.value, of, bound))
    if isinstance(expression, Made):
        return _made(expression, wanted, bound)
    if isinstance(expression, Arithmetic) and isinstance(wanted, Bag | List):
        return joined(make(expression.left, wanted, bound), make(expression.right, wanted, bound), wanted)
    value, given = evaluate(expression, bound)
    return widened(value, given, wanted)


def _made(expression: Made, wanted: Type, bound: Values) -> Any:
    if isinstance(wanted, Tuple):
        return tuple(make(part, wanted.fields[place].type, bound) for place, part in result_places(expression, wanted))
    assert isinstance(wanted, Bag | List)
    elements = [make(part, wanted.of, bound) for _, part in expression.parts]
    return in_order(elements, wanted.of) if isinstance(wanted, Bag) else tuple(elements)


def evaluate(expression: Expression, bound: Values) -> tuple[Any, Type]:
    """The value of an expression, and its type."""
    if isinstance(expression, Use):
        return bound[expression.name]
    if isinstance(expression, Arithmetic):
        left, right = evaluate(expression.left, bound), evaluate(expression.right, bound)
        result = arithmetic(expression.sign, left[1], right[1])
        assert result is not None, "a check sees to it"
        return calculated(expression.sign, left, right, result), result
    if isinstance(expression, Call):
        given = [evaluate(argument, bound) for argument in expression.arguments]
        made_type = FUNCTIONS[expression.function].result([type for _, type in given])
        assert made_type is not None, "a check sees to it"
        return called(expression.function, given, made_type), made_type
    type = type_of(expression, {name: value_type for name, (_, value_type) in bound.items()})
    return make(expression, type, bound), type


@dataclass(frozen=True, slots=True)
class Work:
    """An expression that a Spark worker computes, from the JSON of its variables to the JSON of its value."""

    expression: Expression
    wanted: Type
    types: Mapping[str, Type]

    def __call__(self, text: str | None) -> str | None:
        """The result as JSON; None if there is no value, or a variable has none."""
        document = json.loads(text or "{}", parse_float=decimal_of)
        if document.keys() != self.types.keys():
            return None
        bound = {name: (fitted(document[name], type, "the worker"), type) for name, type in self.types.items()}
        try:
            value = make(self.expression, self.wanted, bound)
        except NoValue:
            return None
        return json.dumps({"v": as_json(value, self.wanted)}, ensure_ascii=False)
