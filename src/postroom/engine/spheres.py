"""Messages of a sphere (a transaction): what is made from one belongs to the same sphere.

What rules, arcs, counters and procedures make of such a message is recorded with the step's commit, like the sends of
the owner. If the sphere has failed meanwhile, it is withdrawn in the same commit. A rule may say what undoes a message
that it sends, and may vote against the sphere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from postroom.engine.machine import SPHERES
from postroom.engine.steps.effects import Action, Effects, Enqueue
from postroom.errors import PropertyInvalid
from postroom.limits import REASON_CHARS_MAX
from postroom.model.key import key_text
from postroom.model.message import IN_SPHERE, SPHERE, Draft, Stored, properties_text
from postroom.store.kernel.queues import UNDO, Keep, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ABORTING, ACTIVE, COMMITTED, COMMITTING, MACHINE, UNDO_QUEUE, Send
from postroom.store.tables.tokens import Token

#: The agreed properties of messages that belong to a sphere.
RECIPIENT, COMPENSATES = "recipient", "compensates"
RETURN = "return"  # when a message that was received in a sphere is given back: if it fails

#: Lets a message disappear from its queue.
Withdraw = Callable[[Transaction, Queue, Stored], None]


def sphere_of(stored: Stored) -> str | None:
    """The sphere of a message, if any."""
    if IN_SPHERE not in stored.properties:
        return None
    id = json.loads(stored.properties).get(SPHERE)
    return id if isinstance(id, str) else None


def marked(draft: Draft, agreed: Mapping[str, Any]) -> Draft:
    """A draft with the sphere's properties, which only the engine may set."""
    own = json.loads(draft.properties)
    for name in agreed:
        if name in own:
            raise PropertyInvalid(name=name, why="the sphere sets it")
    return draft._replace(properties=properties_text({**own, **agreed}))


def unmarked(draft: Draft) -> Draft:
    """The message's content without those properties."""
    own = json.loads(draft.properties)
    rest = {name: value for name, value in own.items() if name not in (SPHERE, RECIPIENT, COMPENSATES)}
    return draft._replace(properties=properties_text(rest))


def remember(
    tx: Transaction,
    id: str,
    draft: Draft,
    when: str,
    recipient: str,
    primary: int | None = None,
    kept_in: str | None = None,
    cause: int | None = None,
) -> int:
    """Put a message into COMP.Q with its recipient. The journal records it, too, because the message may be removed."""
    agreed: dict[str, Any] = {SPHERE: id, RECIPIENT: recipient}
    if primary is not None:
        agreed[COMPENSATES] = key_text(primary)
    detail = {**agreed, "when": when, **({} if kept_in is None else {"on_commit": kept_in})}
    undo = tx.queues.own(UNDO_QUEUE, UNDO, Keep.NOTHING)
    return tx.messages.put(undo, marked(draft, agreed), cause if primary is None else primary, detail)


def fail(tx: Transaction, token: Token, reason: str, queues: Mapping[str, Queue] | None = None) -> bool:
    """Mark a sphere, whose token is locked, as failed unless it is decided; undoing follows. Returns whether it did."""
    if token.state not in (ACTIVE, COMMITTING):
        return False
    text = reason[:REASON_CHARS_MAX]
    SPHERES.move(tx, token, ABORTING, text, queues=queues)
    tx.spheres.set_reason(token.entity, text)
    tx.wake()
    return True


def bound_to(tx: Transaction, stored: Stored) -> str | None:
    """The sphere that undoes what is made of a message; None for messages that a sphere sent after it was decided."""
    id = sphere_of(stored)
    if id is None or RECIPIENT in json.loads(stored.properties):
        return None
    origin = tx.spheres.origin(stored.key)
    return None if origin is not None and origin.message != stored.key else id


class Made(NamedTuple):
    """A message that the engine made of a message of a sphere."""

    sphere: str
    key: int
    queue: Queue
    maker: str  # as the journal calls it
    undo: Enqueue | None = None  # what undoes it


