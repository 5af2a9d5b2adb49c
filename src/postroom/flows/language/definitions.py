"""What a flow file says: domains, who may change them, spaces, tables, arcs. Each remembers where it was written."""

from __future__ import annotations

from dataclasses import dataclass

from postroom.flows.language.patterns import Expression, Pattern
from postroom.flows.language.types import UNTYPED, Type
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
    """One without a type gets that of what its first arc delivers."""

    name: str
    domain: str
    type: Type
    retain: bool
    position: Position

    def __str__(self) -> str:
        type = "" if self.type == UNTYPED else f" : {self.type}"
        return f"space {self.name}{type}{' retain' if self.retain else ''}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that do not change while events flow: a file, or a collection of the room."""

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
    """The rows of a table that match what an event has bound."""

    table: str
    pattern: Pattern

    def __str__(self) -> str:
        return f"join {self.table} {self.pattern}"


@dataclass(frozen=True, slots=True)
class Transform:
    """Makes a new event of each that matches, for a join one of each row."""

    pattern: Pattern
    result: Expression
    join: Join | None = None

    def __str__(self) -> str:
        join = f" {self.join}" if self.join else ""
        return f"transform {self.pattern}{join} => {self.result}"


@dataclass(frozen=True, slots=True)
class Merge:
    """Passes every event."""

    def __str__(self) -> str:
        return "merge"


@dataclass(frozen=True, slots=True)
class Arc:
    name: str
    domain: str
    source: str
    target: str
    does: Select | Transform | Merge
    durable: bool  # what was published while it was disabled is delivered when it is enabled
    position: Position

    @property
    def full_name(self) -> str:
        """Its name is its own in its domain."""
        return f"{self.domain}:{self.name}"

    def __str__(self) -> str:
        durable = " durable" if self.durable else ""
        return f"arc {self.name} : {self.source} -> {self.target} {self.does}{durable}"


Statement = Domain | Allow | Space | Table | Arc
