"""Patterns and results as Spark SQL: text that `explain` shows and that Java parses at once.

An event is one value by its type: a tuple is a struct, a variant a struct of which one field is there, a bag or a list
an array; a decimal is its published text, a time has no zone. A pattern becomes one condition and an expression for
each variable. Where SQL's arithmetic differs from ``language/arithmetic.py``, a worker computes the value. No text
grows faster than its pattern.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count

from postroom.flows.language.arithmetic import wider
from postroom.flows.language.inference import constant_value, is_number, places, result_places, type_of
from postroom.flows.language.meaning import Work
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
    used,
)
from postroom.flows.language.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    INT,
    STRING,
    Bag,
    List,
    Scalar,
    Tuple,
    Type,
    Union,
    accepts,
)
from postroom.flows.language.values import DECIMAL_DIGITS, DECIMAL_PLACES, as_json, label
from postroom.limits import BODY_BYTES_MAX

Sql = str

_SIMPLE = {
    "atom": "string",
    "string": "string",
    "int": "bigint",
    "boolean": "boolean",
    "float": "double",
    "decimal": "string",
    "date": "date",
    "timestamp": "timestamp_ntz",
}
_NUMBER = f"decimal({DECIMAL_DIGITS},{DECIMAL_PLACES})"  # as which decimals are compared
_TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_ALL = 1_000_000_000  # elements: more than an event can have
_DEEP = 12  # variables, or signs inside one another: with more of them a worker, which has limits, reads better
_names = count(1)


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable's value and type."""

    value: Sql
    type: Type


class Variables(dict[str, Bound]):
    """The variables of a pattern.

    ``risks`` are values that may be null because there is none; ``works`` are computed by workers.
    """

    def __init__(self, known: Mapping[str, Bound] | None = None) -> None:
        super().__init__(known or {})
        self.risks: list[Sql] = []
        self.works: dict[str, Work] = {}

    @property
    def types(self) -> dict[str, Type]:
        return {name: variable.type for name, variable in self.items()}


# --- types and values ---------------------------------------------------------------------------------------------


def data_type(type: Type) -> str:
    """The Spark type for values of a type."""
    if isinstance(type, Scalar):
        return _SIMPLE[type.name]
    if isinstance(type, Bag | List):
        return f"array<{data_type(type.of)}>"
    fields = [f"{quoted(name)}: {data_type(of)}" for name, of in fields_of(type)]
    return f"struct<{', '.join(fields)}>"


def fields_of(type: Tuple | Union) -> list[tuple[str, Type]]:
    """The fields of a tuple, or the tags of a variant, by their names in Spark."""
    if isinstance(type, Union):
        return [(str(tag.name), tag.type) for tag in type.tags]
    return [(label(type, place), field.type) for place, field in enumerate(type.fields)]


def quoted(name: str) -> Sql:
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> Sql:
    quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{quoted}'"


_OPTIONS = f"map('mode', 'FAILFAST', 'timestampNTZFormat', {text(_TIMES)})"


def event_of(body: Sql, type: Type) -> Sql:
    """A stored event as a value of its type."""
    wrapped = text(f"event {data_type(type)}")
    return f"from_json(concat('{{\"event\":', {body}, '}}'), {wrapped}, {_OPTIONS}).event"


def body_of(event: Sql, type: Type) -> Sql:
    """An event as it is stored."""
    if not isinstance(type, Scalar):
        return f"to_json({event}, {_OPTIONS})"
    wrapped = f"to_json(named_struct('v', {event}), {_OPTIONS})"  # {"v":…}
    return f"regexp_extract({wrapped}, '(?s)^.{{5}}(.*).$', 1)"


def _struct(fields: Mapping[str, Sql]) -> Sql:
    return f"named_struct({', '.join(f'{text(name)}, {value}' for name, value in fields.items())})"


def _name() -> Sql:
    return f"x{next(_names)}"


