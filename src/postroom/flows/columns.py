"""Patterns and results as columns of Spark: the same for a batch and for a stream, and nothing leaves Java.

An event is one column by its type: a tuple is a struct, a variant a struct of which one field is there, a bag or a list
an array. What a pattern asks is one condition; what it binds are columns again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from postroom.flows.inference import arithmetic, places, type_of
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
from postroom.flows.types import NUMBERS, STRING, Bag, Row, Scalar, Tuple, Type, Union
from postroom.flows.values import DECIMAL_DIGITS, DECIMAL_PLACES, label

_SIMPLE: Mapping[str, DataType] = {
    "atom": StringType(),
    "string": StringType(),
    "int": LongType(),
    "boolean": BooleanType(),
    "float": DoubleType(),
    "decimal": DecimalType(DECIMAL_DIGITS, DECIMAL_PLACES),
    "date": DateType(),
    "timestamp": TimestampType(),
}
_TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable's column and type."""

    column: Column
    type: Type


class Variables(dict[str, Bound]):
    """What a pattern has bound. ``risks`` are the columns of results that are null where a number has overflowed."""

    def __init__(self, known: Mapping[str, Bound] | None = None) -> None:
        super().__init__(known or {})
        self.risks: list[Column] = []


def data_type(type: Type) -> DataType:
    """How Spark holds values of a type."""
    if isinstance(type, Scalar):
        return _SIMPLE[type.name]
    if isinstance(type, Bag | Row):
        return ArrayType(data_type(type.of))
    if isinstance(type, Union):
        return StructType([StructField(str(each.name), data_type(each.type)) for each in type.tags])
    fields = [StructField(label(type, place), data_type(each.type)) for place, each in enumerate(type.fields)]
    return StructType(fields)


def event_of(body: Column, type: Type) -> Column:
    """A stored event as a column by its type."""
    wrapped = StructType([StructField("event", data_type(type), False)])
    return sql.from_json(sql.concat(sql.lit('{"event":'), body, sql.lit("}")), wrapped, {"mode": "FAILFAST"})["event"]


def body_of(event: Column, type: Type) -> Column:
    """An event as it is stored."""
    if isinstance(type, Scalar):
        said = sql.to_json(sql.struct(_shown(event, type).alias("event")))
        return sql.substring(said, 10, 2**31 - 1).substr(sql.lit(1), sql.length(said) - 10)
    return sql.to_json(_shown(event, type))


def _shown(value: Column, type: Type) -> Column:
    """A value of which Spark's JSON is ours."""
    if isinstance(type, Scalar):
        if type.name == "decimal":
            return value.cast("string")
        if type.name == "timestamp":
            return sql.date_format(sql.to_utc_timestamp(value, sql.current_timezone()), _TIMES)
        return value
    if isinstance(type, Bag | Row):
        of = type.of
        return sql.transform(value, lambda each: _shown(each, of))
    if isinstance(type, Union):
        tags = [(str(each.name), value[str(each.name)], each.type) for each in type.tags]
        return sql.struct(*[sql.when(tag.isNotNull(), _shown(tag, of)).alias(name) for name, tag, of in tags])
    parts = [_shown(value[label(type, place)], each.type) for place, each in enumerate(type.fields)]
    return sql.struct(*[part.alias(label(type, place)) for place, part in enumerate(parts)])


# --- patterns -----------------------------------------------------------------------------------------------------


def matches(pattern: Pattern, type: Type, value: Column, variables: Variables) -> Column:
    """Whether a value matches; what the pattern binds is added to ``variables``."""
    conditions = list(_conditions(pattern, type, value, variables))
    return reduce(and_, conditions) if conditions else sql.lit(True)


def _conditions(pattern: Pattern, type: Type, value: Column, variables: Variables) -> list[Column]:
    if isinstance(pattern, Anything):
        return []
    if isinstance(pattern, Equal):
        return [_same(value, constant(pattern.value, type))]
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        tagged = value[pattern.tag]
        return [tagged.isNotNull(), *_conditions(pattern.inside, inside, tagged, variables)]
    if isinstance(pattern, Variable):
        return _variable(pattern, type, value, variables)
    if pattern.bracket == "[":
        assert isinstance(type, Tuple)
        found = []
        for place, part in places(pattern.parts, type, pattern.position):
            found += _conditions(part, type.fields[place].type, value[label(type, place)], variables)
        return found
    return _row(pattern, type, value, variables) if pattern.bracket == "(" else _bag(pattern, type, value, variables)


