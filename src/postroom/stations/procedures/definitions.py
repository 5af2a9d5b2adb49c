"""Procedures as definitions: frozen sketches and lines, each with its position."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from postroom.model.definitions import Position
from postroom.stations.forms.quoting import quoted

_NOWHERE = Position("procedure", 1)
KEYWORDS = ("type", "counter", "procedure", "precondition", "origin", "action", "create", "destination")
ME = "me"
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


# --- values ---


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of a collected message: the old value, or (``'``) the new one."""

    sketch: str
    field: str
    updated: bool = False

    def __str__(self) -> str:
        return f"?{self.sketch}.{self.field}{chr(39) if self.updated else ''}"


@dataclass(frozen=True, slots=True)
class Constant:
    value: str | int | Decimal

    def __str__(self) -> str:
        if isinstance(self.value, Decimal):
            return f"{self.value:f}"  # 1E-7 would be read as a text
        return quoted(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A registered Python function of values."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Expression = Reference | Constant | Call


def references(expression: Expression) -> list[Reference]:
    """The fields that a value is computed from."""
    if isinstance(expression, Call):
        return [reference for argument in expression.arguments for reference in references(argument)]
    return [expression] if isinstance(expression, Reference) else []


def calls(expression: Expression) -> list[str]:
    """The functions that a value is computed with."""
    if not isinstance(expression, Call):
        return []
    return [expression.function, *(name for argument in expression.arguments for name in calls(argument))]


# --- sketches ---


@dataclass(frozen=True, slots=True)
class Wanted:
    """A line of a precondition: conditions as in a query, or a comparison with another field."""

    field: str
    conditions: str = ""
    sign: str = "="
    other: Reference | None = None
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        if self.other is None:
            return f"{_name(self.field)}: {self.conditions}"
        return f"{_name(self.field)}: {'' if self.sign == '=' else self.sign + ' '}{self.other}"


@dataclass(frozen=True, slots=True)
class Precondition:
    name: str
    type: str
    lines: tuple[Wanted, ...] = ()
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        return "\n".join([f"  precondition {self.name} : {self.type}", *(f"    {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True)
class Origin:
    """The stations that a message may come from, or may not."""

    name: str
    sketch: str
    stations: tuple[str, ...]
    refused: bool = False
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    @property
    def restriction(self) -> str:
        return f"{'not from' if self.refused else 'from'} {', '.join(self.stations)}"

    def __str__(self) -> str:
        return f"  origin {self.name} on {self.sketch} {self.restriction}"


@dataclass(frozen=True, slots=True)
class Written:
    """A line of an action or new message: a value for a field."""

    field: str
    value: Expression
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{_name(self.field)}: {self.value}"


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    sketch: str
    lines: tuple[Written, ...] = ()
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        return "\n".join([f"  action {self.name} on {self.sketch}", *(f"    {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True)
class Creation:
    """A new message, made when the working set is complete."""

    name: str
    type: str
    lines: tuple[Written, ...] = ()
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        return "\n".join([f"  create {self.name} : {self.type}", *(f"    {line}" for line in self.lines)])


class Operation(StrEnum):
    LEAVE = "leave"
    SHIP = "ship"
    DOSSIER = "dossier"
    ABORT = "abort"  # it stays, and its sphere fails


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a message goes: copy 0 is the message itself, the others are copies."""

    name: str
    sketch: str
    copy: int
    operation: Operation
    where: Expression | None = None
    after: tuple[int, str] | None = None  # how long it waits before it is shipped: so many of a unit
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    @property
    def delay_seconds(self) -> int | None:
        return None if self.after is None else self.after[0] * _SECONDS[self.after[1]]

    def __str__(self) -> str:
        where = "" if self.where is None else f" {self.where}"
        after = "" if self.after is None else f" after {self.after[0]} {self.after[1]}s"
        return f"  destination {self.name} on {self.sketch} copy {self.copy} {self.operation}{where}{after}"


@dataclass(frozen=True, slots=True)
class Procedure:
    name: str
    station: str
    preconditions: tuple[Precondition, ...] = ()
    origins: tuple[Origin, ...] = ()
    actions: tuple[Action, ...] = ()
    creations: tuple[Creation, ...] = ()
    destinations: tuple[Destination, ...] = ()
    position: Position = dataclasses.field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        return "\n".join([f"procedure {self.name} at {self.station}", *map(str, self.sketches)]) + "\n"

    @property
    def sketches(self) -> list[Sketch]:
        return [*self.preconditions, *self.origins, *self.actions, *self.creations, *self.destinations]

    def precondition(self, name: str) -> Precondition | None:
        return next((sketch for sketch in self.preconditions if sketch.name == name), None)

    def creation(self, name: str) -> Creation | None:
        return next((sketch for sketch in self.creations if sketch.name == name), None)

    def type_of(self, sketch: str) -> str | None:
        definition = self.precondition(sketch) or self.creation(sketch)
        return None if definition is None else definition.type

    def writings(self) -> list[tuple[str, Written]]:
        """Every written value, with the sketch of its message."""
        sketches = [(action.sketch, action.lines) for action in self.actions]
        sketches += [(creation.name, creation.lines) for creation in self.creations]
        return [(sketch, line) for sketch, lines in sketches for line in lines]

    def expressions(self) -> list[tuple[Position, Expression]]:
        """Every value that is computed when the working set is complete."""
        values = [(line.position, line.value) for _, line in self.writings()]
        return values + [(goal.position, goal.where) for goal in self.destinations if goal.where is not None]


Sketch = Precondition | Origin | Action | Creation | Destination


def _name(field: str) -> str:
    """A field's name at the start of a line; quoted if it looks like a statement."""
    return quoted(field) if field.split(" ")[0] in KEYWORDS else field
