"""Patterns of arcs (Table 2 of the Gryphon text) and the expressions that make new events of what a pattern has bound.

    [issue: "IBM", price: p > 75, any]        Sell: [issue: i]        {["IBM", 80]} + rest

What is printed reads back as the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from postroom.flows.language.values import decimal_of
from postroom.flows.language.words import Words, fail, string, whole
from postroom.model.definitions import Position

Part = TypeVar("Part")
_NOWHERE = Position("pattern", 1)  # where something stands is no part of what it says
_DIGITS_SHOWN = 50  # of a number; a longer one is written with its exponent
_COMPARISONS = (">", ">=", "<", "<=", "=", "!=", "<>")


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, a number, or true and false."""

    value: str | Decimal | bool
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, str):
            return json.dumps(self.value, ensure_ascii=False)
        return format(self.value, "f") if abs(self.value.adjusted()) < _DIGITS_SHOWN else str(self.value)


@dataclass(frozen=True, slots=True)
class Use:
    """The value of a variable."""

    name: str
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two operands and an operator; + also joins texts, bags and lists, and adds time to a date."""

    sign: str
    left: Expression
    right: Expression
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        left, right = str(self.left), str(self.right)
        if isinstance(self.left, Arithmetic) and self.sign in "*/%" and self.left.sign in "+-":
            left = f"({left})"
        if isinstance(self.right, Arithmetic) and (self.sign in "*/%" or self.right.sign in "+-"):
            right = f"({right})"
        return f"{left} {self.sign} {right}"


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Made:
    """A new tuple, bag or list, by its opening bracket. Only a tuple's parts have names."""

    bracket: str
    parts: tuple[tuple[str | None, Expression], ...]
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}: {part}" if name else str(part) for name, part in self.parts)
        comma = "," if self.bracket == "(" and len(self.parts) == 1 else ""  # else it would be a value in parentheses
        return f"{self.bracket}{inside}{comma}{CLOSING[self.bracket]}"


@dataclass(frozen=True, slots=True)
class MadeTagged:
    tag: str
    value: Expression
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.tag}: {self.value}"


Expression = Constant | Use | Arithmetic | Call | Made | MadeTagged
CLOSING = {"[": "]", "{": "}", "(": ")"}


# --- patterns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Anything:
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return "any"


@dataclass(frozen=True, slots=True)
class Condition:
    sign: str
    value: Expression

    def __str__(self) -> str:
        return f"{self.sign} {self.value}"


@dataclass(frozen=True, slots=True)
class Variable:
    """Binds a value within a range; a second use means the bound value."""

    name: str
    conditions: tuple[Condition, ...] = ()
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return " ".join([self.name, " and ".join(map(str, self.conditions))]).strip()


