"""The types of patterns and expressions: type errors are found before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from postroom.errors import EventInvalid
from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.patterns import (
    Anything,
    Arithmetic,
    Call,
    Condition,
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
from postroom.flows.language.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INT,
    NUMBERS,
    STRING,
    TIMESTAMP,
    Bag,
    Field,
    List,
    Scalar,
    Tuple,
    Type,
    Union,
    accepts,
)
from postroom.flows.language.values import Literal, value_of
from postroom.flows.language.words import fail
from postroom.model.definitions import Position

Bound = Mapping[str, Type]
ORDERED = (STRING, INT, FLOAT, DECIMAL, DATE, TIMESTAMP)  # types whose values have an order


def bind(pattern: Pattern, type: Type, bound: Bound | None = None) -> dict[str, Type]:
    """The variables of a pattern over events of a type, in order; raises if no event can match."""
    reader = _Patterns(dict(bound or {}))
    reader.check(pattern, type)
    return reader.bound


def result(expression: Expression, wanted: Type, bound: Bound) -> None:
    """Raise unless the expression makes a value of the wanted type."""
    _Expressions(bound).make(expression, wanted)


def type_of(expression: Expression, bound: Bound) -> Type:
    """The type of the value that an expression makes by itself."""
    return _Expressions(bound).type_of(expression)


@dataclass
class _Patterns:
    bound: dict[str, Type]

    def check(self, pattern: Pattern, type: Type) -> None:
        if isinstance(pattern, Variable):
            self._variable(pattern, type)
        elif isinstance(pattern, Equal):
            constant(pattern.value, type)
        elif isinstance(pattern, Tag):
            self._tag(pattern.tag, pattern.inside, pattern.position, type)
        elif isinstance(pattern, Parts):
            self._parts(pattern, type)
        else:
            assert isinstance(pattern, Anything)

    def _variable(self, pattern: Variable, type: Type) -> None:
        known = self.bound.get(pattern.name)
        if known is not None and not (accepts(known, type) or accepts(type, known)):
            what = f"{pattern.name} is of type {known} and can never equal a value of type {type}"
            fail(pattern.position, what, "pattern-type")
        if pattern.name and known is None:
            self.bound[pattern.name] = type
        for condition in pattern.conditions:
            self._condition(condition, type, pattern.position)

    def _condition(self, condition: Condition, type: Type, position: Position) -> None:
        if condition.sign not in ("=", "!=") and type not in ORDERED:
            fail(position, f"values of type {type} have no order, so none is {condition.sign} another", "pattern-type")
        compared(condition.value, type, self.bound)

    def _tag(self, tag: str, inside: Pattern, position: Position, type: Type) -> None:
        if not isinstance(type, Union):
            fail(position, f"{tag}: is a pattern of a variant, and here is {type}", "pattern-type")
        of = type.of(tag)
        if of is None:
            fail(position, f"there is no tag {tag} in {type}", "pattern-type")
        self.check(inside, of)

    def _parts(self, pattern: Parts, type: Type) -> None:
        if pattern.bracket == "[":
            self._tuple(pattern, type)
        elif pattern.bracket == "{":
            self._bag(pattern, type)
        else:
            if not isinstance(type, List):
                fail(pattern.position, f"a pattern of a list cannot match {type}", "pattern-type")
            for _, part in pattern.parts:
                self.check(part, type.of)
            if pattern.rest is not None:
                self.check(pattern.rest, type)

    def _tuple(self, pattern: Parts, type: Type) -> None:
        if not isinstance(type, Tuple):
            fail(pattern.position, f"a pattern of a tuple cannot match {type}", "pattern-type")
        for place, part in places(pattern.parts, type, pattern.position):
            self.check(part, type.fields[place].type)

    def _bag(self, pattern: Parts, type: Type) -> None:
        if not isinstance(type, Bag):
            fail(pattern.position, f"a pattern of a bag cannot match {type}", "pattern-type")
        for _, part in pattern.parts:
            self._element(part, type.of)
        if pattern.rest is not None:
            self.check(pattern.rest, type)

    def _element(self, part: Pattern, type: Type) -> None:
        """Raise for a free variable in a bag: it would be undefined which element it binds."""
        for name, position in _free(part, self.bound):
            what = f"{name or 'any'} has no value yet: an element of a bag is a constant or a bound variable"
            fail(position, what, "bag-element")
        if isinstance(part, Variable) and not accepts(type, self.bound[part.name]):
            what = f"{part.name} is of type {self.bound[part.name]}, and the elements are of type {type}"
            fail(part.position, what, "pattern-type")
        self.check(part, type)


def _free(pattern: Pattern, bound: Bound) -> list[tuple[str, Position]]:
    if isinstance(pattern, Variable):
        free = pattern.name not in bound or pattern.conditions
        return [(pattern.name, pattern.position)] if free else []
    if isinstance(pattern, Anything):
        return [("", pattern.position)]
    if isinstance(pattern, Tag):
        return _free(pattern.inside, bound)
    if isinstance(pattern, Parts):
        rest = _free(pattern.rest, bound) if pattern.rest is not None else []
        return [pair for _, part in pattern.parts for pair in _free(part, bound)] + rest
    return []


def places(parts: tuple[tuple[str | None, Pattern], ...], type: Tuple, position: Position) -> list[tuple[int, Pattern]]:
    """The position of each part of a tuple's pattern. A name that no field has may be the tag of a variant."""
    names = [name for name, _ in parts]
    by_name = [type.place(name) for name in names if name is not None]
    if parts and len(by_name) == len(parts) and None not in by_name:
        placed = [(place, part) for place, (_, part) in zip(by_name, parts, strict=True) if place is not None]
        if len({place for place, _ in placed}) != len(placed):
            fail(position, f"a field of {type} is there twice", "pattern-type")
        return placed
    if len(parts) != len(type.fields):
        unknown = next((name for name in names if name is not None and type.place(name) is None), None)
        what = f"there is no field {unknown} in {type}" if unknown else f"{len(parts)} values cannot match {type}"
        fail(position, what, "pattern-type")
    positional: list[tuple[int, Pattern]] = []
    for place, (name, part) in enumerate(parts):
        field = type.fields[place]
        if name is None or name == field.name:
            positional.append((place, part))
        elif isinstance(field.type, Union):
            positional.append((place, Tag(name, part, position)))
        else:
            fail(position, f"there is no field {name} in {type}", "pattern-type")
    return positional


