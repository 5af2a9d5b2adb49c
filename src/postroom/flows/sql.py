"""Patterns and results in the words of Spark SQL: text that `explain` can show, and that Java reads in one go.

An event is one value by its type: a tuple is a struct, a variant a struct of which one field is there, a bag or a list
an array. What a pattern asks is one condition; what it binds are expressions again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import count

from postroom.flows.inference import places, result_places, type_of
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
from postroom.flows.types import STRING, Bag, List, Scalar, Tuple, Type, Union
from postroom.flows.values import DECIMAL_DIGITS, DECIMAL_PLACES, label

Sql = str

_SIMPLE = {
    "atom": "string",
    "string": "string",
    "int": "bigint",
    "boolean": "boolean",
    "float": "double",
    "decimal": f"decimal({DECIMAL_DIGITS},{DECIMAL_PLACES})",
    "date": "date",
    "timestamp": "timestamp",
}
_TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_names = count(1)


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable's value and type."""

    value: Sql
    type: Type


class Variables(dict[str, Bound]):
    """What a pattern has bound. ``risks`` are parts of results that are null where a number has overflowed."""

    def __init__(self, known: Mapping[str, Bound] | None = None) -> None:
        super().__init__(known or {})
        self.risks: list[Sql] = []


# --- types and values ---------------------------------------------------------------------------------------------


def data_type(type: Type) -> str:
    """How Spark holds values of a type."""
    if isinstance(type, Scalar):
        return _SIMPLE[type.name]
    if isinstance(type, Bag | List):
        return f"array<{data_type(type.of)}>"
    if isinstance(type, Union):
        return f"struct<{', '.join(f'{quoted(str(each.name))}: {data_type(each.type)}' for each in type.tags)}>"
    fields = [f"{quoted(label(type, place))}: {data_type(each.type)}" for place, each in enumerate(type.fields)]
    return f"struct<{', '.join(fields)}>"


def quoted(name: str) -> Sql:
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> Sql:
    said = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{said}'"


def event_of(body: Sql, type: Type) -> Sql:
    """A stored event as a value of its type."""
    wrapped = text(f"event {data_type(type)}")
    return f"from_json(concat('{{\"event\":', {body}, '}}'), {wrapped}, map('mode', 'FAILFAST')).event"


def body_of(event: Sql, type: Type) -> Sql:
    """An event as it is stored."""
    shown = _shown(event, type)
    if not isinstance(type, Scalar):
        return f"to_json({shown})"
    wrapped = f"to_json(named_struct('v', {shown}))"  # {"v":…}
    return f"substring({wrapped}, 6, length({wrapped}) - 6)"


def _shown(value: Sql, type: Type) -> Sql:
    """A value of which Spark's JSON is ours."""
    if _is_json(type):
        return value
    if isinstance(type, Scalar):
        if type.name == "decimal":
            return f"regexp_replace(CAST({value} AS STRING), '[.]?0+$', '')"  # Spark writes all 18 places
        return f"date_format({_utc(value)}, {text(_TIMES)})"
    if isinstance(type, Bag | List):
        each = _name()
        return f"transform({value}, {each} -> {_shown(each, type.of)})"
    if isinstance(type, Union):
        tags = [(str(each.name), f"{value}.{quoted(str(each.name))}", each.type) for each in type.tags]
        return _struct({name: f"IF({tag} IS NULL, NULL, {_shown(tag, of)})" for name, tag, of in tags})
    fields = [(label(type, place), each.type) for place, each in enumerate(type.fields)]
    return _struct({name: _shown(f"{value}.{quoted(name)}", of) for name, of in fields})


def _is_json(type: Type) -> bool:
    """Whether Spark writes values of a type as we do."""
    if isinstance(type, Scalar):
        return type.name not in ("decimal", "timestamp")
    if isinstance(type, Bag | List):
        return _is_json(type.of)
    return all(_is_json(each.type) for each in (type.tags if isinstance(type, Union) else type.fields))


def _struct(fields: Mapping[str, Sql]) -> Sql:
    return f"named_struct({', '.join(f'{text(name)}, {value}' for name, value in fields.items())})"


def _name() -> Sql:
    return f"x{next(_names)}"


def _utc(value: Sql) -> Sql:
    """A time as clocks in Greenwich show it, whatever the session's zone is."""
    return f"to_utc_timestamp({value}, current_timezone())"


# --- patterns -----------------------------------------------------------------------------------------------------


def matches(pattern: Pattern, type: Type, value: Sql, variables: Variables) -> Sql:
    """Whether a value matches; what the pattern binds is added to ``variables``."""
    return " AND ".join(_conditions(pattern, type, value, variables)) or "true"


