"""The compiled program: for each queue with rules one query over a batch of messages, and what it reads.

A plan is plain data that is sent to workers. It is independent of Spark, the store and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from postroom.model.definitions import Position
from postroom.model.types import MessageType
from postroom.rules.language.definitions import Expression
from postroom.rules.language.edits import Edited
from postroom.rules.language.positions import begin_of

#: Behind the number of a rule that passes on the current message as it is.
SAME = "="
#: Properties of a message that waits: the moment, in microseconds, and the key of the message that made it wait.
DUE, ORIGIN = "absence-due", "absence-origin"
#: In a query with a try that someone wrote.
CATCHING = "(: catching :)"


@dataclass(frozen=True, slots=True)
class Key:
    """How a message's value for a slice or an index is found."""

    source: str  # property, literal, or probe: the values that the message itself has in an index
    name: str


@dataclass(frozen=True, slots=True)
class Read:
    """A set of messages that the rules of a queue read."""

    kind: str  # slice, index or queue
    name: str  # of the slicing, the index or the queue
    key: Key | None = None  # None: the whole queue

    def __str__(self) -> str:
        if self.key is None:
            return f"the whole queue {self.name}"
        return f"{self.kind} {self.name} by {self.key.source} {self.key.name}"


@dataclass(frozen=True, slots=True)
class Index:
    """Indexed values of the messages of a queue, so that a rule finds the few that it compares with."""

    name: str
    queue: str
    expression: str


@dataclass(frozen=True, slots=True)
class PlannedProperty:
    name: str
    type: str
    inherited: bool
    fixed: bool
    computed: bool = False  # in this queue, by an expression


@dataclass(frozen=True, slots=True)
class Source:
    """A user-written piece of a query: its position there, and in its file."""

    line: int  # of the query, from 1; the piece begins with it
    made: Edited
    said: Expression
    file: str

    def place(self, line: int, column: int) -> Position:
        """A place in the query, as a place in the file."""
        lines = self.made.text.split("\n")
        before = sum(len(earlier) + 1 for earlier in lines[: line - self.line])
        offset = min(before + min(column - 1, len(lines[line - self.line])), len(self.made.text))
        return self.said.place(self.file, begin_of(self.said.text, self.made.origin(offset)))

    def holds(self, line: int) -> bool:
        return self.line <= line <= self.line + self.made.text.count("\n")


@dataclass(frozen=True, slots=True)
class Query:
    """A unit of evaluation: rules or properties whose modules have the same declarations."""

    text: str
    careful: str = ""  # the same, slower: a failing rule's answer is held back
    sources: tuple[Source, ...] = ()
    rules: range = range(0)  # the numbers of those in it
    foreign: frozenset[str] = frozenset()  # queues whose properties are computed elsewhere
    libraries: tuple[tuple[str, Source], ...] = ()  # imported modules, by their addresses
    users: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by the name of a variable, rules that use it

    def place(self, line: int, column: int, module: str = "") -> Position | None:
        """The place in a file for a position in the query or a library module; None for generated text."""
        sources = [source for address, source in self.libraries if address == module] or self.sources
        origin = next((source for source in sources if source.holds(line)), None)
        return None if origin is None else origin.place(line, column)


@dataclass(frozen=True)
class Target:
    """What is computed for a message before it enters a queue."""

    queue: str
    properties: tuple[PlannedProperty, ...] = ()
    slicings: tuple[tuple[str, str], ...] = ()  # slicing and its property
    indexes: tuple[str, ...] = ()
    schema: str | None = None
    echo: bool = False
    connection: bool = False  # every message from outside begins a conversation
    entry_queries: tuple[Query, ...] = ()  # work out properties and index entries for messages from outside

    @cached_property
    def plain(self) -> bool:
        """Whether a message may enter without computation."""
        return not (self.properties or self.slicings or self.indexes or self.schema or self.echo or self.connection)


class Template(NamedTuple):
    """A message that a rule enqueues, except for its body, if the rest is known before the run."""

    rule: int  # its number among those of the queue
    queue: str
    properties: tuple[tuple[str, str | None, str], ...] = ()  # name, kind, value
    at: int = 0  # where it stands in the rule's body


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """All rules for the messages of one queue, as queries."""

    queue: str
    priority: int
    queries: tuple[Query, ...]
    rules: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()
    properties: tuple[str, ...] = ()  # shown to the query
    system: tuple[str, ...] = ()  # shown to the query
    inherited: tuple[str, ...] = ()  # of these the query must know whether the message has them
    slicings: tuple[tuple[str, str], ...] = ()  # with rules for this queue: each with its property
    templates: tuple[Template, ...] = ()  # by the number that the query answers with
    bodies: tuple[tuple[str, Expression], ...] = ()  # of the rules: each with its file

    def place(self, rule: int, at: int = 0) -> str:
        """A place in the body of a rule, by its number."""
        file, body = self.bodies[rule]
        return str(body.place(file, at))

    def query_of(self, rule: int) -> Query:
        """The query of a rule, by its number."""
        return next(query for query in self.queries if rule in query.rules)

    @property
    def bare(self) -> bool:
        """Whether the rules read only the message itself."""
        return not (self.reads or self.properties or self.system or self.inherited or self.slicings)


class Absence(NamedTuple):
    """A rule that fires when an expected message has not arrived."""

    waiting: str  # the queue in which messages wait
    slicing: str | None  # of which it is a rule


@dataclass(frozen=True)
class Plan:
    """The compiled program at one version of the definitions."""

    version: int
    mark: str  # a random word in the tags of results: nothing that a message says can be taken for one
    queues: Mapping[str, QueuePlan] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    collections: Mapping[str, str] = field(default_factory=dict)  # variable of the query → its documents
    types: Mapping[str, MessageType] = field(default_factory=dict)
    error_queues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # "queue" or "queue rule" → levels
    echoes: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()  # every queue of the room
    absences: Mapping[str, Absence] = field(default_factory=dict)  # by the queue of what is due

    def target(self, queue: str) -> Target:
        return self.targets.get(queue) or Target(queue)

    def errors_of(self, queue: str, rule: str | None) -> tuple[str, ...]:
        return self.error_queues.get(f"{queue} {rule}") or self.error_queues[queue]


def free_of(plan: Plan) -> frozenset[str]:
    """The queues whose rules read no other messages and reset no slice."""
    return frozenset(
        name
        for name, queue in plan.queues.items()
        if not queue.reads and not any('qs:reset("' in query.text for query in queue.queries)
    )
