"""The structure of a rule body: actions, calls, bindings and missing branches, as offsets into the text."""

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
    """``with P value E``; ``keyword`` is the part before E."""

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
        """All parts that go into a queue."""
        return (self,) if self.compensation is None else (self, self.compensation)


@dataclass(frozen=True, slots=True)
class Reset:
    """``do reset`` or ``do reset S key E``; ``keyword`` is the part before E, ``offset`` that of S if there is one."""

    span: Span
    keyword: Span
    slicing: str | None
    offset: int
    key: Span | None


@dataclass(frozen=True, slots=True)
class Call:
    """``name(…)``, ``… => name(…)`` or ``name#1``. A literal is None if an argument is not one string literal.

    The arguments of an arrow call do not include the one before the arrow.
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
    """``let $v := E`` or ``for $v in E``: the span of E, the scope of $v, and its uses.

    ``outer`` bindings have the message itself as context. A ``regrouped`` variable is rebound by a ``group by``, so
    this is not complete.
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
    """``delete node T`` and its kind; ``keyword`` and ``middle`` are its keywords."""

    kind: str  # delete, replace, value, rename, or where something is inserted: into, first, last, before, after
    keyword: Span
    middle: Span | None = None


@dataclass(frozen=True, slots=True)
class Transform:
    """``copy $v := E modify U return R``: its keywords, variables and values."""

    keyword: Span
    variables: tuple[tuple[str, Span], ...]
    modify: Span
    returns: Span


@dataclass(frozen=True, slots=True)
class Body:
    """``comma`` is the first comma at the top level: it ends the ``if`` before it, which is rarely meant.

    ``lists`` are branches of several actions without parentheses. ``closings`` are insertions at the end of
    expressions, innermost first: a missing ``else``, and closing parentheses of lists, copies and updates. ``values``
    are results that are neither an action nor ``()``. ``constructors`` are the outermost direct ones.
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
        """The binding of a variable's use; None unless it is exactly one let or for clause."""
        owner = next((binding for binding in self.bindings if use in binding.uses), None)
        return None if owner is None or owner.regrouped else owner