def _variable(pattern: Variable, type: Type, value: Column, variables: Variables) -> list[Column]:
    found = []
    known = variables.get(pattern.name)
    if known is not None:
        found.append(_same(value, known.column))
    elif pattern.name:
        variables[pattern.name] = Bound(value, type)
    for condition in pattern.conditions:
        given = condition.value
        other = constant(given, type) if isinstance(given, Constant) else evaluated(given, variables)
        found.append(_COMPARISONS[condition.sign](value, other))
    return found


def _row(pattern: Parts, type: Type, value: Column, variables: Variables) -> list[Column]:
    assert isinstance(type, Row)
    count = len(pattern.parts)
    size = sql.size(value)
    found = [size == count if pattern.rest is None else size >= count]
    for place, (_, part) in enumerate(pattern.parts):
        found += _conditions(part, type.of, sql.get(value, sql.lit(place)), variables)
    if pattern.rest is not None:
        rest = sql.slice(value, sql.lit(count + 1), sql.greatest(size - count, sql.lit(0)))
        found += _conditions(pattern.rest, type, rest, variables)
    return found


def _bag(pattern: Parts, type: Type, value: Column, variables: Variables) -> list[Column]:
    """Every element is taken out of the bag; what is left must match the rest."""
    assert isinstance(type, Bag)
    left, found = value, []
    for _, part in pattern.parts:
        wanted = _element(part, type.of, variables)
        place = sql.array_position(_marks(left, wanted), True)
        found.append(place > 0)
        left = sql.concat(
            sql.slice(left, sql.lit(1), sql.greatest(place - 1, sql.lit(0)).cast("int")),
            sql.slice(left, (place + 1).cast("int"), sql.size(left)),
        )
    if pattern.rest is None:
        return [*found, sql.size(left) == 0]
    return found + _conditions(pattern.rest, type, left, variables)


def _marks(bag: Column, wanted: Column) -> Column:
    return sql.transform(bag, lambda each: each.eqNullSafe(wanted))


def _element(pattern: Pattern, type: Type, variables: Variables) -> Column:
    """An element of a bag's pattern: a constant, or what variables have bound."""
    if isinstance(pattern, Variable):
        return variables[pattern.name].column
    if isinstance(pattern, Equal):
        return constant(pattern.value, type)
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        return _tagged(type, pattern.tag, _element(pattern.inside, inside, variables))
    assert isinstance(pattern, Parts)
    if isinstance(type, Tuple):
        parts = {
            place: _element(part, type.fields[place].type, variables)
            for place, part in places(pattern.parts, type, pattern.position)
        }
        return _tuple(type, parts)
    assert isinstance(type, Bag | Row)
    return _several(type, [_element(part, type.of, variables) for _, part in pattern.parts])


def _same(left: Column, right: Column) -> Column:
    return left.eqNullSafe(right)


