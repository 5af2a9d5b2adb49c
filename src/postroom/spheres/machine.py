"""Recoverable state machines: a state is a queue, an entity is a token in exactly one of them.

A transition is one transaction that moves the token. So the state of every entity survives whatever crashes, and the
set of entities in a state is what its queue holds.

>>> import postroom, tempfile, os
>>> with tempfile.TemporaryDirectory() as folder, postroom.open(os.path.join(folder, "room.db")) as room:
...     orders = room.spheres.machine(["NEW", "PAID", "SHIPPED"], [("NEW", "PAID"), ("PAID", "SHIPPED")])
...     orders.start("order-17")
...     orders.move("order-17", "PAID")
...     orders.state("order-17"), orders.entities("NEW")
'NEW'
('PAID', [])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from postroom.engine.machine import Machine
from postroom.errors import ArgumentInvalid
from postroom.limits import QUEUE_NAME_CHARS_MAX, REASON_CHARS_MAX, SPHERE_ID_CHARS_MAX, STATES_MAX
from postroom.model.arguments import check_methods
from postroom.model.body import is_text, storable
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


@check_methods
class MachineHandle:
    """A state machine of a room: each call is one transaction."""

    def __init__(self, store: Store, machine: Machine) -> None:
        self._store = store
        self._machine = machine
        store.transact("machine", machine.prepare)

    def start(self, entity: str) -> None:
        """Create an entity in the first state."""
        check_id("entity", entity)
        self._store.transact("machine", lambda tx: self._machine.start(tx, entity))

    def move(self, entity: str, state: str, reason: str | None = None) -> str:
        """Move an entity to another state; raises without such a transition; returns the previous state."""
        check_id("entity", entity)
        if reason is not None:
            check_reason(reason)

        def work(tx: Transaction) -> str:
            token = self._machine.locked(tx, entity)
            self._machine.move(tx, token, state, reason)
            return token.state

        return self._store.transact("machine", work)

    def state(self, entity: str) -> str:
        """The state that an entity is in."""
        check_id("entity", entity)
        return self._store.read(lambda tx: self._machine.state(tx, entity))

    def entities(self, state: str) -> list[str]:
        """The entities in a state, in the order of their arrival."""
        if state not in self._machine.states:
            raise ArgumentInvalid(argument="state", why=f"{state!r} is none of {', '.join(self._machine.states)}")
        return self._store.read(lambda tx: [entity.name for entity in tx.tokens.every(self._machine.name, state)])


def made(states: Sequence[str], transitions: Iterable[tuple[str, str]]) -> Machine:
    """A checked machine. Its name is that of its first state, whose queue belongs only to it."""
    if isinstance(states, str) or not isinstance(states, Iterable) or not isinstance(transitions, Iterable):
        raise ArgumentInvalid(argument="machine", why="give a list of states and one of pairs of them")
    named, arcs = tuple(states), tuple(transitions)
    for state in named:
        if not isinstance(state, str) or not state or not state.isprintable() or state != state.strip():
            raise ArgumentInvalid(argument="states", why=f"{state!r} is not a name")
        if len(state) > QUEUE_NAME_CHARS_MAX or "/" in state or " " in state:
            raise ArgumentInvalid(argument="states", why=f"{state!r} is not the name of a queue")
    if not 1 <= len(named) <= STATES_MAX or len(set(named)) != len(named):
        raise ArgumentInvalid(argument="states", why=f"give 1 to {STATES_MAX} different names")
    for arc in arcs:
        if not isinstance(arc, tuple) or len(arc) != 2 or not all(end in named for end in arc):
            raise ArgumentInvalid(argument="transitions", why=f"{arc!r} is not a pair of the states")
    return Machine(f"machine {named[0]}", named, arcs)


def check_id(argument: str, id: str) -> None:
    if not isinstance(id, str) or not 0 < len(id) <= SPHERE_ID_CHARS_MAX or not id.isprintable() or id != id.strip():
        raise ArgumentInvalid(
            argument=argument, why=f"1 to {SPHERE_ID_CHARS_MAX} printable characters, no blanks around"
        )
    if id in (".", ".."):
        raise ArgumentInvalid(argument=argument, why="'.' and '..' mean other places in the address of a page")


def check_reason(reason: str) -> None:
    if not isinstance(reason, str) or len(reason) > REASON_CHARS_MAX or not is_text(reason):
        raise ArgumentInvalid(argument="reason", why=f"text of at most {REASON_CHARS_MAX} characters")


def reason_of(error: BaseException) -> str:
    """The reason in an exception."""
    return clean(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def clean(reason: str) -> str:
    """A reason as text that can be stored."""
    return storable(reason[:REASON_CHARS_MAX])
