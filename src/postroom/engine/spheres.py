"""Messages that belong to a sphere, wherever they are made: what follows from one belongs to the same sphere.

A rule may say what undoes a message that it sends. The two are remembered in the commit of the step, as those of an
owner are; in a sphere that has failed meanwhile, the message is withdrawn in the same commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from postroom.engine.effects import Action, Effects, Enqueue
from postroom.errors import PropertyInvalid
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored
from postroom.store.queues import UNDO as UNDO_KIND
from postroom.store.queues import Keep, Queue
from postroom.store.spheres import ABORTED, ABORTING, ACTIVE, COMMITTING, MACHINE, UNDO, Send
from postroom.store.transaction import Transaction

#: The agreed properties of messages that belong to a sphere.
SPHERE, RECIPIENT, COMPENSATES = "sphere", "recipient", "compensates"


def sphere_of(stored: Stored) -> str | None:
    """The sphere that a message belongs to."""
    if '"sphere":' not in stored.properties:
        return None
    id = json.loads(stored.properties).get(SPHERE)
    return id if isinstance(id, str) else None


def marked(draft: Draft, said: Mapping[str, Any]) -> Draft:
    """A draft with the agreed properties, which nobody else may set."""
    own = json.loads(draft.properties)
    for name in said:
        if name in own:
            raise PropertyInvalid(name=name, why="the sphere sets it")
    return draft._replace(properties=_canonical({**own, **said}))


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
    """Put a message into COMP.Q, with whom it is for. The journal tells it, too: the message itself may disappear."""
    said: dict[str, Any] = {SPHERE: id, RECIPIENT: recipient}
    if primary is not None:
        said[COMPENSATES] = key_text(primary)
    detail = {**said, "when": when, **({} if kept_in is None else {"on_commit": kept_in})}
    undo = tx.queues.own(UNDO, UNDO_KIND, Keep.NOTHING)
    return tx.messages.put(undo, marked(draft, said), cause if primary is None else primary, detail)


class _Undo(NamedTuple):
    sphere: str
    cause: int  # the message that led to both
    place: int  # of the message that it undoes, among what its cause led to
    action: Enqueue


class Bonds:
    """What the messages of one step have to do with spheres."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._undo: list[_Undo] = []
        self._states: dict[str, str | None] = {}

    def untied(self, steps: Sequence[tuple[Stored, Effects]]) -> list[tuple[Stored, Effects]]:
        """The same without what undoes, and with the property that is inherited; spheres are locked before queues."""
        found = [(stored, self._untied(stored, made)) for stored, made in steps]
        for id in sorted({undo.sphere for undo in self._undo}):
            token = self._tx.tokens.locked(MACHINE, id)
            self._states[id] = None if token is None else token.state
        return found

    def _untied(self, stored: Stored, made: Effects) -> Effects:
        id = sphere_of(stored)
        if id is None and not any(type(action) is Enqueue and action.compensates for action in made):
            return made
        kept: list[Action] = []
        for action in made:
            if type(action) is Enqueue and action.compensates:
                if id is not None:
                    self._undo.append(_Undo(id, stored.key, len(kept) - 1, action))
            elif type(action) is Enqueue and id is not None:
                kept.append(action._replace(properties=_with_sphere(action.properties, id)))
            else:
                kept.append(action)
        return tuple(kept)

    def settle(self, steps: Sequence[tuple[Stored, Effects]], keys: Sequence[int], queues: Mapping[str, Queue]) -> None:
        """Remember what undoes the new messages, whose keys are in the order in which they were put."""
        if not self._undo:
            return
        made: dict[tuple[int, int], tuple[int, Enqueue]] = {}
        number = 0
        for stored, actions in steps:
            for place, action in enumerate(actions):
                if type(action) is Enqueue:
                    made[stored.key, place] = (keys[number], action)
                    number += 1
        for undo in self._undo:
            if (undo.cause, undo.place) in made:  # else its cause waits for a queue on hold
                key, primary = made[undo.cause, undo.place]
                self._bind(undo, key, queues[primary.queue])

    def _bind(self, undo: _Undo, key: int, queue: Queue) -> None:
        tx, state, action = self._tx, self._states[undo.sphere], undo.action
        if state in (ABORTING, ABORTED):
            stored = tx.messages.find(key)
            if stored is not None:
                tx.messages.remove(queue, stored, "withdraw")
        elif state in (ACTIVE, COMMITTING):
            draft = Draft(action.body, action.format, action.type, action.properties)
            number = tx.spheres.next_send(undo.sphere)
            memory = remember(tx, undo.sphere, draft, "now", action.queue, key)
            note = Send(undo.sphere, number, "now", queue.name, key, queue.id, memory, action.queue, None, tx.now)
            tx.spheres.remember(note)


def _with_sphere(properties: str, id: str) -> str:
    own = json.loads(properties)
    return _canonical({**own, SPHERE: own.get(SPHERE, id)})


def _canonical(properties: Mapping[str, Any]) -> str:
    return json.dumps(dict(sorted(properties.items())), ensure_ascii=False, separators=(",", ":"))
