"""The aggregates of arcs with state: what is computed over all events of a key, and its type.

    count()   sum(p)   min(p)   max(p)   avg(p)   first(p)   last(p)

A result is an expression of aggregates, keys and the ends of the window. It is taken apart here: an aggregate becomes a
variable, whose name is the text of its call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from postroom.flows.language.definitions import Collapse, Meet
from postroom.flows.language.inference import ORDERED, bind, paths, result, type_of
from postroom.flows.language.patterns import Arithmetic, Call, Expression, Made, MadeTagged, Pattern, Use
from postroom.flows.language.types import DECIMAL, FLOAT, INT, TIMESTAMP, UNTYPED, Scalar, Type
from postroom.flows.language.windows import Clock, Every, LastEvents, Session, Until
from postroom.flows.language.words import fail
from postroom.model.definitions import Position

START, END = "start", "end"  # the variables of a window
#: How each is called, and the type it makes of its argument's; None if it takes no such argument.
AGGREGATES: Mapping[str, tuple[str, Callable[[Type | None], Type | None]]] = {
    "count": ("count()", lambda given: INT if given is None else None),
    "sum": ("sum(int or decimal)", lambda given: given if given in (INT, DECIMAL) else None),
    "avg": ("avg(int or decimal)", lambda given: FLOAT if given == INT else given if given == DECIMAL else None),
    "min": ("min(number, text, date or timestamp)", lambda given: given if given in ORDERED else None),
    "max": ("max(number, text, date or timestamp)", lambda given: given if given in ORDERED else None),
    "first": ("first(value)", lambda given: given),
    "last": ("last(value)", lambda given: given),
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One call: its text, which names its value, and its argument."""

    name: str
    function: str
    argument: Expression | None
    position: Position


def split(expression: Expression) -> tuple[Expression, dict[str, Aggregate]]:
    """An expression with variables for its aggregates, and these by their names."""
    aggregates: dict[str, Aggregate] = {}
    return _split(expression, aggregates), aggregates


def _split(expression: Expression, aggregates: dict[str, Aggregate]) -> Expression:
    if isinstance(expression, Call):
        if expression.function in AGGREGATES and (expression.function != "count" or not expression.arguments):
            name = str(expression)
            if len(expression.arguments) != (expression.function != "count"):
                fail(expression.position, f"{name} is not {AGGREGATES[expression.function][0]}", "function")
            argument = expression.arguments[0] if expression.arguments else None
            aggregates.setdefault(name, Aggregate(name, expression.function, argument, expression.position))
            return Use(name, expression.position)
        return replace(expression, arguments=tuple(_split(argument, aggregates) for argument in expression.arguments))
    if isinstance(expression, Arithmetic):
        return replace(expression, left=_split(expression.left, aggregates), right=_split(expression.right, aggregates))
    if isinstance(expression, MadeTagged):
        return replace(expression, value=_split(expression.value, aggregates))
    if isinstance(expression, Made):
        return replace(expression, parts=tuple((name, _split(part, aggregates)) for name, part in expression.parts))
    return expression


def made_type(aggregate: Aggregate, bound: Mapping[str, Type]) -> Type:
    """The type of an aggregate over the bindings of a pattern."""
    usage, types = AGGREGATES[aggregate.function]
    given = None if aggregate.argument is None else type_of(aggregate.argument, bound)
    if aggregate.argument is not None:
        _, inside = split(aggregate.argument)
        for inner in inside.values():
            fail(inner.position, f"{inner.name} stands inside of another aggregate", "function")
    type = types(given)
    if type is None:
        advice = "; sums of floats depend on their order: decimal(x) is exact" if given == FLOAT else ""
        fail(aggregate.position, f"{aggregate.function}({given}) is not {usage}{advice}", "function")
    return type


def collapsed(does: Collapse, source: Type) -> dict[str, Type]:
    """What the result of a collapse may use: keys, window ends, aggregates; raises if the collapse is invalid."""
    bound = bind(does.pattern, source)
    keys = {name: _key(name, bound, does.pattern.position) for name in does.by}
    known = {**keys, **_window(does, source, bound, keys)}
    _, aggregates = split(does.result)
    return {**known, **{name: made_type(aggregate, bound) for name, aggregate in aggregates.items()}}


def check_collapse(does: Collapse, source: Type, target: Type | None) -> Type:
    """The type that a collapse makes; raises unless it fits the target."""
    known = collapsed(does, source)
    expression, _ = split(does.result)
    return _made(expression, target, known)


def _made(expression: Expression, target: Type | None, known: Mapping[str, Type]) -> Type:
    """The type that an expression makes; raises unless it fits the target, if there is one."""
    if target is None or target == UNTYPED:
        return type_of(expression, known)
    result(expression, target, known)
    return target


def _key(name: str, bound: Mapping[str, Type], position: Position) -> Type:
    path = bound.get(name)
    if path is None:
        fail(position, f"by {name}: it is not bound; bound are: {', '.join(bound) or 'none'}", "unbound")
    if not isinstance(path, Scalar) or path == DECIMAL:
        fail(position, f"by {name}: a key is of a simple type other than decimal, not {path}", "key-type")
    return path


def _window(does: Collapse, source: Type, bound: Mapping[str, Type], keys: Mapping[str, Type]) -> dict[str, Type]:
    """The variables of a window; raises if it is invalid."""
    window = does.window
    if does.clock is not None:
        check_clock(does.clock, does.pattern, source)
    if window is None or isinstance(window, LastEvents):
        return {}
    if does.clock is None:
        fail(window.position, f"{window}: a window is of times; say at VARIABLE before it", "window")
    if isinstance(window, Until):
        if keys.get(window.variable) != TIMESTAMP:
            fail(window.position, f"{window}: it is one of the keys (by …) and a timestamp", "window")
        return {}
    assert isinstance(window, Every | Session)
    for name in (START, END):
        if name in bound:
            fail(window.position, f"{name} is a variable of the window; take another name for what is bound", "window")
    return {START: TIMESTAMP, END: TIMESTAMP}


def check_clock(clock: Clock, pattern: Pattern, type: Type) -> None:
    """Raise unless every event has a time, even one that does not match."""
    clock_path = paths(pattern, type).get(clock.variable)
    if clock_path is None:
        fail(clock.position, f"at {clock.variable}: no field of every event is bound to it", "clock")
    if clock_path[1] != TIMESTAMP:
        fail(clock.position, f"at {clock.variable}: a timestamp is wanted, and it is {clock_path[1]}", "clock")


def check_meet(does: Meet, source: Type, other: Type, target: Type | None) -> Type:
    """The type that a join of two spaces makes; raises unless it fits the target."""
    bound = bind(does.other, other, bind(does.pattern, source))
    check_clock(does.clock, does.pattern, source)
    check_clock(replace(does.clock, variable=does.other_time), does.other, other)
    if does.clock.variable == does.other_time:
        fail(does.clock.position, f"{does.other_time} is the time of both: they would have to be equal", "clock")
    shared(does, source, other)
    return _made(does.result, target, bound)


def shared(does: Meet, source: Type, other: Type) -> tuple[str, ...]:
    """The variables that every event of both spaces has: events join if these are equal."""
    ours, theirs = paths(does.pattern, source), paths(does.other, other)
    names = tuple(name for name in ours if name in theirs)
    for name in names:
        one, two = ours[name][1], theirs[name][1]
        if one != two or not isinstance(one, Scalar) or one == DECIMAL:
            what = f"{name} is {one} and {two}: events meet by one simple type, other than decimal"
            fail(does.other.position, what, "key-type")
    return names
