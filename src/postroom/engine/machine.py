"""State machines: a state is a queue, an entity is a token in exactly one of them, a transition moves the token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from postroom.errors import EntityExists, EntityUnknown, QueueHeld, TransitionRefused
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.store.kernel.queues import STATE, Hold, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ABORTING, ACTIVE, COMMITTED, COMMITTING, MACHINE, STATES
from postroom.store.tables.tokens import Token


class Machine:
    """States and transitions. Entities start in the first state.

    While a state is on hold, no entity starts in it, and with ``stops`` none enters or leaves it.
    """

    def __init__(
        self, name: str, states: Sequence[str], transitions: Iterable[tuple[str, str]], *, stops: bool = True
    ) -> None:
        self.name = name
        self.states = tuple(states)
        self.transitions = frozenset(transitions)
        self._stops = stops

    def prepare(self, tx: Transaction) -> None:
        """Create the queues that are missing."""
        if not tx.queues.has_own(self.states, STATE):
            for state in self.states:
                tx.queues.own(state, STATE)

    def start(self, tx: Transaction, entity: str) -> int:
        """Create an entity in the first state; returns the key of its token."""
        self.prepare(tx)
        queue = tx.queues.named(self.states[0])
        assert queue is not None
        if not queue.accepts:
            raise _held(queue, "accept")
        detail = {"machine": self.name, "entity": entity}
        token = tx.messages.put(queue, Draft(entity, "text", None, NO_PROPERTIES), detail=detail)
        if not tx.tokens.add(self.name, entity, token):
            raise EntityExists(entity=entity, state=self.state(tx, entity))
        return token

    def locked(self, tx: Transaction, entity: str) -> Token:
        """The token of an entity, locked until this transaction ends."""
        token = tx.tokens.locked(self.name, entity)
        if token is None:
            raise EntityUnknown(entity=entity, states=", ".join(self.states))
        return token

    def state(self, tx: Transaction, entity: str) -> str:
        state = tx.tokens.state(self.name, entity)
        if state is None:
            raise EntityUnknown(entity=entity, states=", ".join(self.states))
        return state

    def move(
        self,
        tx: Transaction,
        token: Token,
        goal: str,
        reason: str | None = None,
        *,
        queues: Mapping[str, Queue] | None = None,
    ) -> None:
        """Move an entity, whose token is locked, to another state. ``queues`` are those that the caller has locked, if
        more than the two states."""
        state = token.state
        if (state, goal) not in self.transitions:
            raise TransitionRefused(entity=token.entity, state=state, goal=goal)
        known = tx.queues.locked_all((state, goal)) if queues is None else queues
        source, target = known[state], known[goal]
        if self._stops:
            if not target.accepts:
                raise _held(target, "accept")
            if not source.releases:
                raise _held(source, "release")
        stored = tx.messages.find(token.message)
        assert stored is not None, "a state has found it"
        tx.messages.move(stored, source, target, detail={"reason": reason} if reason else None)


def _held(queue: Queue, verb: str) -> QueueHeld:
    return QueueHeld(queue=queue.name, hold=Hold(queue.hold).label, verb=verb, level=queue.name)


SPHERES = Machine(
    MACHINE,
    STATES,
    [(ACTIVE, COMMITTING), (ACTIVE, ABORTING), (COMMITTING, COMMITTED), (COMMITTING, ABORTING), (ABORTING, ABORTED)],
    stops=False,  # an end that was begun comes to its end; whoever wants no new spheres holds ACTIVE
)
