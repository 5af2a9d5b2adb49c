"""The arithmetic of flows: operators and functions on values.

All evaluators use it: plain Python, Spark's workers, and Spark's own columns where they agree exactly. A result outside
its type raises ``NoValue``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from postroom.flows.language.types import NUMBERS, Bag, List, Scalar, Tuple, Type, Union
from postroom.flows.language.values import INTEGERS, Tagged, canonical, canonical_text, fitting_decimal, in_order
from postroom.limits import BODY_BYTES_MAX

#: Enough for every exact sum, product and remainder of two decimals.
_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
#: What Python makes of numbers that are not decimals as we do, but for remainders.
_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_FLOAT_DIGITS = 400  # no float has more, before its point or behind it


class NoValue(Exception):
    """An expression has no value: overflow or division by zero."""


def widened(value: Any, given: Type, wanted: Type) -> Any:
    """Convert a value to a type that accepts its own."""
    if given == wanted:
        return value
    if isinstance(given, Scalar) and isinstance(wanted, Scalar):
        return {"decimal": Decimal, "float": float}[wanted.name](value)
    if isinstance(given, Tuple) and isinstance(wanted, Tuple):
        fields = zip(value, given.fields, wanted.fields, strict=True)
        return tuple(widened(part, ours.type, theirs.type) for part, ours, theirs in fields)
    if isinstance(given, Union) and isinstance(wanted, Union):
        ours, theirs = given.of(value.tag), wanted.of(value.tag)
        assert ours is not None
        assert theirs is not None
        return Tagged(value.tag, widened(value.value, ours, theirs))
    assert isinstance(given, Bag | List)
    assert isinstance(wanted, Bag | List)
    elements = [widened(element, given.of, wanted.of) for element in value]
    return in_order(elements, wanted.of) if isinstance(wanted, Bag) else tuple(elements)


def wider(left: Type, right: Type) -> Type:
    """The wider of two number types."""
    return max((left, right), key=lambda side: NUMBERS.index(str(side)))


def calculated(sign: str, left: tuple[Any, Type], right: tuple[Any, Type], type: Type) -> Any:
    """Apply an operator to two values; ``type`` is the type of the result."""
    if str(left[1]) == "date":
        return _days(sign, left[0], right[0])
    ours, theirs = (widened(value, given, type) for value, given in (left, right))
    if isinstance(type, Bag | List):
        return joined(ours, theirs, type)
    if str(type) == "string":
        return _text(ours, theirs)
    if sign in "/%" and not theirs:
        raise NoValue
    return _SIGNS[str(type)](sign, ours, theirs)


def joined(left: Sequence[Any], right: Sequence[Any], type: Bag | List) -> tuple[Any, ...]:
    """Concatenate two bags or lists; raises beyond the size of a body."""
    if len(canonical(tuple(left), type)) + len(canonical(tuple(right), type)) > BODY_BYTES_MAX:
        raise NoValue
    return in_order([*left, *right], type.of) if isinstance(type, Bag) else (*left, *right)


def _days(sign: str, left: date, right: Any) -> Any:
    if isinstance(right, date):
        return (left - right).days
    try:
        return date.fromordinal(left.toordinal() + (right if sign == "+" else -right))
    except (ValueError, OverflowError):
        raise NoValue from None


def _whole(sign: str, left: int, right: int) -> int:
    if sign == "%":
        remainder = abs(left) % abs(right)  # with the sign of the first
        return -remainder if left < 0 else remainder
    return whole_number(_PLAIN[sign](left, right))


def whole_number(value: int) -> int:
    """A whole number; raises if it is out of range."""
    if value not in INTEGERS:
        raise NoValue
    return value


def _binary(sign: str, left: float, right: float) -> float:
    return _finite(math.fmod(left, right) if sign == "%" else _PLAIN[sign](left, right))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NoValue
    return value + 0.0  # there is one zero


def _exact(sign: str, left: Decimal, right: Decimal) -> Decimal:
    if sign == "/":
        quotient = decimal_number(_EXACT.divide(left, right))
        return quotient.quantize(Decimal(1)) if quotient == quotient.to_integral_value() else _EXACT.normalize(quotient)
    works = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply, "%": _EXACT.remainder}
    return decimal_number(works[sign](left, right))


def decimal_number(value: Decimal) -> Decimal:
    """A decimal; raises if it is out of range."""
    fitted = fitting_decimal(value)
    if fitted is None:
        raise NoValue
    return fitted


_SIGNS: Mapping[str, Callable[[str, Any, Any], Any]] = {"int": _whole, "float": _binary, "decimal": _exact}


# --- functions ----------------------------------------------------------------------------------------------------


def called(name: str, given: Sequence[tuple[Any, Type]], type: Type) -> Any:
    """Call a function with its arguments; ``type`` is the type of the result."""
    if name in ("greatest", "least"):
        return (max if name == "greatest" else min)(widened(value, of, type) for value, of in given)
    if name == "string":
        return canonical_text(*given[0])
    if name == "round":
        return _rounded(given[0][0], given[1][0], str(type))
    return _FUNCTIONS[name](*[value for value, _ in given])


def _rounded(value: Any, digits: int, type: str) -> Any:
    """Round half away from zero; a float by its decimal digits."""
    if type == "float":
        exact = Decimal(repr(value))
        return _finite(float(_to_places(exact, min(max(digits, -_FLOAT_DIGITS), _FLOAT_DIGITS))))
    if type == "int":
        return whole_number(int(_to_places(Decimal(value), min(max(digits, -_FLOAT_DIGITS), 0))))
    return decimal_number(_to_places(value, max(digits, -_FLOAT_DIGITS)))


def _to_places(value: Decimal, digits: int) -> Decimal:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent <= digits:
        return value
    rounded = value.scaleb(digits, _ROUNDING).to_integral_value(ROUND_HALF_UP).scaleb(-digits, _ROUNDING)
    return rounded if digits > 0 else Decimal(int(rounded))


_ROUNDING = Context(prec=1000, rounding=ROUND_HALF_UP)


def _part(text: str, first: int, length: int) -> str:
    """A substring; the first character has the number 1."""
    return text[max(first, 1) - 1 : max(first + length, 1) - 1]


def _text(*parts: str) -> str:
    """Concatenate texts; raises beyond the size of a body."""
    if sum(map(len, parts)) > BODY_BYTES_MAX:
        raise NoValue
    return "".join(parts)


def _replaced(value: str, old: str, new: str) -> str:
    if not old:
        return value
    if len(value) + value.count(old) * (len(new) - len(old)) > BODY_BYTES_MAX:
        raise NoValue
    return value.replace(old, new)


def _absolute(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.copy_abs()  # Python's abs() would round
    return whole_number(abs(value)) if isinstance(value, int) else abs(value)


def _int(value: Any) -> int:
    return whole_number(int(value))


def _to_decimal(value: Any) -> Decimal:
    return decimal_number(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": _absolute,
    "concat": _text,
    "count": len,
    "date": lambda value: value.date(),
    "day": lambda value: value.day,
    "decimal": _to_decimal,
    "ends": lambda value, end: value.endswith(end),
    "float": lambda value: _finite(float(value)),
    "has": lambda value, part: part in value,
    "hour": lambda value: value.hour,
    "int": _int,
    "length": len,
    "lower": str.lower,
    "minute": lambda value: value.minute,
    "month": lambda value: value.month,
    "part": _part,
    "replace": _replaced,
    "starts": lambda value, beginning: value.startswith(beginning),
    "trim": lambda value: value.strip(" "),
    "upper": str.upper,
    "year": lambda value: value.year,
}