def _conditions(pattern: Pattern, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    if isinstance(pattern, Anything):
        return []
    if isinstance(pattern, Equal):
        return [_same(value, constant(pattern.value, type))]
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        tagged = f"{value}.{quoted(pattern.tag)}"
        return [f"{tagged} IS NOT NULL", *_conditions(pattern.inside, inside, tagged, variables)]
    if isinstance(pattern, Variable):
        return _variable(pattern, type, value, variables)
    if pattern.bracket == "[":
        assert isinstance(type, Tuple)
        found = []
        for place, part in places(pattern.parts, type, pattern.position):
            found += _conditions(part, type.fields[place].type, f"{value}.{quoted(label(type, place))}", variables)
        return found
    return _row(pattern, type, value, variables) if pattern.bracket == "(" else _bag(pattern, type, value, variables)


def _variable(pattern: Variable, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    found = []
    known = variables.get(pattern.name)
    if known is not None:
        found.append(_same(value, known.value))
    elif pattern.name:
        variables[pattern.name] = Bound(value, type)
    for condition in pattern.conditions:
        given = condition.value
        other = constant(given, type) if isinstance(given, Constant) else evaluated(given, variables)
        if condition.sign in ("=", "!="):
            found.append(_same(value, other) if condition.sign == "=" else f"NOT {_same(value, other)}")
        else:
            found.append(f"{value} {condition.sign} {other}")
    return found


def _row(pattern: Parts, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    assert isinstance(type, List)
    size = len(pattern.parts)
    found = [f"size({value}) {'=' if pattern.rest is None else '>='} {size}"]
    for place, (_, part) in enumerate(pattern.parts):
        found += _conditions(part, type.of, f"get({value}, {place})", variables)
    if pattern.rest is not None:
        rest = f"slice({value}, {size + 1}, greatest(size({value}) - {size}, 0))"
        found += _conditions(pattern.rest, type, rest, variables)
    return found


def _bag(pattern: Parts, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    """Every element is taken out of the bag; what is left must match the rest."""
    assert isinstance(type, Bag)
    left, found = value, []
    for _, part in pattern.parts:
        each = _name()
        same = _same(each, _element(part, type.of, variables))
        place = f"CAST(array_position(transform({left}, {each} -> {same}), true) AS INT)"
        found.append(f"{place} > 0")
        left = f"concat(slice({left}, 1, greatest({place} - 1, 0)), slice({left}, {place} + 1, size({left})))"
    if pattern.rest is None:
        return [*found, f"size({left}) = 0"]
    return found + _conditions(pattern.rest, type, left, variables)


def _element(pattern: Pattern, type: Type, variables: Variables) -> Sql:
    """An element of a bag's pattern: a constant, or what variables have bound."""
    if isinstance(pattern, Variable):
        return variables[pattern.name].value
    if isinstance(pattern, Equal):
        return constant(pattern.value, type)
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        return _tagged(type, pattern.tag, _element(pattern.inside, inside, variables))
    assert isinstance(pattern, Parts)
    if isinstance(type, Tuple):
        parts = places(pattern.parts, type, pattern.position)
        return _tuple(type, {place: _element(part, type.fields[place].type, variables) for place, part in parts})
    assert isinstance(type, Bag | List)
    return _several(type, [_element(part, type.of, variables) for _, part in pattern.parts])


def _same(left: Sql, right: Sql) -> Sql:
    return f"({left} <=> {right})"


def constant(given: Constant, type: Type) -> Sql:
    """A constant as a value of the type that it is compared with or made for."""
    if isinstance(given.value, bool):
        return str(given.value).lower()
    if isinstance(given.value, Decimal):
        return f"CAST('{given.value}' AS {data_type(type)})" if str(type) != "int" else f"{int(given.value)}L"
    said = text(given.value)
    return said if data_type(type) == "string" else f"CAST({said} AS {data_type(type)})"


# --- results ------------------------------------------------------------------------------------------------------


def made(expression: Expression, wanted: Type, variables: Variables) -> Sql:
    """The value that an expression makes where a type is wanted."""
    if isinstance(expression, Constant):
        return constant(expression, wanted)
    if isinstance(expression, MadeTagged):
        assert isinstance(wanted, Union)
        inside = wanted.of(expression.tag)
        assert inside is not None
        return _tagged(wanted, expression.tag, made(expression.value, inside, variables))
    if isinstance(expression, Made):
        return _made(expression, wanted, variables)
    if isinstance(expression, Arithmetic) and isinstance(wanted, Bag | List):
        left, right = (made(each, wanted, variables) for each in (expression.left, expression.right))
        return _joined(left, right, wanted)
    value = evaluated(expression, variables)
    same = data_type(type_of(expression, _types(variables))) == data_type(wanted)
    return value if same else f"CAST({value} AS {data_type(wanted)})"


def _made(expression: Made, wanted: Type, variables: Variables) -> Sql:
    if isinstance(wanted, Tuple):
        placed = result_places(expression, wanted)
        parts = {place: made(part, wanted.fields[place].type, variables) for place, part in placed}
        return _tuple(wanted, parts)
    assert isinstance(wanted, Bag | List)
    return _several(wanted, [made(part, wanted.of, variables) for _, part in expression.parts])


def _tuple(type: Tuple, parts: Mapping[int, Sql]) -> Sql:
    return _struct({label(type, place): parts[place] for place in range(len(type.fields))})


def _tagged(type: Union, tag: str, value: Sql) -> Sql:
    return _struct(
        {str(each.name): value if each.name == tag else f"CAST(NULL AS {data_type(each.type)})" for each in type.tags}
    )


def _several(type: Bag | List, elements: list[Sql]) -> Sql:
    found = f"CAST(array({', '.join(elements)}) AS {data_type(type)})"
    return _ordered(found, type.of) if isinstance(type, Bag) else found


def _joined(left: Sql, right: Sql, type: Bag | List) -> Sql:
    both = f"concat({left}, {right})"
    return _ordered(both, type.of) if isinstance(type, Bag) else both


def _ordered(elements: Sql, type: Type) -> Sql:
    """A bag in its one order: that of its elements' texts."""
    each, left, right = _name(), _name(), _name()
    keyed = f"named_struct('text', to_json(named_struct('v', {_shown(each, type)})), 'value', {each})"
    smaller, greater = f"{left}.text < {right}.text", f"{left}.text > {right}.text"
    by_text = f"({left}, {right}) -> CASE WHEN {smaller} THEN -1 WHEN {greater} THEN 1 ELSE 0 END"
    sorted_ = f"array_sort(transform({elements}, {each} -> {keyed}), {by_text})"
    return f"transform({sorted_}, {each} -> {each}.value)"


def _types(variables: Variables) -> dict[str, Type]:
    return {name: each.type for name, each in variables.items()}


def evaluated(expression: Expression, variables: Variables) -> Sql:
    """The value of an expression by its own type."""
    if isinstance(expression, Use):
        return variables[expression.name].value
    if isinstance(expression, Call):
        given = [evaluated(each, variables) for each in expression.arguments]
        found = FUNCTIONS[expression.function](*given)
        variables.risks.append(found)
        return found
    type = type_of(expression, _types(variables))
    if isinstance(expression, Arithmetic):
        return _arithmetic(expression, type, variables)
    return made(expression, type, variables)


def _arithmetic(expression: Arithmetic, type: Type, variables: Variables) -> Sql:
    left, right = evaluated(expression.left, variables), evaluated(expression.right, variables)
    if isinstance(type, Bag | List):
        return _joined(left, right, type)
    if type == STRING:
        return f"concat({left}, {right})"
    if str(type_of(expression.left, _types(variables))) == "date":
        if str(type) == "int":
            return f"CAST(datediff({left}, {right}) AS BIGINT)"
        return f"{'date_add' if expression.sign == '+' else 'date_sub'}({left}, CAST({right} AS INT))"
    sides = ", ".join(f"CAST({each} AS {data_type(type)})" for each in (left, right))
    found = f"CAST({_NUMERIC[expression.sign]}({sides}) AS {data_type(type)})"
    variables.risks.append(found)
    return found


#: What overflows or divides by zero is null and not the end of the job.
_NUMERIC = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
FUNCTIONS: Mapping[str, Callable[..., Sql]] = {
    "abs": lambda value: f"abs({value})",
    "concat": lambda *texts: f"concat({', '.join(texts)})",
    "count": lambda value: f"CAST(size({value}) AS BIGINT)",
    "date": lambda value: f"CAST({_utc(value)} AS DATE)",
    "day": lambda value: f"CAST(dayofmonth({_utc(value)}) AS BIGINT)",
    "decimal": lambda value: f"TRY_CAST({value} AS {_SIMPLE['decimal']})",
    "ends": lambda value, end: f"endswith({value}, {end})",
    "float": lambda value: f"CAST({value} AS DOUBLE)",
    "greatest": lambda *values: f"greatest({', '.join(values)})",
    "has": lambda value, part: f"contains({value}, {part})",
    "hour": lambda value: f"CAST(hour({_utc(value)}) AS BIGINT)",
    "int": lambda value: f"TRY_CAST({value} AS BIGINT)",
    "least": lambda *values: f"least({', '.join(values)})",
    "length": lambda value: f"CAST(length({value}) AS BIGINT)",
    "lower": lambda value: f"lower({value})",
    "minute": lambda value: f"CAST(minute({_utc(value)}) AS BIGINT)",
    "month": lambda value: f"CAST(month({_utc(value)}) AS BIGINT)",
    "part": lambda value, first, length: f"substring({value}, CAST({first} AS INT), CAST({length} AS INT))",
    "replace": lambda value, old, new: f"replace({value}, {old}, {new})",
    "round": lambda value, digits: f"round({value}, CAST({digits} AS INT))",
    "starts": lambda value, beginning: f"startswith({value}, {beginning})",
    "string": lambda value: f"CAST({value} AS STRING)",
    "trim": lambda value: f"trim({value})",
    "upper": lambda value: f"upper({value})",
    "year": lambda value: f"CAST(year({_utc(value)}) AS BIGINT)",
}
