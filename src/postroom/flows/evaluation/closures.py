"""Patterns and expressions compiled to Python functions. They mean the same as in ``meaning.py``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from postroom.flows.language.arithmetic import NoValue, calculated, called, joined, widened, wider
from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.inference import arithmetic, constant_value, is_number, places, result_places, type_of
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
from postroom.flows.language.types import INT, Bag, List, Tuple, Type, Union, accepts
from postroom.flows.language.values import INTEGERS, Tagged, in_order

Bound = dict[str, Any]  # values of variables
Types = dict[str, Type]
Value = Callable[[Bound], Any]
_Test = Callable[[Any, Bound], bool]
_OPEN = ""  # no variable: a condition has no value
_FIRST, _LAST = INTEGERS[0], INTEGERS[-1]
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_WHOLE: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


# --- patterns -----------------------------------------------------------------------------------------------------


def matcher(pairs: Sequence[tuple[Pattern, Type]]) -> tuple[Callable[..., Bound | None], Types]:
    """A function that matches patterns, each with its value, and returns the bindings or None; also the bindings'
    types."""
    types: Types = {}
    tests = [_test(pattern, type, types) for pattern, type in pairs]

    def work(*values: Any) -> Bound | None:
        bound: Bound = {}
        for test, value in zip(tests, values, strict=True):
            if not test(value, bound):
                return None
        if _OPEN in bound:
            raise NoValue
        return bound

    return work, types


def _test(pattern: Pattern, type: Type, types: Types) -> _Test:
    if isinstance(pattern, Anything):
        return _always
    if isinstance(pattern, Equal):
        wanted = constant_value(pattern.value, type)
        return lambda value, bound: bool(value == wanted)
    if isinstance(pattern, Tag):
        assert isinstance(type, Union)
        inside = type.of(pattern.tag)
        assert inside is not None
        tag, test = pattern.tag, _test(pattern.inside, inside, types)
        return lambda value, bound: value.tag == tag and test(value.value, bound)
    if isinstance(pattern, Variable):
        return _variable(pattern, type, types)
    return _tuple(pattern, type, types) if pattern.bracket == "[" else _several(pattern, type, types)


def _always(value: Any, bound: Bound) -> bool:
    return True


def _tuple(pattern: Parts, type: Type, types: Types) -> _Test:
    assert isinstance(type, Tuple)
    names: list[tuple[int, str]] = []  # variables of which nothing else is asked
    tests: list[tuple[int, _Test]] = []
    for place, part in places(pattern.parts, type, pattern.position):
        if isinstance(part, Variable) and part.name and part.name not in types and not part.conditions:
            types[part.name] = type.fields[place].type
            names.append((place, part.name))
        elif not isinstance(part, Anything):
            tests.append((place, _test(part, type.fields[place].type, types)))

    def test(value: Any, bound: Bound) -> bool:
        for place, name in names:
            bound[name] = value[place]
        return all(asked(value[place], bound) for place, asked in tests) if tests else True

    return test


def _variable(pattern: Variable, type: Type, types: Types) -> _Test:
    name, known = pattern.name, types.get(pattern.name)
    if name and known is None:
        types[name] = type
    same = None if known is None else _same(type, known)
    conditions = [_condition(condition, type, types) for condition in pattern.conditions]

    def test(value: Any, bound: Bound) -> bool:
        if same is not None:
            if not same(value, bound[name]):
                return False
        elif name:
            bound[name] = value
        for condition in conditions:
            try:
                if not condition(value, bound):
                    return False
            except NoValue:
                bound[_OPEN] = True
        return True

    return test


def _same(left: Type, right: Type) -> Callable[[Any, Any], bool]:
    if left == right:
        return operator.eq
    if accepts(left, right):
        return lambda ours, theirs: bool(ours == widened(theirs, right, left))
    return lambda ours, theirs: bool(widened(ours, left, right) == theirs)


def _condition(condition: Condition, type: Type, types: Types) -> _Test:
    compared, given = _COMPARED[condition.sign], condition.value
    if isinstance(given, Constant):
        constant = constant_value(given, type)
        return lambda value, bound: bool(compared(value, constant))
    if not is_number(type):
        made = maker(given, type, types)
        return lambda value, bound: bool(compared(value, made(bound)))
    right, right_type = evaluator(given, types)
    both = wider(type, right_type)
    if type == right_type:
        return lambda value, bound: bool(compared(value, right(bound)))
    return lambda value, bound: bool(compared(widened(value, type, both), widened(right(bound), right_type, both)))


def _several(pattern: Parts, type: Type, types: Types) -> _Test:
    """A pattern of a list, or of a bag, whose elements may stand anywhere."""
    assert isinstance(type, Bag | List)
    in_a_row = pattern.bracket == "("
    tests = [_test(part, type.of, types) for _, part in pattern.parts]
    rest = None if pattern.rest is None else _test(pattern.rest, type, types)

    def test(value: Any, bound: Bound) -> bool:
        left = list(value)
        for asked in tests:
            some = left[:1] if in_a_row else left
            place = next((place for place, element in enumerate(some) if asked(element, bound)), None)
            if place is None:
                return False
            del left[place]
        return not left if rest is None else rest(tuple(left), bound)

    return test


# --- expressions --------------------------------------------------------------------------------------------------


def maker(expression: Expression, wanted: Type, types: Types) -> Value:
    """A function that computes an expression where a type is wanted."""
    if isinstance(expression, Constant):
        constant = constant_value(expression, wanted)
        return lambda bound: constant
    if isinstance(expression, MadeTagged):
        assert isinstance(wanted, Union)
        of = wanted.of(expression.tag)
        assert of is not None
        tag, value = expression.tag, maker(expression.value, of, types)
        return lambda bound: Tagged(tag, value(bound))
    if isinstance(expression, Made):
        return _made(expression, wanted, types)
    if isinstance(expression, Arithmetic) and isinstance(wanted, Bag | List):
        left, right, both = maker(expression.left, wanted, types), maker(expression.right, wanted, types), wanted
        return lambda bound: joined(left(bound), right(bound), both)
    value, given = evaluator(expression, types)
    return value if given == wanted else lambda bound: widened(value(bound), given, wanted)


def _made(expression: Made, wanted: Type, types: Types) -> Value:
    if isinstance(wanted, Tuple):
        fields = result_places(expression, wanted)
        parts = [maker(part, wanted.fields[place].type, types) for place, part in fields]
        return lambda bound: tuple([part(bound) for part in parts])
    assert isinstance(wanted, Bag | List)
    elements, of = [maker(part, wanted.of, types) for _, part in expression.parts], wanted.of
    if isinstance(wanted, Bag):
        return lambda bound: in_order([element(bound) for element in elements], of)
    return lambda bound: tuple([element(bound) for element in elements])


def evaluator(expression: Expression, types: Types) -> tuple[Value, Type]:
    """A function that computes an expression, and the type of its value."""
    if isinstance(expression, Use):
        return operator.itemgetter(expression.name), types[expression.name]
    if isinstance(expression, Arithmetic):
        return _arithmetic(expression, types)
    if isinstance(expression, Call):
        given = [evaluator(argument, types) for argument in expression.arguments]
        made_type = FUNCTIONS[expression.function].result([type for _, type in given])
        assert made_type is not None, "a check sees to it"
        name, made = expression.function, made_type
        return lambda bound: called(name, [(value(bound), type) for value, type in given], made), made
    type = type_of(expression, types)
    return maker(expression, type, types), type


def _arithmetic(expression: Arithmetic, types: Types) -> tuple[Value, Type]:
    sign, (left, left_type), (right, right_type) = (
        expression.sign,
        evaluator(expression.left, types),
        evaluator(expression.right, types),
    )
    result = arithmetic(sign, left_type, right_type)
    assert result is not None, "a check sees to it"
    type = result
    if left_type == right_type == INT and sign in _WHOLE:
        work = _WHOLE[sign]

        def whole(bound: Bound) -> int:
            value = work(left(bound), right(bound))
            if not _FIRST <= value <= _LAST:
                raise NoValue
            return value

        return whole, type
    return lambda bound: calculated(sign, (left(bound), left_type), (right(bound), right_type), type), type
