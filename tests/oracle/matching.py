"""Patterns and expressions by their meaning, one event at a time: what the columns of Spark must agree with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from postroom.flows.inference import arithmetic, places, result_places, type_of
from postroom.flows.patterns import (
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
from postroom.flows.types import Bag, List, Scalar, Tuple, Type, Union
from postroom.flows.values import Literal, Tagged, canonical, value_of

Values = dict[str, tuple[Any, Type]]


def match(pattern: Pattern, type: Type, value: Any, bound: Values | None = None) -> Values | None:
    """What a pattern binds in a value; None if it does not match."""
    known = dict(bound or {})
    return known if _matches(pattern, type, value, known) else None


def _matches(pattern: Pattern, type: Type, value: Any, bound: Values) -> bool:
    if isinstance(pattern, Anything):
        return True
    if isinstance(pattern, Equal):
        return bool(constant(pattern.value, type) == value)
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        return value.tag == pattern.tag and _matches(pattern.inside, inside, value.value, bound)
    if isinstance(pattern, Variable):
        return _variable(pattern, type, value, bound)
    return _parts(pattern, type, value, bound)


def _variable(pattern: Variable, type: Type, value: Any, bound: Values) -> bool:
    if pattern.name in bound:
        if bound[pattern.name][0] != value:
            return False
    elif pattern.name:
        bound[pattern.name] = value, type
    for condition in pattern.conditions:
        given = condition.value
        other = constant(given, type) if isinstance(given, Constant) else evaluate(given, bound)[0]
        if not _compare(condition.sign, value, other):
            return False
    return True


def _compare(sign: str, left: Any, right: Any) -> bool:
    if sign in ("=", "!="):
        return bool((left == right) == (sign == "="))
    return bool({">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[sign])


def _parts(pattern: Parts, type: Type, value: Any, bound: Values) -> bool:
    if pattern.bracket == "[":
        assert isinstance(type, Tuple)
        return all(
            _matches(part, type.fields[place].type, value[place], bound)
            for place, part in places(pattern.parts, type, pattern.position)
        )
    assert isinstance(type, Bag | List)
    left = list(value)
    for _, part in pattern.parts:
        found = next((each for each in left if _matches(part, type.of, each, bound)), None) if left else None
        if pattern.bracket == "(":
            found = left[0] if left and _matches(part, type.of, left[0], bound) else None
        if found is None:
            return False
        left.remove(found) if pattern.bracket == "{" else left.pop(0)
    return not left if pattern.rest is None else _matches(pattern.rest, type, tuple(left), bound)


def constant(given: Constant, type: Type) -> Any:
    """A constant as a value of the type that it is compared with."""
    kind = "word" if isinstance(given.value, bool) else "number" if isinstance(given.value, Decimal) else "string"
    value = str(given.value).lower() if kind == "word" else given.value
    return value_of(Literal(kind, value), type)


def make(expression: Expression, wanted: Type, bound: Values) -> Any:
    """The value that an expression makes where a type is wanted."""
    if isinstance(expression, Constant):
        return constant(expression, wanted)
    if isinstance(expression, MadeTagged):
        assert isinstance(wanted, Union)
        of = wanted.of(expression.tag)
        assert of is not None
        return Tagged(expression.tag, make(expression.value, of, bound))
    if isinstance(expression, Made):
        return _made(expression, wanted, bound)
    if isinstance(expression, Arithmetic) and isinstance(wanted, Bag | List):
        both = (*make(expression.left, wanted, bound), *make(expression.right, wanted, bound))
        return _sorted(both, wanted.of) if isinstance(wanted, Bag) else both
    value, given = evaluate(expression, bound)
    return _widened(value, given, wanted)


def _made(expression: Made, wanted: Type, bound: Values) -> Any:
    if isinstance(wanted, Tuple):
        return tuple(make(part, wanted.fields[place].type, bound) for place, part in result_places(expression, wanted))
    assert isinstance(wanted, Bag | List)
    elements = tuple(make(part, wanted.of, bound) for _, part in expression.parts)
    return _sorted(elements, wanted.of) if isinstance(wanted, Bag) else elements


def _sorted(elements: tuple[Any, ...], type: Type) -> tuple[Any, ...]:
    return tuple(sorted(elements, key=lambda each: canonical(each, type)))


def _widened(value: Any, given: Type, wanted: Type) -> Any:
    if isinstance(given, Scalar) and isinstance(wanted, Scalar) and given != wanted:
        return {"decimal": Decimal, "float": float}[wanted.name](value)
    return value


def evaluate(expression: Expression, bound: Values) -> tuple[Any, Type]:
    """The value of an expression, and its type."""
    type = type_of(expression, {name: each for name, (_, each) in bound.items()})
    if isinstance(expression, Constant):
        return constant(expression, type), type
    if isinstance(expression, Use):
        return bound[expression.name]
    if isinstance(expression, Arithmetic):
        left, right = evaluate(expression.left, bound), evaluate(expression.right, bound)
        assert arithmetic(expression.sign, left[1], right[1]) == type
        return _calculated(expression.sign, left[0], right[0], type), type
    if isinstance(expression, Call):
        return _called(expression.function, [evaluate(each, bound)[0] for each in expression.arguments]), type
    return make(expression, type, bound), type


def _calculated(sign: str, left: Any, right: Any, type: Type) -> Any:
    if hasattr(left, "isoformat"):
        if hasattr(right, "isoformat"):
            return (left - right).days
        return left + timedelta(days=right if sign == "+" else -right)
    if str(type) == "float":
        left, right = float(left), float(right)
    elif str(type) == "decimal":
        left, right = Decimal(left), Decimal(right)
    if sign == "%":
        return left - right * int(left / right) if str(type) != "int" else _remainder(left, right)
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    return left * right if sign == "*" else left / right


def _remainder(left: int, right: int) -> int:
    """With the sign of the first, as in SQL."""
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def _called(name: str, given: list[Any]) -> Any:
    if name in ("year", "month", "day", "hour", "minute"):
        return getattr(given[0], name)
    known: dict[str, Callable[[], Any]] = {
        "abs": lambda: abs(given[0]),
        "concat": lambda: "".join(given),
        "count": lambda: len(given[0]),
        "length": lambda: len(given[0]),
        "upper": lambda: given[0].upper(),
        "lower": lambda: given[0].lower(),
        "trim": lambda: given[0].strip(" "),
        "part": lambda: given[0][given[1] - 1 : given[1] - 1 + given[2]],
        "replace": lambda: given[0].replace(given[1], given[2]),
        "starts": lambda: given[0].startswith(given[1]),
        "ends": lambda: given[0].endswith(given[1]),
        "has": lambda: given[1] in given[0],
        "least": lambda: min(given),
        "greatest": lambda: max(given),
        "float": lambda: float(given[0]),
        "int": lambda: int(given[0]),
        "decimal": lambda: Decimal(given[0]),
        "date": lambda: given[0].date(),
        "string": lambda: str(given[0]),
        "round": lambda: round(given[0], given[1]),
    }
    return known[name]()