class Fates:
    """The spheres of the messages of an engine step, locked.

    New messages share their outcome. Spheres are locked before queues, so create this before you lock any queue.
    """

    def __init__(self, tx: Transaction, spheres: Iterable[str]) -> None:
        self._tx = tx
        self._tokens = {id: tx.tokens.locked(MACHINE, id) for id in sorted(set(spheres))}

    def __contains__(self, sphere: str) -> bool:
        return sphere in self._tokens

    def bind(self, made: Sequence[Made], withdraw: Withdraw) -> None:
        """Record new messages; in a failed sphere, withdraw them."""
        by_sphere: dict[str, list[Made]] = {}
        for message in made:
            by_sphere.setdefault(message.sphere, []).append(message)
        for id, some in by_sphere.items():
            token = self._tokens[id]
            if token is None or token.state == COMMITTED:  # of another room, or as good as any other message
                continue
            if token.state in (ACTIVE, COMMITTING):
                first = self._tx.spheres.next_send(id, len(some))
                self._tx.spheres.remember(*(self._send(first + place, message) for place, message in enumerate(some)))
                continue
            for message in some:
                stored = self._tx.messages.find(message.key)
                if stored is not None and stored.processed is None:
                    withdraw(self._tx, message.queue, stored)

    def _send(self, number: int, made: Made) -> Send:
        tx, undo = self._tx, made.undo
        send = Send(made.sphere, number, "now", made.queue.name, made.key, made.queue.id, None, None, None, tx.now)
        if undo is not None:
            draft = Draft(undo.body, undo.format, undo.type, undo.properties)
            memory = remember(tx, made.sphere, draft, "now", undo.queue, made.key)
            send = send._replace(remembered=memory, target=undo.queue)
        return send._replace(maker=made.maker)

    def vote(self, sphere: str, reason: str, queues: Mapping[str, Queue] | None = None) -> None:
        """Vote against a sphere, as the engine."""
        token = self._tokens[sphere]
        if token is not None:
            fail(self._tx, token, reason, queues)
            self._tokens[sphere] = self._tx.tokens.locked(MACHINE, sphere)


def withdraw(tx: Transaction, queue: int, stored: Stored) -> bool:
    """Withdraw a message that returns to a failed sphere, like everything else that it sent; False if its sphere has
    not failed."""
    back = tx.messages.find(stored.key) if is_undone(tx, stored) else None
    if back is None:
        return False
    tx.messages.remove(tx.queues.locked(queue), back, "withdraw")
    return True


def is_undone(tx: Transaction, stored: Stored) -> bool:
    """Whether the sphere that sent a message has failed and done with it: it is withdrawn when it returns."""
    send = tx.spheres.sent(stored.key) if IN_SPHERE in stored.properties else None
    sphere = None if send is None or send.outcome is None else tx.spheres.find(send.sphere)
    return sphere is not None and sphere.state in (ABORTING, ABORTED)


def plainly(tx: Transaction, queue: Queue, stored: Stored) -> None:
    """Remove an unread message, without compensation."""
    tx.messages.remove(queue, stored, "withdraw")


class Bonds:
    """What the messages of a step have to do with spheres."""

    def __init__(self, tx: Transaction, agent: str) -> None:
        self._tx = tx
        self._agent = agent
        self._spheres: dict[int, str] = {}  # by the key of the message that led to something
        self._undo: dict[tuple[int, int], Enqueue] = {}  # by the cause, and the place of what it undoes
        self._votes: list[tuple[str, str]] = []
        self._fates = Fates(tx, ())

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of sphere states that the step will touch."""
        return (ACTIVE, COMMITTING, ABORTING) if self._votes else ()

    def untied(self, steps: Sequence[tuple[Stored, Effects]]) -> list[tuple[Stored, Effects]]:
        """The steps without compensations and votes, and with the inherited property."""
        settled = [step if _is_plain(*step) else (step[0], self._untied(*step)) for step in steps]
        self._fates = Fates(self._tx, self._spheres.values())
        return settled

    def _untied(self, stored: Stored, made: Effects) -> Effects:
        id = bound_to(self._tx, stored) if made and IN_SPHERE in stored.properties else None
        if id is not None:
            self._spheres[stored.key] = id
        kept: list[Action] = []
        for action in made:
            if type(action) is not Enqueue:
                kept.append(action)
            elif action.compensates:
                if id is not None:
                    self._undo[stored.key, len(kept) - 1] = action
            elif action.queue == ABORTING:
                if id is not None:
                    self._votes.append((id, action.body))
            elif id is not None:
                kept.append(action._replace(properties=_with_sphere(action.properties, id)))
            else:
                kept.append(action)
        return tuple(kept)

    def settle(self, steps: Sequence[tuple[Stored, Effects]], keys: Sequence[int], queues: Mapping[str, Queue]) -> None:
        """Record new messages, whose keys are in put order, with their compensations; then vote."""
        if not self._spheres:
            return
        made: list[Made] = []
        number = 0
        for stored, actions in steps:
            id = self._spheres.get(stored.key)
            for place, action in enumerate(actions):
                if type(action) is not Enqueue:
                    continue
                if id is not None and not action.failed and not action.passed:
                    undo = self._undo.get((stored.key, place))
                    made.append(Made(id, keys[number], queues[action.queue], f"{self._agent} {action.rule}", undo))
                number += 1
        self._fates.bind(made, plainly)
        for id, reason in self._votes:
            self._fates.vote(id, reason, queues)


def _is_plain(stored: Stored, made: Effects) -> bool:
    """Whether a message and its effects involve no sphere. Most involve none, so this must be cheap."""
    if IN_SPHERE in stored.properties:
        return False
    # What undoes another, or a vote.
    return not [effect for effect in made if type(effect) is Enqueue and (effect[11] or effect[1] == ABORTING)]


def _with_sphere(properties: str, id: str) -> str:
    return properties_text({**json.loads(properties), SPHERE: id})