_COMPARISONS: Mapping[str, Callable[[Column, Column], Column]] = {
    "=": _same,
    "!=": lambda left, right: ~_same(left, right),
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


def constant(given: Constant, type: Type) -> Column:
    """A constant as a value of the type that it is compared with or made for."""
    value: Any = given.value
    if isinstance(value, Decimal):
        value = str(value)
    return sql.lit(value).cast(data_type(type))


# --- results ------------------------------------------------------------------------------------------------------


def made(expression: Expression, wanted: Type, variables: Variables) -> Column:
    """The value that an expression makes where a type is wanted; null if a number has overflowed."""
    if isinstance(expression, Constant):
        return constant(expression, wanted)
    if isinstance(expression, MadeTagged):
        assert isinstance(wanted, Union)
        inside = wanted.of(expression.tag)
        assert inside is not None
        return _tagged(wanted, expression.tag, made(expression.value, inside, variables))
    if isinstance(expression, Made):
        return _made(expression, wanted, variables)
    if isinstance(expression, Arithmetic) and isinstance(wanted, Bag | Row):
        both = sql.concat(made(expression.left, wanted, variables), made(expression.right, wanted, variables))
        return _ordered(both, wanted.of) if isinstance(wanted, Bag) else both
    value = evaluated(expression, variables)
    return value.cast(data_type(wanted)) if isinstance(wanted, Scalar) else value


def _made(expression: Made, wanted: Type, variables: Variables) -> Column:
    if isinstance(wanted, Tuple):
        parts: dict[int, Column] = {}
        for number, (name, part) in enumerate(expression.parts):
            place = number if name is None else wanted.place(name)
            value = part
            if place is None:
                place, value = number, MadeTagged(name or "", part)
            parts[place] = made(value, wanted.fields[place].type, variables)
        return _tuple(wanted, parts)
    assert isinstance(wanted, Bag | Row)
    return _several(wanted, [made(part, wanted.of, variables) for _, part in expression.parts])


def _tuple(type: Tuple, parts: Mapping[int, Column]) -> Column:
    return sql.struct(*[parts[place].alias(label(type, place)) for place in range(len(type.fields))])


def _tagged(type: Union, tag: str, value: Column) -> Column:
    tags = [
        (value if each.name == tag else sql.lit(None).cast(data_type(each.type))).alias(str(each.name))
        for each in type.tags
    ]
    return sql.struct(*tags)


def _several(type: Bag | Row, elements: list[Column]) -> Column:
    found = sql.array(*elements).cast(data_type(type)) if elements else sql.array().cast(data_type(type))
    return _ordered(found, type.of) if isinstance(type, Bag) else found


def _ordered(elements: Column, type: Type) -> Column:
    """A bag in its one order: that of its elements' texts."""
    keyed = sql.transform(elements, lambda each: sql.struct(_text(each, type).alias("text"), each.alias("value")))
    return sql.transform(sql.array_sort(keyed, _by_text), lambda each: each["value"])


def _by_text(left: Column, right: Column) -> Column:
    smaller, greater = left["text"] < right["text"], left["text"] > right["text"]
    return sql.when(smaller, -1).when(greater, 1).otherwise(0)


def _text(value: Column, type: Type) -> Column:
    return sql.to_json(sql.struct(_shown(value, type).alias("v")))


def evaluated(expression: Expression, variables: Variables) -> Column:
    """The value of an expression by its own type."""
    if isinstance(expression, Use):
        return variables[expression.name].column
    types = {name: each.type for name, each in variables.items()}
    type = type_of(expression, types)
    if isinstance(expression, Arithmetic):
        return _arithmetic(expression, type, types, variables)
    if isinstance(expression, Call):
        found = _FUNCTIONS[expression.function](*[evaluated(each, variables) for each in expression.arguments])
        variables.risks.append(found)
        return found
    return made(expression, type, variables)


def _arithmetic(expression: Arithmetic, type: Type, types: Mapping[str, Type], variables: Variables) -> Column:
    left, right = evaluated(expression.left, variables), evaluated(expression.right, variables)
    left_type = type_of(expression.left, types)
    if isinstance(type, Bag | Row):
        both = sql.concat(left, right)
        return _ordered(both, type.of) if isinstance(type, Bag) else both
    if type == STRING:
        return sql.concat(left, right)
    if str(left_type) == "date":
        if str(type) == "int":
            return sql.datediff(left, right).cast("long")
        return (
            sql.date_add(left, right.cast("int")) if expression.sign == "+" else sql.date_sub(left, right.cast("int"))
        )
    assert isinstance(type, Scalar)
    assert type.name in NUMBERS
    assert arithmetic(expression.sign, left_type, type_of(expression.right, types)) == type
    sides = left.cast(data_type(type)), right.cast(data_type(type))
    found = _NUMERIC[expression.sign](*sides).cast(data_type(type))
    variables.risks.append(found)
    return found


#: What overflows or divides by zero is null and not the end of the job.
_NUMERIC: Mapping[str, Callable[[Column, Column], Column]] = {
    "+": sql.try_add,
    "-": sql.try_subtract,
    "*": sql.try_multiply,
    "/": sql.try_divide,
    "%": sql.try_mod,
}


_FUNCTIONS: Mapping[str, Callable[..., Column]] = {
    "abs": sql.abs,
    "concat": sql.concat,
    "count": lambda value: sql.size(value).cast("long"),
    "date": lambda value: sql.to_utc_timestamp(value, sql.current_timezone()).cast("date"),
    "day": lambda value: sql.dayofmonth(_utc(value)).cast("long"),
    "decimal": lambda value: value.cast(_SIMPLE["decimal"]),
    "ends": lambda text, end: text.endswith(end),
    "float": lambda value: value.cast("double"),
    "greatest": sql.greatest,
    "has": lambda text, part: text.contains(part),
    "hour": lambda value: sql.hour(_utc(value)).cast("long"),
    "int": lambda value: value.try_cast("long"),
    "least": sql.least,
    "length": lambda text: sql.length(text).cast("long"),
    "lower": sql.lower,
    "minute": lambda value: sql.minute(_utc(value)).cast("long"),
    "month": lambda value: sql.month(_utc(value)).cast("long"),
    "part": lambda text, first, length: text.substr(first.cast("int"), length.cast("int")),
    "replace": sql.replace,
    "round": lambda value, digits: sql.round(value, digits),
    "starts": lambda text, beginning: text.startswith(beginning),
    "string": lambda value: value.cast("string"),
    "trim": lambda text: sql.trim(text),
    "upper": sql.upper,
    "year": lambda value: sql.year(_utc(value)).cast("long"),
}


def _utc(value: Column) -> Column:
    """A time as clocks in Greenwich show it, whatever the session's zone is."""
    return sql.to_utc_timestamp(value.cast("timestamp"), sql.current_timezone())