def paths(pattern: Pattern, type: Type, inside: tuple[int, ...] = ()) -> dict[str, tuple[tuple[int, ...], Type]]:
    """The paths and types of variables that every event has; those inside a variant, a bag or a list are left out."""
    if isinstance(pattern, Variable) and pattern.name:
        return {pattern.name: (inside, type)}
    paths_by_name: dict[str, tuple[tuple[int, ...], Type]] = {}
    if isinstance(pattern, Parts) and isinstance(type, Tuple):
        for place, part in places(pattern.parts, type, pattern.position):
            paths_by_name = {**paths(part, type.fields[place].type, (*inside, place)), **paths_by_name}
    return paths_by_name


def constant(value: Constant, type: Type) -> None:
    """Raise unless a constant can be of a type."""
    if not _may_be(value, type):
        fail(value.position, f"{value} can never be a value of type {type}", "pattern-type")


def _may_be(given: Constant, type: Type) -> bool:
    try:
        constant_value(given, type)
    except EventInvalid:
        return False
    return True


def constant_value(given: Constant, type: Type) -> Any:
    """A constant as a value of the type that it is compared with or used for."""
    value = given.value
    if isinstance(value, bool):
        return value_of(Literal("word", str(value).lower()) if type == BOOLEAN else Literal("bool", value), type)
    return value_of(Literal("number" if isinstance(value, Decimal) else "string", value), type)


def is_number(type: Type) -> bool:
    return isinstance(type, Scalar) and type.name in NUMBERS


def compared(expression: Expression, type: Type, bound: Bound) -> None:
    """Raise unless an expression can be compared with a value of a type."""
    if isinstance(expression, Constant):
        constant(expression, type)
        return
    given = _Expressions(bound).type_of(expression)
    if is_number(given) and is_number(type):
        return
    if not accepts(type, given):
        fail(expression.position, f"{given} cannot be compared with {type}", "pattern-type")
    _Expressions(bound).make(expression, type)


