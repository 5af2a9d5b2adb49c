"""What a rule program consists of: frozen definitions that remember where they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from postroom.model.definitions import Definition, Position
from postroom.rules.language.edits import line_column
from postroom.store.kernel.queues import SYSTEM_ERRORS

if TYPE_CHECKING:
    from postroom.rules.language.prolog import Prolog

KIND = "rules"  # the kind of these definitions in the catalog


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of XQuery with the place of its first character."""

    text: str
    line: int
    column: int

    def place(self, file: str, offset: int) -> Position:
        """An offset in it as a place in its file."""
        line, column = line_column(self.text, min(offset, len(self.text)))
        start = self.column - 1 if line == 1 else 0
        return Position(file, self.line + line - 1, column + start)


@dataclass(frozen=True, slots=True)
class Policy:
    """``using WS-ReliableMessaging policy wsrmpol.xml``"""

    extension: str
    file: str | None = None
    text: str | None = None  # what it says, read when it was loaded


@dataclass(frozen=True, slots=True)
class QueueDefinition:
    what: ClassVar[str] = "queue"
    name: str
    kind: str  # basic, echo, incomingGateway, outgoingGateway
    mode: str  # persistent, transient
    position: Position
    module: str
    priority: int = 0
    schema: str | None = None  # the name of the file
    schema_text: str | None = None  # and what it says, read when it was loaded
    errorqueue: str | None = None
    interface: str | None = None  # a transport, or the name of a file
    interface_text: str | None = None  # and what it says with all that it imports, read when it was loaded
    port: str | None = None
    policies: tuple[Policy, ...] = ()
    rule: str | None = None  # that it was made for


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """The queues for which a property has one value expression; without one it is explicit or inherited."""

    queues: tuple[str, ...]
    value: Expression | None


@dataclass(frozen=True, slots=True)
class PropertyDefinition:
    what: ClassVar[str] = "property"
    name: str
    type: str  # string, integer, …: a type of XML Schema without its prefix
    position: Position
    module: str
    inherited: bool = False
    fixed: bool = False
    values: tuple[PropertyValue, ...] = ()

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(queue for value in self.values for queue in value.queues)

    def value_for(self, queue: str) -> Expression | None:
        for value in self.values:
            if queue in value.queues:
                return value.value
        return None


@dataclass(frozen=True, slots=True)
class SlicingDefinition:
    what: ClassVar[str] = "slicing"
    name: str
    property: str
    position: Position
    module: str


@dataclass(frozen=True, slots=True)
class CollectionDefinition:
    what: ClassVar[str] = "collection"
    name: str
    position: Position
    module: str


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    what: ClassVar[str] = "rule"
    name: str
    target: str  # a queue or a slicing
    body: Expression
    position: Position
    module: str
    errorqueue: str | None = None
    unless: Expression | None = None  # what keeps it from firing when its time has come
    deadline: Expression | None = None  # a duration, or a moment

    @property
    def waiting(self) -> str:
        """The queue in which messages wait for the expected one."""
        return f"{self.name}-waiting"

    @property
    def due(self) -> str:
        """The queue of messages whose wait is over."""
        return f"{self.name}-due"

    def fires_at(self, queue: str) -> bool:
        """Whether the messages of a queue are those that have waited."""
        return self.unless is not None and queue == self.due


@dataclass(frozen=True, slots=True)
class ModuleDefinition:
    """One file of definitions; they are replaced together."""

    what: ClassVar[str] = "module"
    name: str
    position: Position
    module: str
    errorqueue: str | None = None
    prolog: Expression | None = None  # its declarations


@dataclass(frozen=True, slots=True)
class LibraryDefinition:
    """An XQuery library module, which programs import by its namespace; it counts as a module."""

    what: ClassVar[str] = "library"
    name: str  # its namespace
    position: Position
    module: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class SystemDefinition:
    what: ClassVar[str] = "system"
    name: str  # always "errors"
    errorqueue: str
    position: Position
    module: str


AnyDefinition = (
    QueueDefinition
    | PropertyDefinition
    | SlicingDefinition
    | CollectionDefinition
    | RuleDefinition
    | ModuleDefinition
    | LibraryDefinition
    | SystemDefinition
)
_CLASSES: tuple[type[AnyDefinition], ...] = get_args(AnyDefinition)


