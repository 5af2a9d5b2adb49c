"""What a flow file says: domains, who may change them, spaces, tables, arcs. Each remembers its place in the file."""

from __future__ import annotations

from dataclasses import dataclass, field

from postroom.flows.language.outside import Outside
from postroom.flows.language.patterns import Expression, Pattern
from postroom.flows.language.types import UNTYPED, Type
from postroom.flows.language.windows import Clock, Duration, Window
from postroom.model.definitions import Position

#: What can be done to a graph: the meta-events of the text that someone may publish.
ACTIONS = (
    "addArc",
    "deleteArc",
    "addSpace",
    "deleteSpace",
    "disableArc",
    "enableArc",
    "requestAddArc",
    "requestDeleteArc",
    "requestProcessed",
)
#: Reading is open to all, unless a domain says who may.
SUBSCRIBE = "subscribe"
EVERYONE = "*"


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    position: Position

    @property
    def domain(self) -> str:
        """The domain that it belongs to, as every statement has one."""
        return self.name

    def __str__(self) -> str:
        return f"domain {self.name}"


@dataclass(frozen=True, slots=True)
class Allow:
    """What one principal, or everyone, may do in a domain."""

    domain: str
    principal: str
    actions: tuple[str, ...]
    position: Position

    def __str__(self) -> str:
        return f"allow {self.principal} : {', '.join(self.actions)}"


@dataclass(frozen=True, slots=True)
class Space:
    """A space; without a type it takes the type that its first arc delivers."""

    name: str
    domain: str
    type: Type
    retain: bool
    position: Position
    source: Outside | None = None  # where its events come from
    sink: Outside | None = None  # where its events go to

    def __str__(self) -> str:
        type = "" if self.type == UNTYPED else f" : {self.type}"
        outside = f" from {self.source}" if self.source else f" to {self.sink}" if self.sink else ""
        return f"space {self.name}{type}{' retain' if self.retain else ''}{outside}"

    @property
    def outside(self) -> Outside | None:
        return self.source or self.sink


@dataclass(frozen=True, slots=True)
class Table:
    """A table of rows that do not change while events flow: a file, or a collection of the room."""

    name: str
    domain: str
    type: Type
    source: str
    collection: bool
    position: Position

    def __str__(self) -> str:
        source = f"collection {self.source}" if self.collection else f'"{self.source}"'
        return f"table {self.name} : {self.type} from {source}"


@dataclass(frozen=True, slots=True)
class Select:
    """Passes the events that match."""

    pattern: Pattern

    def __str__(self) -> str:
        return f"select {self.pattern}"


@dataclass(frozen=True, slots=True)
class Join:
    """Joins events with the matching rows of a table."""

    table: str
    pattern: Pattern

    def __str__(self) -> str:
        return f"join {self.table} {self.pattern}"


@dataclass(frozen=True, slots=True)
class Transform:
    """Makes a new event of each that matches; with a join, one of each row."""

    pattern: Pattern
    result: Expression
    join: Join | None = None

    def __str__(self) -> str:
        join = f" {self.join}" if self.join else ""
        return f"transform {self.pattern}{join} => {self.result}"


@dataclass(frozen=True, slots=True)
class Collapse:
    """Aggregates the events of a key: a new event at each change, or at the end of a window."""

    pattern: Pattern
    by: tuple[str, ...]
    clock: Clock | None
    window: Window | None
    result: Expression

    @property
    def begins(self) -> str:
        """Its text before the result."""
        keys = [f"by {', '.join(self.by)}"] if self.by else []
        return " ".join(map(str, filter(None, ["collapse", self.pattern, *keys, self.clock, self.window])))

    def __str__(self) -> str:
        return f"{self.begins} => {self.result}"


@dataclass(frozen=True, slots=True)
class Meet:
    """Makes a new event of each pair of events from the source and another space that are near in time."""

    pattern: Pattern
    clock: Clock  # its lateness is that of both spaces
    space: str
    other: Pattern
    other_time: str  # the variable that has the time of the other event
    within: Duration
    result: Expression

    @property
    def begins(self) -> str:
        """Its text before the result."""
        late = f" late {self.clock.late}" if self.clock.late.amount else ""
        other = f"join {self.space} {self.other} at {self.other_time} within {self.within}{late}"
        return f"{self.pattern} at {self.clock.variable} {other}"

    def __str__(self) -> str:
        return f"transform {self.begins} => {self.result}"


@dataclass(frozen=True, slots=True)
class Merge:
    """Passes every event."""

    def __str__(self) -> str:
        return "merge"


#: What arcs do. The first three look at one event at a time; the others have a state, and look at events in order.
Plain = Select | Transform | Merge
Stateful = Collapse | Meet
Does = Plain | Stateful


@dataclass(frozen=True, slots=True)
class Arc:
    name: str
    domain: str
    source: str
    target: str
    does: Does
    durable: bool  # what was published while it was disabled is delivered when it is enabled
    position: Position
    written: str = field(default="", compare=False)  # its text, if it has been read from one

    @property
    def full_name(self) -> str:
        """The name with its domain, which is unique."""
        return f"{self.domain}:{self.name}"

    @property
    def sources(self) -> tuple[str, ...]:
        """The spaces that it takes events from."""
        return (self.source, self.does.space) if isinstance(self.does, Meet) else (self.source,)

    @property
    def table(self) -> str | None:
        """The table whose rows it joins with events."""
        join = self.does.join if isinstance(self.does, Transform) else None
        return None if join is None else join.table

    def __str__(self) -> str:
        durable = " durable" if self.durable else ""
        return f"arc {self.name} : {self.source} -> {self.target} {self.does}{durable}"


Statement = Domain | Allow | Space | Table | Arc
