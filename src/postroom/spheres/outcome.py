"""How a sphere ends. Each function is a part of one transaction; the token tells who came first.

What a sphere has sent is undone in the reverse order. A primary that nobody has taken disappears together with its
compensation; one that was taken is compensated. What waits for the commit goes to its queue in the commit itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postroom.engine.spheres import RETURN, unmarked
from postroom.engine.step import in_use
from postroom.errors import PostroomError, SphereOver, SphereUnknown, StoreError
from postroom.limits import REASON_CHARS_MAX
from postroom.model.message import Draft, Stored
from postroom.spheres.conditions import fulfilled
from postroom.spheres.entrance import Entrance
from postroom.spheres.machine import Machine
from postroom.store.queues import Queue
from postroom.store.spheres import ABORTED, ABORTING, ACTIVE, COMMITTED, COMMITTING, MACHINE, STATES, UNDO_QUEUE, Send
from postroom.store.tokens import Token
from postroom.store.transaction import Transaction

SPHERES = Machine(
    MACHINE,
    STATES,
    [(ACTIVE, COMMITTING), (ACTIVE, ABORTING), (COMMITTING, COMMITTED), (COMMITTING, ABORTING), (ABORTING, ABORTED)],
    stops=False,  # an end that was begun comes to its end; whoever wants no new spheres holds ACTIVE
)


def locked(tx: Transaction, id: str) -> Token:
    """The token of a sphere, which nobody else moves before this transaction ends."""
    token = tx.tokens.locked(MACHINE, id)
    if token is None:
        raise SphereUnknown(sphere=id)
    return token


def require_state(tx: Transaction, id: str, *states: str) -> Token:
    """Refuse a late owner: its sphere may have been ended by others. It stays as it is until the transaction ends."""
    token = locked(tx, id)
    _refuse_other(tx, id, token.state, states)
    return token


def check_state(tx: Transaction, id: str, *states: str) -> None:
    """The same for one who only looks."""
    _refuse_other(tx, id, SPHERES.state(tx, id), states)


def _refuse_other(tx: Transaction, id: str, state: str, states: Sequence[str]) -> None:
    if state not in states:
        kept = tx.spheres.find(id)
        why = f" ({kept.reason})" if kept is not None and kept.reason else ""
        raise SphereOver(sphere=id, state=state, reason=why)


def begin_commit(tx: Transaction, id: str, ends: int, branches: list[str]) -> bool:
    """From now on nothing is added; ``branches`` are what databases call their share. False if others must wait."""
    token = require_state(tx, id, ACTIVE)
    tx.spheres.commit_by(id, ends)
    if branches:
        tx.spheres.add_branches(id, branches)
    SPHERES.move(tx, token, COMMITTING)
    return fulfilled(tx, id)


def begin_abort(tx: Transaction, id: str, reason: str) -> str:
    """Decide that a sphere fails, unless its end is decided; answers with the state that it was in."""
    token = locked(tx, id)
    if token.state in (ACTIVE, COMMITTING):
        said = reason[:REASON_CHARS_MAX]
        SPHERES.move(tx, token, ABORTING, said)
        tx.spheres.set_reason(id, said)
        tx.wake()
    return token.state


def compensate(tx: Transaction, id: str, entrance: Entrance) -> bool:
    """Undo all that can be undone now; a sphere is aborted when nothing is left. False if something is."""
    token = locked(tx, id)
    if token.state != ABORTING:
        return True
    sends = tx.spheres.open_sends(id)
    queues = _locked(tx, sends, ABORTING, ABORTED)
    if any(name in queues and not queues[name].releases for name in (ABORTING, UNDO_QUEUE)):
        return False  # an operator wants nothing to be undone now
    keys = [key for send in sends for key in (send.message, send.remembered) if key is not None]
    messages = tx.messages.find_many(keys)
    left = [send for send in sends if not _undone(tx, send, messages, queues, entrance)]
    if not left:
        SPHERES.move(tx, token, ABORTED, queues=queues)
    return not left


def conclude(tx: Transaction, id: str, entrance: Entrance) -> bool:
    """The point of no return: what waited for the commit is sent, what was for the other case is dropped.

    False, and nothing happens, if someone has joined who is not done.
    """
    token = require_state(tx, id, COMMITTING)
    if not fulfilled(tx, id):
        return False
    sends = tx.spheres.open_sends(id)
    queues = _locked(tx, sends, COMMITTING, COMMITTED)
    messages = tx.messages.find_many([send.remembered for send in sends if send.remembered is not None])
    for send in reversed(sends):
        stored = None if send.remembered is None else messages.get(send.remembered)
        if send.moment == "commit":
            _forward(tx, stored, send.target, queues, entrance)
            tx.spheres.settle(send, "delivered")
        elif stored is None:
            tx.spheres.settle(send, "stands")
        elif send.kept is not None:
            _forward(tx, stored, send.kept, queues, entrance)
            tx.spheres.settle(send, "kept")
        else:
            tx.messages.remove(queues[UNDO_QUEUE], stored, "discard")
            tx.spheres.settle(send, "discarded")
    SPHERES.move(tx, token, COMMITTED, queues=queues)
    return True


def _locked(tx: Transaction, sends: list[Send], *states: str) -> dict[str, Queue]:
    """Every queue that may be touched."""
    names = {name for send in sends for name in (send.recipient, send.target, send.kept) if name is not None}
    return tx.queues.locked_all({*names, UNDO_QUEUE, *states})


def _undone(
    tx: Transaction, send: Send, messages: Mapping[int, Stored], queues: dict[str, Queue], entrance: Entrance
) -> bool:
    """Undo one send; False if its compensation must wait."""
    stored = None if send.remembered is None else messages.get(send.remembered)
    if send.moment == "commit" or (send.moment == "now" and not _taken(tx, send, messages, queues, entrance)):
        outcome = "withdrawn"
    elif stored is None:
        outcome = "stands"
    else:
        return _delivered(tx, send, stored, queues, entrance)
    if stored is not None:
        tx.messages.remove(queues[UNDO_QUEUE], stored, "withdraw")
    tx.spheres.settle(send, outcome)
    return True


def _taken(
    tx: Transaction, send: Send, messages: Mapping[int, Stored], queues: dict[str, Queue], entrance: Entrance
) -> bool:
    """Whether the recipient has a primary, or a part of it; if not, it has disappeared by now."""
    assert send.message is not None
    stored = messages.get(send.message)
    if stored is None or stored.processed is not None:
        return True
    queue = queues.get(stored.queue)
    if queue is None or queue.id != send.queue or not tx.journal.is_first(stored.position):
        return True  # it has gone on, and may have come back
    if queue.lock_message == stored.key and in_use(tx, queue):
        return True  # someone reads it by segments
    if stored.sound:  # a damaged one is never delivered, and kept for those who look for the reason
        entrance.withdraw(tx, queue, stored)
    return False


def _delivered(tx: Transaction, send: Send, stored: Stored, queues: dict[str, Queue], entrance: Entrance) -> bool:
    try:
        if not stored.sound:
            tx.spheres.settle(send, None, "the compensation is damaged")
            return False
        if send.moment == RETURN:
            _give_back(tx, stored, send.target, queues, entrance)
        else:
            _forward(tx, stored, send.target, queues, entrance)
    except StoreError:
        raise
    except PostroomError as refusal:  # it waits where it is, and is tried again
        tx.spheres.settle(send, None, str(refusal))
        return False
    tx.spheres.settle(send, {"now": "compensated", RETURN: "returned"}.get(send.moment, "delivered"))
    return True


def _give_back(tx: Transaction, stored: Stored, name: str | None, queues: dict[str, Queue], entrance: Entrance) -> None:
    """A message that was received in a sphere is in its queue again, as one that never belonged to it."""
    assert name is not None, "it was received from somewhere"
    entrance.put(tx, entrance.reach(tx, name), unmarked(_said(stored)), stored.cause)
    tx.messages.remove(queues[UNDO_QUEUE], stored, "deliver")


def _forward(
    tx: Transaction, stored: Stored | None, name: str | None, queues: dict[str, Queue], entrance: Entrance
) -> None:
    """A remembered message goes to its queue. Where messages are worked on, it is a new one made of the old."""
    assert stored is not None, "only we take messages from COMP.Q"
    assert name is not None, "and we know what they are for"
    undo, target = queues[UNDO_QUEUE], entrance.reach(tx, name)
    if entrance.works_on(target):
        entrance.put(tx, target, _said(stored), stored.key)
        tx.messages.remove(undo, stored, "deliver")
    else:
        tx.messages.move(stored, undo, target)


def _said(stored: Stored) -> Draft:
    return Draft(stored.body, stored.format, stored.type, stored.properties)