@dataclass
class _Expressions:
    bound: Bound

    def make(self, expression: Expression, wanted: Type) -> None:
        """Raise unless the expression makes a value of the wanted type, which also decides how constants and brackets
        are read."""
        if isinstance(expression, Constant):
            if not _may_be(expression, wanted):
                fail(expression.position, f"{expression} is not of type {wanted}", "result-type")
        elif isinstance(expression, MadeTagged):
            of = wanted.of(expression.tag) if isinstance(wanted, Union) else None
            if of is None:
                fail(expression.position, f"there is no tag {expression.tag} in {wanted}", "result-type")
            self.make(expression.value, of)
        elif isinstance(expression, Made):
            self._made(expression, wanted)
        elif isinstance(expression, Arithmetic) and expression.sign == "+" and isinstance(wanted, Bag | List):
            self.make(expression.left, wanted)
            self.make(expression.right, wanted)
        else:
            given = self.type_of(expression)
            if not accepts(wanted, given):
                fail(expression.position, f"{expression} is of type {given}, and {wanted} is wanted", "result-type")

    def _made(self, expression: Made, wanted: Type) -> None:
        if expression.bracket == "[" and isinstance(wanted, Tuple):
            for place, part in result_places(expression, wanted):
                self.make(part, wanted.fields[place].type)
        elif (expression.bracket == "{" and isinstance(wanted, Bag)) or (
            expression.bracket == "(" and isinstance(wanted, List)
        ):
            for _, part in expression.parts:
                self.make(part, wanted.of)
        else:
            fail(expression.position, f"{expression} is not of type {wanted}", "result-type")

    def type_of(self, expression: Expression) -> Type:
        if isinstance(expression, Constant):
            if isinstance(expression.value, bool):
                return BOOLEAN
            if isinstance(expression.value, str):
                return STRING
            result = next((type for type in (INT, DECIMAL, FLOAT) if _may_be(expression, type)), None)
            if result is None:
                fail(expression.position, f"{expression} is too large for a number", "result-type")
            return result
        if isinstance(expression, Use):
            if expression.name not in self.bound:
                names = ", ".join(self.bound) or "none"
                fail(expression.position, f"{expression.name} is not bound; bound are: {names}", "unbound")
            return self.bound[expression.name]
        if isinstance(expression, Call):
            return self._call(expression)
        if isinstance(expression, Arithmetic):
            return self._arithmetic(expression)
        if isinstance(expression, MadeTagged):
            return Union((Field(expression.tag, self.type_of(expression.value)),))
        return self._type_of_made(expression)

    def _type_of_made(self, expression: Made) -> Type:
        types = [self.type_of(part) for _, part in expression.parts]
        if expression.bracket == "[":
            return Tuple(tuple(Field(name, type) for (name, _), type in zip(expression.parts, types, strict=True)))
        if not types:
            fail(expression.position, f"of what type would the elements of {expression} be?", "result-type")
        widest = next((type for type in types if all(accepts(type, type_) for type_ in types)), None)
        if widest is None:
            fail(expression.position, f"the elements of {expression} are of different types", "result-type")
        return Bag(widest) if expression.bracket == "{" else List(widest)

    def _call(self, expression: Call) -> Type:
        function = FUNCTIONS.get(expression.function)
        if function is None:
            known = ", ".join(sorted(FUNCTIONS))
            fail(expression.position, f"there is no function {expression.function}; there are {known}", "function")
        given = [self.type_of(argument) for argument in expression.arguments]
        type = function.result(given)
        if type is None:
            kinds = ", ".join(map(str, given))
            fail(expression.position, f"{expression.function}({kinds}) is not {function.usage}", "function")
        return type

    def _arithmetic(self, expression: Arithmetic) -> Type:
        left, right = self.type_of(expression.left), self.type_of(expression.right)
        type = arithmetic(expression.sign, left, right)
        if type is None:
            fail(expression.position, f"{left} {expression.sign} {right} means nothing", "result-type")
        return type


def result_places(expression: Made, wanted: Tuple) -> list[tuple[int, Expression]]:
    """The position of each part, by name or by place. Every field must be given once."""
    expressions: dict[int, Expression] = {}
    for number, (name, part) in enumerate(expression.parts):
        place = number if name is None else wanted.place(name)
        value = part
        if place is None and number < len(wanted.fields) and isinstance(wanted.fields[number].type, Union):
            place, value = number, MadeTagged(name or "", part, expression.position)
        if place is None or place >= len(wanted.fields):
            what = f"there is no field {name} in {wanted}" if name else f"{wanted} has fewer fields"
            fail(expression.position, what, "result-type")
        if place in expressions:
            fail(expression.position, f"a field of {wanted} is there twice", "result-type")
        expressions[place] = value
    missing = [str(field) for place, field in enumerate(wanted.fields) if place not in expressions]
    if missing:
        fail(expression.position, f"the field {missing[0]} of {wanted} is missing", "result-type")
    return sorted(expressions.items(), key=lambda item: item[0])


def arithmetic(sign: str, left: Type, right: Type) -> Type | None:
    """The result type of an operator; None if it does not apply."""
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if left.name in NUMBERS and right.name in NUMBERS:
            wider = NUMBERS[max(NUMBERS.index(left.name), NUMBERS.index(right.name))]
            return FLOAT if sign == "/" and wider == "int" else Scalar(wider)
        if sign == "+" and left == right == STRING:
            return STRING
        if sign in "+-" and left == DATE and right == INT:
            return DATE  # days
        return INT if sign == "-" and left == right == DATE else None
    same = isinstance(left, Bag | List) and type(left) is type(right)
    if sign == "+" and same and accepts(left, right):
        return left
    return right if sign == "+" and same and accepts(right, left) else None