def _rebuilt(value: Sql, type: Type, work: Callable[[Sql, Type], Sql]) -> Sql:
    """Rebuild a value from its parts, with ``work`` applied to each."""
    if isinstance(type, Bag | List):
        variable = _name()
        return f"transform({value}, {variable} -> {work(variable, type.of)})"
    assert isinstance(type, Tuple | Union)
    # A name for the value, so that its text stands here once.
    variable = _name()
    parts = {name: work(f"{variable}.{quoted(name)}", of) for name, of in fields_of(type)}
    return f"get(transform(array({value}), {variable} -> IF({variable} IS NULL, NULL, {_struct(parts)})), 0)"


def _comparable(value: Sql, type: Type) -> Sql:
    """A value that Spark orders and compares as we do: decimals as numbers, bags sorted."""
    if not _is_read(type):
        return value
    if isinstance(type, Scalar):
        return f"CAST({value} AS {_NUMBER})"
    if isinstance(type, Bag):
        return f"array_sort({_rebuilt(value, type, _comparable) if _is_read(type.of) else value})"
    return _rebuilt(value, type, _comparable)


def _is_read(type: Type) -> bool:
    """Whether values of a type need such a conversion before they are compared."""
    if isinstance(type, Scalar):
        return type == DECIMAL
    if isinstance(type, Bag | List):
        return isinstance(type, Bag) or _is_read(type.of)
    return any(_is_read(of) for _, of in fields_of(type))


def _has_decimal(type: Type) -> bool:
    if isinstance(type, Scalar):
        return type == DECIMAL
    return _has_decimal(type.of) if isinstance(type, Bag | List) else any(_has_decimal(of) for _, of in fields_of(type))


def widened(value: Sql, given: Type, wanted: Type) -> Sql:
    """Convert a value to a type that accepts its own."""
    if isinstance(given, Scalar) and isinstance(wanted, Scalar):
        same = data_type(given) == data_type(wanted)
        return value if same else f"CAST({value} AS {data_type(wanted)})"
    if _fits(given, wanted):
        return value
    if isinstance(given, Bag | List):
        assert isinstance(wanted, Bag | List)
        inside = wanted.of
        rebuilt = _rebuilt(value, given, lambda element, of: widened(element, of, inside))
        return _ordered(rebuilt, inside) if isinstance(wanted, Bag) else rebuilt
    assert isinstance(given, Tuple | Union)
    assert isinstance(wanted, Tuple | Union)
    variable, ours = _name(), fields_of(given)
    if isinstance(wanted, Union):
        known = dict(ours)
        parts = {
            name: widened(f"{variable}.{quoted(name)}", known[name], of) if name in known else _nothing(of)
            for name, of in fields_of(wanted)
        }
    else:
        both = zip(ours, fields_of(wanted), strict=True)
        parts = {new: widened(f"{variable}.{quoted(old)}", was, of) for (old, was), (new, of) in both}
    return f"get(transform(array({value}), {variable} -> IF({variable} IS NULL, NULL, {_struct(parts)})), 0)"


def _fits(given: Type, wanted: Type) -> bool:
    """Whether Spark stores values of both types alike."""
    return data_type(given) == data_type(wanted) and _has_decimal(given) == _has_decimal(wanted)


def _nothing(type: Type) -> Sql:
    return f"CAST(NULL AS {data_type(type)})"


# --- patterns -----------------------------------------------------------------------------------------------------


def matches(pattern: Pattern, type: Type, value: Sql, variables: Variables) -> Sql:
    """Whether a value matches; what the pattern binds is added to ``variables``."""
    return " AND ".join(_conditions(pattern, type, value, variables)) or "true"