@dataclass(frozen=True)
class Program:
    """All definitions of one version, by name and in order."""

    definitions: tuple[AnyDefinition, ...] = ()
    queues: dict[str, QueueDefinition] = field(init=False)
    properties: dict[str, PropertyDefinition] = field(init=False)
    slicings: dict[str, SlicingDefinition] = field(init=False)
    collections: dict[str, CollectionDefinition] = field(init=False)
    rules: dict[str, RuleDefinition] = field(init=False)
    modules: dict[str, ModuleDefinition] = field(init=False)
    libraries: dict[str, LibraryDefinition] = field(init=False)
    system: SystemDefinition | None = field(init=False)

    def __post_init__(self) -> None:
        for attribute, kind in (
            ("queues", QueueDefinition),
            ("properties", PropertyDefinition),
            ("slicings", SlicingDefinition),
            ("collections", CollectionDefinition),
            ("rules", RuleDefinition),
            ("modules", ModuleDefinition),
            ("libraries", LibraryDefinition),
        ):
            chosen = {definition.name: definition for definition in self.definitions if isinstance(definition, kind)}
            object.__setattr__(self, attribute, chosen)
        systems = [definition for definition in self.definitions if isinstance(definition, SystemDefinition)]
        object.__setattr__(self, "system", systems[-1] if systems else None)

    def __bool__(self) -> bool:
        return bool(self.definitions)

    def with_modules(self, new: Iterable[AnyDefinition]) -> Program:
        """This program with some modules replaced by new ones; the others stay."""
        new = tuple(new)
        replaced = {definition.module for definition in new}
        return Program((*(definition for definition in self.definitions if definition.module not in replaced), *new))

    def prolog(self, module: str) -> Prolog:
        """The declarations of a module."""
        from postroom.rules.language.prolog import (  # it reads XQuery; a program that is looked at needs none
            Prolog,
            prolog,
        )

        known = self.modules.get(module)
        return prolog(known.prolog.text) if known is not None and known.prolog is not None else Prolog()

    def slicings_of(self, queue: str) -> Iterator[SlicingDefinition]:
        """The slicings by properties that messages of a queue may have."""
        return (slicing for slicing in self.slicings.values() if queue in self.sliced(slicing))

    def sliced(self, slicing: SlicingDefinition) -> tuple[str, ...]:
        """The queues whose messages trigger the rules of a slicing."""
        known = self.properties.get(slicing.property)
        if known is not None:
            return known.queues
        # The connection of a message goes over to whatever rules make of it, in any queue; but what is in an outgoing
        # gateway waits for its partner, and what is in an echo queue for its time.
        return tuple(queue.name for queue in self.queues.values() if queue.kind in ("basic", "incomingGateway"))

    def slicings_into(self, queue: str) -> list[SlicingDefinition]:
        """The slicings that may contain messages of a queue; by connection also those that wait in it."""
        slicings = {slicing.name: slicing for slicing in self.slicings_of(queue)}
        others = (slicing for slicing in self.slicings.values() if slicing.property not in self.properties)
        by_system = {slicing.name: slicing for slicing in others}
        return list((slicings | by_system if by_system and queue in self.mentioned else slicings).values())

    @property
    def mentioned(self) -> dict[str, None]:
        """Every queue that the program mentions."""
        names = dict.fromkeys(self.queues)
        for definition in self.properties.values():
            names.update(dict.fromkeys(definition.queues))
        for queue in self.watched:
            names.setdefault(queue)
        return names

    def properties_of(self, queue: str) -> list[PropertyDefinition]:
        return [definition for definition in self.properties.values() if queue in definition.queues]

    def rules_of(self, queue: str) -> list[RuleDefinition]:
        """The rules that a message of a queue triggers, with those of its slicings, in order of definition."""
        slicings = {slicing.name for slicing in self.slicings_of(queue)}
        return [
            rule
            for rule in self.rules.values()
            if rule.target == queue or rule.target in slicings or rule.fires_at(queue)
        ]

    @property
    def watched(self) -> dict[str, int]:
        """The queues whose messages the engine takes, with priorities."""
        names: dict[str, int] = {}
        for rule in self.rules.values():
            slicing = self.slicings.get(rule.target)
            for queue in self.sliced(slicing) if slicing else (rule.target,):
                definition = self.queues.get(queue)
                names[queue] = definition.priority if definition else 0
            if rule.unless is not None:
                names[rule.due] = 0
        return names

    def error_queues(self, queue: str, rule: str | None) -> list[str]:
        """The possible queues for an error of a message of this queue: the most specific first, the built-in one
        last."""
        defined = self.queues.get(queue)
        waits = self.rules.get(defined.rule) if defined and defined.rule else None
        if waits is not None and waits.target in self.queues:  # its messages wait here, and are of that queue
            defined = self.queues[waits.target]
        made_by = self.rules.get(rule) if rule else waits
        module = self.modules.get(made_by.module if made_by else defined.module if defined else "")
        levels = [
            made_by.errorqueue if made_by else None,
            defined.errorqueue if defined else None,
            module.errorqueue if module else None,
            self.system.errorqueue if self.system else None,
        ]
        # An error in handling errors goes one level up, never back into the queue it came from.
        own = (queue, defined.name if defined else queue)
        return [*dict.fromkeys(level for level in levels if level and level not in own), SYSTEM_ERRORS]

    def every_error_queue(self) -> list[str]:
        """Every possible error queue; the built-in one is also used by arcs."""
        ladders = [self.error_queues(queue, None) for queue in [*self.watched, *self.queues]]
        ladders += [self.error_queues(queue, rule.name) for queue in self.watched for rule in self.rules_of(queue)]
        return list(dict.fromkeys([SYSTEM_ERRORS, *(name for ladder in ladders for name in ladder)]))


def as_catalog(definition: AnyDefinition) -> Definition:
    body = {member.name: getattr(definition, member.name) for member in fields(definition) if member.name != "position"}
    for name in ("prolog", "unless", "deadline", "rule", "interface_text"):
        if name in body and body[name] is None:
            del body[name]  # as rooms have it that were made before there was one
    return Definition(
        KIND, f"{definition.what} {definition.name}", {"what": definition.what, **_plain(body)}, definition.position
    )


def from_catalog(definition: Definition) -> AnyDefinition:
    body = dict(definition.body)
    what = body.pop("what")
    kind = next(kind for kind in _CLASSES if kind.what == what)
    if what == "queue":
        body["policies"] = tuple(Policy(**policy) for policy in body["policies"])
    if what == "property":
        body["values"] = tuple(
            PropertyValue(tuple(value["queues"]), Expression(**value["value"]) if value["value"] else None)
            for value in body["values"]
        )
    for name in ("body", "unless", "deadline", "prolog"):
        if name in body:
            body[name] = Expression(**body[name])
    return kind(position=definition.position or Position("", 1), **body)


def _plain(value: Any) -> Any:
    """Convert dataclasses and tuples to JSON data."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        plain = {member.name: _plain(getattr(value, member.name)) for member in fields(value)}
        return {name: item for name, item in plain.items() if item is not None} if isinstance(value, Policy) else plain
    return value