@dataclass(frozen=True, slots=True)
class Equal:
    """A constant: matches its value."""

    value: Constant
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Tag:
    tag: str
    inside: Pattern
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.tag}: {self.inside}"


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple, a bag or a list, by its opening bracket; ``rest`` matches the remaining elements of a bag or list."""

    bracket: str
    parts: tuple[tuple[str | None, Pattern], ...]
    rest: Pattern | None = None
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}: {part}" if name else str(part) for name, part in self.parts)
        text = f"{self.bracket}{inside}{CLOSING[self.bracket]}"
        return text if self.rest is None else f"{text} + {self.rest}"


Pattern = Anything | Variable | Equal | Tag | Parts


def own(pattern: Pattern, others: frozenset[str]) -> Pattern:
    """The pattern without variables that another pattern has bound."""
    return _own(pattern, others | _hidden(pattern, hidden=False))


def _hidden(pattern: Pattern, *, hidden: bool) -> frozenset[str]:
    """The variables inside of bags and lists."""
    if isinstance(pattern, Variable):
        return frozenset({pattern.name}) if hidden and pattern.name else frozenset()
    if isinstance(pattern, Tag):
        return _hidden(pattern.inside, hidden=hidden)
    if isinstance(pattern, Parts):
        inside = [part for _, part in pattern.parts] + ([] if pattern.rest is None else [pattern.rest])
        return frozenset().union(*(_hidden(part, hidden=hidden or pattern.bracket != "[") for part in inside))
    return frozenset()


def _own(pattern: Pattern, others: frozenset[str]) -> Pattern:
    if isinstance(pattern, Variable):
        kept = tuple(condition for condition in pattern.conditions if others.isdisjoint(used(condition.value)))
        return Variable("" if pattern.name in others else pattern.name, kept, pattern.position)
    if isinstance(pattern, Tag):
        return Tag(pattern.tag, _own(pattern.inside, others), pattern.position)
    if isinstance(pattern, Parts):
        if pattern.bracket != "[":  # an element may be one of the other's variables
            return Anything(pattern.position)
        return Parts("[", tuple((name, _own(part, others)) for name, part in pattern.parts), None, pattern.position)
    return pattern


def used(expression: Expression) -> Iterator[str]:
    """The variables of an expression, once for each use."""
    if isinstance(expression, Use):
        yield expression.name
    elif isinstance(expression, Arithmetic):
        yield from used(expression.left)
        yield from used(expression.right)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from used(argument)
    elif isinstance(expression, MadeTagged):
        yield from used(expression.value)
    elif isinstance(expression, Made):
        for _, part in expression.parts:
            yield from used(part)


# --- reading ------------------------------------------------------------------------------------------------------


def parse_pattern(text: str, file: str = "pattern") -> Pattern:
    return whole(text, file, read_pattern)


def parse_expression(text: str, file: str = "result") -> Expression:
    return whole(text, file, read_expression)


def read_pattern(words: Words) -> Pattern:
    words.deeper()
    first = _first(words)
    if words.sign("+"):
        rest = read_pattern(words)
        if isinstance(first, Parts) and first.bracket in "{(" and first.rest is None:
            first = Parts(first.bracket, first.parts, rest, first.position)
        else:  # one element, without brackets around it
            first = Parts("{", ((None, first),), rest, first.position)
    words.higher()
    return first


def _first(words: Words) -> Pattern:
    position = words.next.position
    for bracket, closing in CLOSING.items():
        if words.sign(bracket):
            return Parts(bracket, _several(words, closing, read_pattern), None, position)
    if words.is_sign(*_COMPARISONS):  # a range without a name
        return Variable("", _conditions(words, ""), position)
    if words.next.kind != "name" or words.is_name("true", "false"):
        return Equal(_constant(words), position)
    name = words.take().text
    if name == "any":
        return Anything(position)
    if words.sign(":"):
        return Tag(name, read_pattern(words), position)
    return Variable(name, _conditions(words, name), position)


def _several(words: Words, closing: str, read: Callable[[Words], Part]) -> tuple[tuple[str | None, Part], ...]:
    parts: list[tuple[str | None, Part]] = []
    while not words.sign(closing):
        if parts:
            words.expect(",", f"or {closing!r}")
        name = None
        if closing == "]" and words.is_name() and words.after_next.text == ":":
            name = words.take().text
            words.take()
        parts.append((name, read(words)))
    return tuple(parts)


def _conditions(words: Words, name: str) -> tuple[Condition, ...]:
    """``> 75``, ``> 75 and p < 100`` (the name may be left out), ``between 75 and 100`` (both included)."""
    conditions: list[Condition] = []
    if words.flag("between"):
        conditions.append(Condition(">=", read_expression(words)))
        words.keyword("and")
        conditions.append(Condition("<=", read_expression(words)))
    elif words.is_sign(*_COMPARISONS):
        conditions.append(_condition(words))
    while conditions and words.flag("and"):
        if name:
            words.flag(name)
        conditions.append(_condition(words))
    return tuple(conditions)


def _condition(words: Words) -> Condition:
    if not words.is_sign(*_COMPARISONS):
        words.refuse("a comparison")
    sign = words.take().text
    return Condition("!=" if sign == "<>" else sign, read_expression(words))


def read_expression(words: Words) -> Expression:
    words.deeper()
    expression = _chain(words, "+-", lambda words: _chain(words, "*/%", _operand))
    words.higher()
    return expression


def _chain(words: Words, signs: str, read: Callable[[Words], Expression]) -> Expression:
    """A chain of operators, read left-associatively."""
    expression, count = read(words), 0
    while words.is_sign(*signs):
        sign = words.take()
        words.deeper()
        count += 1
        expression = Arithmetic(sign.text, expression, read(words), sign.position)
    for _ in range(count):
        words.higher()
    return expression


def _operand(words: Words) -> Expression:
    position = words.next.position
    if words.sign("("):
        return _in_parentheses(words, position)
    for bracket in "[{":
        if words.sign(bracket):
            return Made(bracket, _several(words, CLOSING[bracket], read_expression), position)
    if words.is_sign("-") and words.after_next.kind != "number":
        words.take()
        words.deeper()
        negated = Arithmetic("-", Constant(Decimal(0), position), _operand(words), position)
        words.higher()
        return negated
    if words.next.kind != "name" or words.is_name("true", "false"):
        return _constant(words)
    name = words.take().text
    if words.sign("("):
        arguments = tuple(part for _, part in _several(words, ")", read_expression))
        return Call(name, arguments, position)
    if words.sign(":"):
        return MadeTagged(name, read_expression(words), position)
    return Use(name, position)


def _in_parentheses(words: Words, position: Position) -> Expression:
    """A list in parentheses; a single value without a comma is that value."""
    parts: list[tuple[str | None, Expression]] = []
    comma = False
    while not words.sign(")"):
        if parts and not comma:
            words.refuse("',' or ')'")
        parts.append((None, read_expression(words)))
        comma = words.sign(",") is not None
    if len(parts) == 1 and not comma:
        return parts[0][1]
    return Made("(", tuple(parts), position)


def _constant(words: Words) -> Constant:
    position = words.next.position
    if words.next.kind == "string":
        return Constant(string(words.take()), position)
    if words.is_name("true", "false"):
        return Constant(words.take().text == "true", position)
    minus = "-" if words.sign("-") else ""
    if words.next.kind != "number":
        words.refuse("a pattern or a value")
    try:
        return Constant(decimal_of(minus + words.take().text), position)
    except ValueError as error:
        fail(position, str(error), "syntax")