def _conditions(pattern: Pattern, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    if isinstance(pattern, Anything):
        return []
    if isinstance(pattern, Equal):
        return [_same(value, constant(pattern.value, type), type)]
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
        conditions = []
        for place, part in places(pattern.parts, type, pattern.position):
            conditions += _conditions(part, type.fields[place].type, f"{value}.{quoted(label(type, place))}", variables)
        return conditions
    return _row(pattern, type, value, variables) if pattern.bracket == "(" else _bag(pattern, type, value, variables)


def _variable(pattern: Variable, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    conditions = []
    known = variables.get(pattern.name)
    if known is not None and accepts(type, known.type):
        conditions.append(_same(value, widened(known.value, known.type, type), type))
    elif known is not None:
        conditions.append(_same(widened(value, type, known.type), known.value, known.type))
    elif pattern.name:
        variables[pattern.name] = Bound(value, type)
    for condition in pattern.conditions:
        before = len(variables.risks)
        left, right, both = _sides(value, type, condition.value, variables)
        if condition.sign in ("=", "!="):
            same = _same(left, right, both)
            missing = " OR ".join(f"{risk} IS NULL" for risk in variables.risks[before:])
            if missing:  # what has no value is not equal, nor unequal
                same = f"IF({missing}, NULL, {same})"
            conditions.append(same if condition.sign == "=" else f"NOT {same}")
        else:
            conditions.append(f"{_comparable(left, both)} {condition.sign} {_comparable(right, both)}")
    return conditions


def _sides(value: Sql, type: Type, given: Expression, variables: Variables) -> tuple[Sql, Sql, Type]:
    """The two sides of a comparison, and their common type: for numbers the wider one."""
    if isinstance(given, Constant):
        return value, constant(given, type), type
    if not is_number(type):
        return value, made(given, type, variables), type
    own = type_of(given, variables.types)
    both = wider(type, own)
    return widened(value, type, both), widened(made(given, own, variables), own, both), both


def _row(pattern: Parts, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    assert isinstance(type, List)
    parts, rest = _flat(pattern)
    conditions = [f"size({value}) {'=' if rest is None else '>='} {len(parts)}"]
    for place, part in enumerate(parts):
        conditions += _conditions(part, type.of, f"get({value}, {place})", variables)
    if rest is not None:
        conditions += _conditions(rest, type, f"slice({value}, {len(parts) + 1}, {_ALL})", variables)
    return conditions


def _flat(pattern: Parts) -> tuple[list[Pattern], Pattern | None]:
    """The elements of a pattern and of its nested rests, and the last rest."""
    parts = [part for _, part in pattern.parts]
    rest = pattern.rest
    while isinstance(rest, Parts) and rest.bracket == pattern.bracket:
        parts += [part for _, part in rest.parts]
        rest = rest.rest
        if rest is None:
            return parts, None
    return parts, rest


def _bag(pattern: Parts, type: Type, value: Sql, variables: Variables) -> list[Sql]:
    """Match a bag: every element is taken out of it, and the remainder must match the rest."""
    assert isinstance(type, Bag)
    parts, rest = _flat(pattern)
    if not parts and rest is None:
        return [f"size({value}) = 0"]
    if not parts:
        assert rest is not None
        return _conditions(rest, type, value, variables)
    wanted = f"array({', '.join(_element(part, type.of, variables) for part in parts)})"
    so_far, one, element = _name(), _name(), _name()
    same = _same(element, one, type.of)
    place = f"CAST(array_position(transform({so_far}, {element} -> {same}), true) AS INT)"
    without = f"concat(slice({so_far}, 1, greatest({place} - 1, 0)), slice({so_far}, {place} + 1, {_ALL}))"
    taken = f"IF({place} > 0, {without}, {_nothing(type)})"  # no bag is left where an element is missing
    left = f"aggregate({wanted}, {value}, ({so_far}, {one}) -> {taken})"
    if rest is None:
        return [f"coalesce(size({left}), -1) = 0"]
    return [f"{left} IS NOT NULL", *_conditions(rest, type, left, variables)]


def _element(pattern: Pattern, type: Type, variables: Variables) -> Sql:
    """An element of a bag's pattern: a constant, or bound variables."""
    if isinstance(pattern, Variable):
        known = variables[pattern.name]
        return widened(known.value, known.type, type)
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
    return _several(type, [_element(part, type.of, variables) for part in _flat(pattern)[0]])


def _same(left: Sql, right: Sql, type: Type) -> Sql:
    return f"({_comparable(left, type)} <=> {_comparable(right, type)})"


def constant(given: Constant, type: Type) -> Sql:
    """A constant as a value of the type that it is compared with or used for."""
    plain = as_json(constant_value(given, type), type)
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, int):
        return f"{plain}L"
    if isinstance(plain, float):
        return f"CAST('{plain!r}' AS DOUBLE)"
    if data_type(type) == "string":
        return text(plain)
    return f"CAST({text(plain.removesuffix('Z'))} AS {data_type(type)})"


# --- results ------------------------------------------------------------------------------------------------------


def made(expression: Expression, wanted: Type, variables: Variables) -> Sql:
    """The value of an expression where a type is wanted."""
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
        left, right = (made(side, wanted, variables) for side in (expression.left, expression.right))
        joined = _joined(left, right, wanted)
        # What is null if one of its parts is stands for them: else the text would grow with the square of their number.
        variables.risks[:] = [*(risk for risk in variables.risks if risk not in (left, right)), joined]
        return joined
    if isinstance(expression, Use):
        known = variables[expression.name]
        return widened(known.value, known.type, wanted)
    own = type_of(expression, variables.types)
    if len(list(used(expression))) <= _DEEP and _Native(variables.types).says(expression):
        result = widened(_evaluated(expression, variables), own, wanted)
    elif (exact := _exact(expression, variables) if own == DECIMAL else None) is not None:
        result = widened(f"CAST({exact.value} AS STRING)", own, wanted)
    else:
        result = _worked_out(expression, wanted, variables)
    variables.risks.append(result)
    return result


def _worked_out(expression: Expression, wanted: Type, variables: Variables) -> Sql:
    """The value that a worker computes; input and output are sent as JSON, which is exact."""
    names = dict.fromkeys(used(expression))
    types = {name: variables[name].type for name in names}
    key = repr((str(expression), str(wanted), [(name, str(type)) for name, type in types.items()]))
    function = f"postroom_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    variables.works[function] = Work(expression, wanted, types)
    given = f"to_json({_struct({name: variables[name].value for name in names})}, {_OPTIONS})" if names else "'{}'"
    return f"from_json({function}({given}), {text(f'v {data_type(wanted)}')}, {_OPTIONS}).v"


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
    return _struct({str(field.name): value if field.name == tag else _nothing(field.type) for field in type.tags})


def _several(type: Bag | List, elements: list[Sql]) -> Sql:
    array = f"CAST(array({', '.join(elements)}) AS {data_type(type)})"
    return _ordered(array, type.of) if isinstance(type, Bag) else array


def _joined(left: Sql, right: Sql, type: Bag | List) -> Sql:
    """Concatenated elements; null beyond the size of a body, without computing it."""
    two = _name()
    length = f"length(to_json({two}.a, {_OPTIONS})) + length(to_json({two}.b, {_OPTIONS}))"
    both = f"concat({two}.a, {two}.b)"
    both = f"IF({length} <= {BODY_BYTES_MAX}, {_ordered(both, type.of) if isinstance(type, Bag) else both}, NULL)"
    return f"get(transform(array({_struct({'a': left, 'b': right})}), {two} -> {both}), 0)"


def _ordered(elements: Sql, type: Type) -> Sql:
    """A bag in canonical order: by the elements' values, equal ones by their text."""
    if not _has_decimal(type):
        return f"array_sort({elements})"
    element = _name()
    keyed = _struct({"number": _comparable(element, type), "value": element})
    return f"transform(array_sort(transform({elements}, {element} -> {keyed})), {element} -> {element}.value)"


# --- what SQL says as we do ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Native:
    """Whether Spark's own functions compute the same as our arithmetic, with null for no value."""

    types: Mapping[str, Type]

    def says(self, expression: Expression, deep: int = 0) -> bool:
        if isinstance(expression, Constant | Use):
            return True
        if deep > _DEEP:
            return False
        if isinstance(expression, Arithmetic):
            return self._arithmetic(expression) and all(
                self.says(side, deep + 1) for side in (expression.left, expression.right)
            )
        if isinstance(expression, Call):
            return self._call(expression) and all(self.says(argument, deep + 1) for argument in expression.arguments)
        return False

    def _arithmetic(self, expression: Arithmetic) -> bool:
        left, right = (type_of(side, self.types) for side in (expression.left, expression.right))
        if left == right == INT:
            return expression.sign != "/"
        return (left == right == STRING and expression.sign == "+") or left == right == DATE

    def _call(self, expression: Call) -> bool:
        name, given = expression.function, [type_of(argument, self.types) for argument in expression.arguments]
        if name in ("greatest", "least"):  # Spark leaves out what has no value
            plain = all(isinstance(argument, Constant | Use) for argument in expression.arguments)
            return plain and given[0] != DECIMAL and len(set(given)) == 1
        if name == "part":
            return all(isinstance(argument, Constant) for argument in expression.arguments[1:])
        wanted = _NATIVE_FOR.get(name)
        return name in (*FUNCTIONS, "concat") and (wanted is None or given[0] in wanted)


#: Of functions for several types, those for which Spark does as we do.
_NATIVE_FOR: Mapping[str, Sequence[Type]] = {
    "abs": (INT,),
    "decimal": (INT, DECIMAL),
    "float": (INT, DECIMAL),
    "int": (INT,),
    "string": (INT, BOOLEAN, DATE, STRING, DECIMAL, Scalar("atom")),
}


@dataclass(frozen=True, slots=True)
class _Exact:
    """A decimal with a known maximum of digits and a known number of decimal places."""

    value: Sql
    whole: int
    places: int

    @property
    def fits(self) -> bool:
        """Whether it fits, with a digit to spare, because Spark computes products with one more digit and would cut it
        off."""
        digits = self.whole + self.places < DECIMAL_DIGITS
        return digits and self.whole <= DECIMAL_DIGITS - DECIMAL_PLACES and self.places <= DECIMAL_PLACES

    @property
    def typed(self) -> Sql:
        return f"CAST({self.value} AS DECIMAL({self.whole + self.places},{self.places}))"


def _exact(expression: Expression, variables: Variables) -> _Exact | None:
    """Sums and products of whole numbers and constants, if Spark computes them exactly; else None."""
    if isinstance(expression, Constant):
        if type_of(expression, {}) not in (INT, DECIMAL):
            return None
        digits = str(as_json(constant_value(expression, DECIMAL), DECIMAL))
        whole, _, behind = digits.removeprefix("-").partition(".")
        return _Exact(f"'{digits}'", len(whole), len(behind))
    if isinstance(expression, Call) and expression.function == "decimal":
        return _exact(expression.arguments[0], variables)
    if type_of(expression, variables.types) == INT and _Native(variables.types).says(expression):
        return _Exact(_evaluated(expression, variables), 19, 0)
    if not isinstance(expression, Arithmetic) or expression.sign not in "+-*":
        return None
    left, right = _exact(expression.left, variables), _exact(expression.right, variables)
    if left is None or right is None:
        return None
    value = f"({left.typed} {expression.sign} {right.typed})"
    if expression.sign == "*":
        exact = _Exact(value, left.whole + right.whole, left.places + right.places)
    else:
        exact = _Exact(value, max(left.whole, right.whole) + 1, max(left.places, right.places))
    return exact if exact.fits else None


def _evaluated(expression: Expression, variables: Variables) -> Sql:
    """The value of an expression by its own type, by Spark's functions."""
    if isinstance(expression, Use):
        return variables[expression.name].value
    type = type_of(expression, variables.types)
    if isinstance(expression, Constant):
        return constant(expression, type)
    if isinstance(expression, Call):
        if expression.function == "part":
            return _part(expression, variables)
        if expression.function == "concat":
            return _text(expression.arguments, variables)
        return FUNCTIONS[expression.function](*[_evaluated(argument, variables) for argument in expression.arguments])
    assert isinstance(expression, Arithmetic)
    if type == STRING:
        return _text(list(_texts(expression)), variables)
    left, right = _evaluated(expression.left, variables), _evaluated(expression.right, variables)
    if type_of(expression.left, variables.types) == DATE:
        return f"CAST(datediff({left}, {right}) AS BIGINT)"
    return f"{_WHOLE[expression.sign]}({left}, {right})"


def _texts(expression: Expression) -> Iterator[Expression]:
    """The operands of a sum of texts."""
    if isinstance(expression, Arithmetic):
        yield from _texts(expression.left)
        yield from _texts(expression.right)
    else:
        yield expression


def _text(parts: Sequence[Expression], variables: Variables) -> Sql:
    """Concatenated texts; null beyond the size of a body, without computing it: Java would run out of memory."""
    values = [_evaluated(part, variables) for part in parts]
    if all(isinstance(part, Constant | Use) for part in parts):
        length = " + ".join(f"length({value})" for value in values)
        return f"IF({length} <= {BODY_BYTES_MAX}, concat({', '.join(values)}), NULL)"
    some, so_far, part = _name(), _name(), _name()  # a name for them, so that the text of each stands here once
    length = f"aggregate({some}, 0L, ({so_far}, {part}) -> {so_far} + length({part}))"
    fits = f"IF({length} <= {BODY_BYTES_MAX}, array_join({some}, ''), NULL)"
    return f"get(transform(array(array({', '.join(values)})), {some} -> {fits}), 0)"


def _part(expression: Call, variables: Variables) -> Sql:
    """A substring; the first character has the number 1."""
    value, *numbers = expression.arguments
    first, length = (_whole_number(number) for number in numbers)
    begin = min(max(first, 1), _ALL)
    return f"substring({_evaluated(value, variables)}, {begin}, {min(max(first + length - begin, 0), _ALL)})"


def _whole_number(given: Expression) -> int:
    assert isinstance(given, Constant)
    assert isinstance(given.value, Decimal)
    return int(given.value)


#: What overflows or divides by zero is null and not the end of the job.
_WHOLE = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "%": "try_mod"}
FUNCTIONS: Mapping[str, Callable[..., Sql]] = {
    "abs": lambda value: f"TRY_CAST(abs(CAST({value} AS DECIMAL(20,0))) AS BIGINT)",
    "count": lambda value: f"CAST(size({value}) AS BIGINT)",
    "date": lambda value: f"CAST({value} AS DATE)",
    "day": lambda value: f"CAST(dayofmonth(CAST({value} AS DATE)) AS BIGINT)",
    "decimal": lambda value: f"CAST({value} AS STRING)",
    "ends": lambda value, end: f"endswith({value}, {end})",
    "float": lambda value: f"CAST({value} AS DOUBLE)",
    "greatest": lambda *values: f"greatest({', '.join(values)})",
    "has": lambda value, part: f"contains({value}, {part})",
    "hour": lambda value: f"CAST(hour({value}) AS BIGINT)",
    "int": lambda value: value,
    "least": lambda *values: f"least({', '.join(values)})",
    "length": lambda value: f"CAST(length({value}) AS BIGINT)",
    "lower": lambda value: f"lower({value})",
    "minute": lambda value: f"CAST(minute({value}) AS BIGINT)",
    "month": lambda value: f"CAST(month(CAST({value} AS DATE)) AS BIGINT)",
    "starts": lambda value, beginning: f"startswith({value}, {beginning})",
    "string": lambda value: f"CAST({value} AS STRING)",
    "trim": lambda value: f"trim({value})",
    "upper": lambda value: f"upper({value})",
    "year": lambda value: f"CAST(year(CAST({value} AS DATE)) AS BIGINT)",
}
