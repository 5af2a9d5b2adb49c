"""What a rule body is made of: its actions, calls, bindings and missing branches, all as offsets into the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

ELSE = " else ()"
#: The end of a rename: the name of a node is made of a text as a constructor makes it, where that would stand.
NAMED = ")) ! [node-name(element {.} {}), node-name(attribute {.} {''})])"


class Span(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class With:
    """``with P value E``; ``keyword`` is all of it but E."""

    name: str
    offset: int
    keyword: Span
    value: Span


@dataclass(frozen=True, slots=True)
class Compensate:
    """``compensate with E into Q``; ``keyword`` is its first two words, ``into`` its last two."""

    keyword: Span
    value: Span
    into: Span
    queue: str
    offset: int


@dataclass(frozen=True, slots=True)
class Enqueue:
    """``do enqueue E into Q`` and what follows; ``keyword`` is ``do enqueue``, ``into`` is ``into Q``."""

    span: Span
    keyword: Span
    value: Span
    into: Span
    queue: str
    offset: int
    properties: tuple[With, ...]
    compensation: Compensate | None = None

    @property
    def sent(self) -> tuple[Enqueue | Compensate, ...]:
        """Whatever goes into a queue."""
        return (self,) if self.compensation is None else (self, self.compensation)


@dataclass(frozen=True, slots=True)
class Reset:
    """``do reset`` or ``do reset S key E``; ``keyword`` is all of it but E, ``offset`` that of S if there is one."""

    span: Span
    keyword: Span
    slicing: str | None
    offset: int
    key: Span | None


@dataclass(frozen=True, slots=True)
class Call:
    """``name(…)``, ``… => name(…)`` or ``name#1``. A literal is None where an argument is not one string literal.

    The arguments of an arrow call are those in its parentheses: what is before the arrow comes first, and is not here.
    """

    name: str
    start: int
    end: int
    arguments: tuple[Span, ...]
    literals: tuple[str | None, ...]
    reference: bool = False
    arrow: bool = False
    opening: int = 0  # behind its parenthesis, or behind the name of a reference
    arity: int = 0  # of a reference


@dataclass(frozen=True, slots=True)
class Binding:
    """``let $v := E`` or ``for $v in E``: where E is, where $v can be seen, and where it is used.

    What is ``outer`` has the message itself as its context. A variable that is ``regrouped`` means something else
    behind a ``group by``: what is told of it here is not all.
    """

    kind: str
    name: str
    value: Span
    scope: Span
    uses: tuple[Span, ...]
    outer: bool = True
    regrouped: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """``delete node T`` and its kind: ``keyword`` and ``middle`` are its words."""

    kind: str  # delete, replace, value, rename, or where something is inserted: into, first, last, before, after
    keyword: Span
    middle: Span | None = None


@dataclass(frozen=True, slots=True)
class Transform:
    """``copy $v := E modify U return R``: where its words stand, its variables, and their values."""

    keyword: Span
    variables: tuple[tuple[str, Span], ...]
    modify: Span
    returns: Span


@dataclass(frozen=True, slots=True)
class Body:
    """``comma`` is the first comma outside everything: it ends the ``if`` before it, which users seldom mean.

    ``lists`` are branches of several actions without parentheses. ``closings`` is what must be put in at the end of
    expressions, the innermost first: a missing ``else``, the parentheses of a list, of a copy and of an update.
    ``values`` are results that are neither an action nor ``()``. ``constructors`` are the outermost direct ones.
    """

    conditional: bool
    updating: bool
    enqueues: tuple[Enqueue, ...]
    resets: tuple[Reset, ...]
    missing_else: tuple[int, ...]
    lists: tuple[Span, ...]
    closings: tuple[tuple[int, str], ...]
    calls: tuple[Call, ...]
    bindings: tuple[Binding, ...]
    values: tuple[Span, ...]
    comma: int | None
    constructors: tuple[Span, ...] = ()
    transforms: tuple[Transform, ...] = ()
    updates: tuple[Update, ...] = ()
    otherwise: bool = False  # the whole is an if with an else

    def binding_of(self, use: Span) -> Binding | None:
        """What a variable means where it is used, if that is one let or for clause and nothing else."""
        owner = next((binding for binding in self.bindings if use in binding.uses), None)
        return None if owner is None or owner.regrouped else owner
