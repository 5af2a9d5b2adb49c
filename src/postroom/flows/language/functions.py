"""The functions of expressions: name, parameters, and result type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postroom.flows.language.types import (
    ATOM,
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INT,
    NUMBERS,
    STRING,
    TIMESTAMP,
    Bag,
    List,
    Scalar,
    Type,
)

_NUMERIC = (INT, FLOAT, DECIMAL)
_TIMES = (DATE, TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    usage: str
    result: Callable[[Sequence[Type]], Type | None]  # None: not for these arguments


def _of(*wanted: tuple[Type, ...], makes: Type) -> Callable[[Sequence[Type]], Type | None]:
    """A signature with parameters of the given types."""

    def result(given: Sequence[Type]) -> Type | None:
        fits = len(given) == len(wanted) and all(
            argument in types for argument, types in zip(given, wanted, strict=True)
        )
        return makes if fits else None

    return result


def _same_number(given: Sequence[Type]) -> Type | None:
    return given[0] if len(given) == 1 and given[0] in _NUMERIC else None


def _rounded(given: Sequence[Type]) -> Type | None:
    return given[0] if len(given) == 2 and given[0] in _NUMERIC and given[1] == INT else None


def _texts(given: Sequence[Type]) -> Type | None:
    return STRING if given and all(argument in (STRING, ATOM) for argument in given) else None


def _widest(given: Sequence[Type]) -> Type | None:
    if len(given) < 2:
        return None
    if all(isinstance(argument, Scalar) and argument.name in NUMBERS for argument in given):
        return max(given, key=lambda argument: NUMBERS.index(str(argument)))
    return given[0] if given[0] in (STRING, *_TIMES) and all(argument == given[0] for argument in given) else None


def _elements(given: Sequence[Type]) -> Type | None:
    return INT if len(given) == 1 and isinstance(given[0], Bag | List) else None


_TEXT = (STRING, ATOM)
_ALL = (
    Function("abs", "abs(number)", _same_number),
    Function("concat", "concat(text, …)", _texts),
    Function("count", "count(bag or list)", _elements),
    Function("date", "date(timestamp)", _of((TIMESTAMP,), makes=DATE)),
    Function("day", "day(date or timestamp)", _of(_TIMES, makes=INT)),
    Function("decimal", "decimal(number)", _of(_NUMERIC, makes=DECIMAL)),
    Function("ends", "ends(text, end)", _of(_TEXT, _TEXT, makes=BOOLEAN)),
    Function("float", "float(number)", _of(_NUMERIC, makes=FLOAT)),
    Function("greatest", "greatest(value, value, …)", _widest),
    Function("has", "has(text, part)", _of(_TEXT, _TEXT, makes=BOOLEAN)),
    Function("hour", "hour(timestamp)", _of((TIMESTAMP,), makes=INT)),
    Function("int", "int(number)", _of(_NUMERIC, makes=INT)),
    Function("least", "least(value, value, …)", _widest),
    Function("length", "length(text)", _of(_TEXT, makes=INT)),
    Function("lower", "lower(text)", _of(_TEXT, makes=STRING)),
    Function("minute", "minute(timestamp)", _of((TIMESTAMP,), makes=INT)),
    Function("month", "month(date or timestamp)", _of(_TIMES, makes=INT)),
    Function("part", "part(text, first, length)", _of(_TEXT, (INT,), (INT,), makes=STRING)),
    Function("replace", "replace(text, old, new)", _of(_TEXT, _TEXT, _TEXT, makes=STRING)),
    Function("round", "round(number, digits)", _rounded),
    Function("starts", "starts(text, beginning)", _of(_TEXT, _TEXT, makes=BOOLEAN)),
    Function("string", "string(value)", _of((*_NUMERIC, *_TEXT, *_TIMES, BOOLEAN), makes=STRING)),
    Function("trim", "trim(text)", _of(_TEXT, makes=STRING)),
    Function("upper", "upper(text)", _of(_TEXT, makes=STRING)),
    Function("year", "year(date or timestamp)", _of(_TIMES, makes=INT)),
)
FUNCTIONS = {function.name: function for function in _ALL}
