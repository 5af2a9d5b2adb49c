"""How a sphere ends. Each function runs within one transaction; the state of the token decides between concurrent
calls.

Sends are undone in the reverse order. An unread message is withdrawn with its compensation; one that
was received is compensated. Messages that waited for the commit are sent in the commit itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from postroom.engine.machine import SPHERES
from postroom.engine.spheres import RETURN, fail, unmarked
from postroom.errors import PostroomError, SphereOver, SphereUnknown, StoreError
from postroom.model.message import Draft, Stored
from postroom.spheres.access import QueueAccess
from postroom.spheres.conditions import fulfilled
from postroom.spheres.participants import Share
from postroom.spheres.remains import name_remains
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import SYSTEM_ERRORS, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar
from postroom.store.tables.spheres import (
    ABORTED,
    ABORTING,
    ACTIVE,
    COMMITTED,
    COMMITTING,
    MACHINE,
    NODE,
    STANDS,
    UNDO_QUEUE,
    WITHDRAWN,
    Send,
)
from postroom.store.tables.tokens import Token

#: By node: what was made there in a sphere, or why the node cannot say it now.
Afar = Mapping[str, Sequence[MadeAfar] | str]


def locked(tx: Transaction, id: str) -> Token:
    """The token of a sphere, locked until this transaction ends."""
    token = tx.tokens.locked(MACHINE, id)
    if token is None:
        raise SphereUnknown(sphere=id)
    return token


def require_state(tx: Transaction, id: str, *states: str) -> Token:
    """Raise unless the sphere is in one of these states: others may have ended it.

    Locks it until the transaction ends.
    """
    token = locked(tx, id)
    _refuse_other(tx, id, token.state, states)
    return token


def check_state(tx: Transaction, id: str, *states: str) -> None:
    """Like ``require_state``, without a lock."""
    _refuse_other(tx, id, SPHERES.state(tx, id), states)


def _refuse_other(tx: Transaction, id: str, state: str, states: Sequence[str]) -> None:
    if state not in states:
        kept = tx.spheres.find(id)
        why = f" ({kept.reason})" if kept is not None and kept.reason else ""
        raise SphereOver(sphere=id, state=state, reason=why)


def begin_commit(tx: Transaction, id: str, ends: int, shares: Sequence[Share]) -> bool:
    """Begin the commit: nothing can be added from now on; ``shares`` are branches of databases.

    False if others must finish first.
    """
    token = require_state(tx, id, ACTIVE)
    tx.spheres.commit_by(id, ends)
    if shares:
        tx.spheres.add_branches(id, shares)
    SPHERES.move(tx, token, COMMITTING)
    return fulfilled(tx, id)


def commit_at_once(tx: Transaction, id: str, ends: int, access: QueueAccess) -> bool:
    """The whole commit; False, and nothing happens, if others must wait."""
    require_state(tx, id, ACTIVE)
    return fulfilled(tx, id) and begin_commit(tx, id, ends, ()) and conclude(tx, id, access)


def begin_abort(tx: Transaction, id: str, reason: str) -> str:
    """Decide that a sphere fails, unless it is decided; returns its previous state."""
    token = locked(tx, id)
    fail(tx, token, reason)
    return token.state


def abort_at_once(tx: Transaction, id: str, reason: str, access: QueueAccess) -> tuple[str, bool]:
    """The same, and what can be undone now is undone; False if something is left or has to be asked at other nodes."""
    state = begin_abort(tx, id, reason)
    return state, not tx.spheres.nodes(id) and _compensated(tx, id, access, {}) is not False


def undo(store: Store, id: str, access: QueueAccess, actor: str | None = None) -> bool | None:
    """Undo all that can be undone now, at other nodes first; False if something is left, None if there was nothing to
    undo."""

    def look(tx: Transaction) -> list[str]:
        held = [queue for name in (ABORTING, UNDO_QUEUE) if (queue := tx.queues.named_to_read(name)) is not None]
        failing = tx.tokens.state(MACHINE, id) == ABORTING
        return tx.spheres.nodes(id) if failing and all(queue.releases for queue in held) else []

    afar = {node: access.recall(id, node) for node in store.read(look)}
    with store.acting(actor) if actor else nullcontext():
        return store.transact("compensate", lambda tx: _compensated(tx, id, access, afar))


def _compensated(tx: Transaction, id: str, access: QueueAccess, afar: Afar) -> bool | None:
    """Undo what can be undone in this store; the sphere is ABORTED when nothing is left.

    False if something is, None if it is not to be undone.
    """
    token = locked(tx, id)
    if token.state != ABORTING:
        return None
    sends = tx.spheres.open_sends(id)
    queues = _locked(tx, [*sends, *_origins(tx, sends)], ABORTING, ABORTED, SYSTEM_ERRORS)
    if any(name in queues and not queues[name].releases for name in (ABORTING, UNDO_QUEUE)):
        return False  # an operator wants nothing to be undone now
    keys = [key for send in sends for key in (send.message, send.remembered) if key is not None]
    messages = tx.messages.find_many(keys)
    abroad = [send for send in sends if send.moment == NODE]
    here = [send for send in sends if send.moment != NODE]
    left = [send for send in abroad if not _recalled(tx, send, afar.get(send.recipient))]
    left += [send for send in here if not _undone(tx, send, messages, queues, access)]
    if not left:
        SPHERES.move(tx, token, ABORTED, queues=queues)
        name_remains(tx, id, queues.get(SYSTEM_ERRORS))
    return not left


def conclude(tx: Transaction, id: str, access: QueueAccess) -> bool:
    """The point of no return: send what waited for the commit, drop what was for an abort.

    False, without changes, if a joined recipient is not done.
    """
    token = require_state(tx, id, COMMITTING)
    if not fulfilled(tx, id):
        return False
    sends = tx.spheres.open_sends(id)
    queues = _locked(tx, sends, COMMITTING, COMMITTED)
    keys = [send.message if send.remembered is None else send.remembered for send in sends]
    messages = tx.messages.find_many([key for key in keys if key is not None])
    for send in reversed(sends):
        stored = None if send.remembered is None else messages.get(send.remembered)
        if send.moment == RETURN and send.message is not None:
            reserved = messages.get(send.message)
            assert reserved is not None, "nobody else takes what is reserved"
            tx.messages.take_reserved(queues[send.recipient], reserved)
            tx.spheres.settle(send, "taken")
        elif send.moment == "commit":
            _forward(tx, stored, send.target, queues, access)
            tx.spheres.settle(send, "delivered")
        elif stored is None:
            tx.spheres.settle(send, STANDS)
        elif send.kept is not None:
            _forward(tx, stored, send.kept, queues, access)
            tx.spheres.settle(send, "kept")
        else:
            tx.messages.remove(queues[UNDO_QUEUE], stored, "discard")
            tx.spheres.settle(send, "discarded")
    SPHERES.move(tx, token, COMMITTED, queues=queues)
    return True


def _locked(tx: Transaction, sends: list[Send], *states: str) -> dict[str, Queue]:
    """Lock every queue that may be changed."""
    names = {name for send in sends for name in (send.recipient, send.target, send.kept) if name is not None}
    return tx.queues.locked_all({*names, UNDO_QUEUE, *states})


def _origins(tx: Transaction, sends: list[Send]) -> list[Send]:
    """The sends, of any sphere, of the messages that go back to their queues."""
    origins = [tx.spheres.origin(send.message) for send in sends if send.moment == RETURN and send.message is not None]
    return [send for send in origins if send is not None]


def _undone(
    tx: Transaction, send: Send, messages: dict[int, Stored], queues: dict[str, Queue], access: QueueAccess
) -> bool:
    """Undo one send; False if its compensation has to wait."""
    stored = None if send.remembered is None else messages.get(send.remembered)
    if send.moment == RETURN and send.message is not None:
        _give_back(tx, send.message, messages, queues, access)
        tx.spheres.settle(send, "returned")
        return True
    if send.moment == "commit" or (send.moment == "now" and not _taken(tx, send, messages, queues, access)):
        outcome = WITHDRAWN
    elif stored is None:
        outcome = "passed on" if send.used else STANDS
    else:
        return _delivered(tx, send, stored, queues, access)
    if stored is not None:
        tx.messages.remove(queues[UNDO_QUEUE], stored, "withdraw")
    tx.spheres.settle(send, outcome)
    return True


def _recalled(tx: Transaction, send: Send, answer: Sequence[MadeAfar] | str | None) -> bool:
    """Record what became of a send's effects at another node; False if unknown."""
    if answer is None:
        return False
    if send.recipient not in tx.nodes.all():
        tx.spheres.settle(send, STANDS)
        return True
    if isinstance(answer, str):
        tx.spheres.settle(send, None, answer)
        return False
    # What was shipped from there was noted here when it came.
    new = [made for made in answer if tx.spheres.sent(made.message) is None]
    first = tx.spheres.next_send(send.sphere, len(new))
    for number, made in enumerate(new, first):
        noted = Send(send.sphere, number, "now", made.queue, made.message, None, None, None, None, send.sent)
        tx.spheres.remember(noted._replace(maker=made.maker))
        tx.spheres.settle(noted, made.outcome)
    tx.spheres.settle(send, "recalled")
    return True


def _taken(
    tx: Transaction, send: Send, messages: Mapping[int, Stored], queues: dict[str, Queue], access: QueueAccess
) -> bool:
    """Whether the recipient has the primary message, or a part of it; if not, it is withdrawn now."""
    assert send.message is not None
    stored = messages.get(send.message)
    if stored is None or stored.processed is not None:
        return True
    queue = queues.get(stored.queue)
    if queue is None or queue.id != send.queue or not tx.journal.is_first(stored.position):
        return True  # it has gone on, and may have come back
    if queue.lock_message == stored.key and queue.in_use(tx.now):
        return True  # someone reads it by segments
    if stored.sound:  # a damaged one is never delivered, and kept for those who look for the reason
        access.withdraw(tx, queue, stored)
    return False


def _delivered(tx: Transaction, send: Send, stored: Stored, queues: dict[str, Queue], access: QueueAccess) -> bool:
    try:
        if not stored.sound:
            tx.spheres.settle(send, None, "the compensation is damaged")
            return False
        if send.moment == RETURN:
            _send_again(tx, stored, send.target, queues, access)
        else:
            tx.spheres.delivered_as(send, _forward(tx, stored, send.target, queues, access))
    except StoreError:
        raise
    except PostroomError as refusal:  # it waits where it is, and is tried again
        tx.spheres.settle(send, None, str(refusal))
        return False
    tx.spheres.settle(send, {"now": "compensated", RETURN: "returned"}.get(send.moment, "delivered"))
    return True


def _give_back(
    tx: Transaction, key: int, messages: dict[int, Stored], queues: dict[str, Queue], access: QueueAccess
) -> None:
    """Put a message that the sphere received back, unless the sphere that sent it has failed.

    In that case the message and its compensation are both removed, if nobody has received the compensation.
    """
    reserved = messages[key]
    queue = queues[reserved.queue]
    tx.messages.give_back(queue, reserved)
    stored = tx.messages.find(key)
    assert stored is not None
    messages[key] = stored
    origin = tx.spheres.origin(key)
    if origin is None:
        return
    if origin.message != key:  # it undoes another, which may have been withdrawn meanwhile
        if origin.outcome == WITHDRAWN:
            access.withdraw(tx, queue, stored)
    elif origin.outcome is None:
        tx.spheres.unsay(origin)
    elif SPHERES.state(tx, origin.sphere) in (ABORTING, ABORTED):
        access.withdraw(tx, queue, stored)
        _withdraw_compensation(tx, origin, queues, access)
        tx.spheres.settle(origin, WITHDRAWN)


def _withdraw_compensation(tx: Transaction, send: Send, queues: dict[str, Queue], access: QueueAccess) -> None:
    """Remove the compensation of an unread message, unless someone has received the compensation."""
    stored = None if send.remembered is None else tx.messages.find(send.remembered)
    queue = None if stored is None else queues.get(stored.queue)
    if stored is None or queue is None or queue.name != send.target or stored.processed is not None:
        return
    came = tx.journal.source_of(stored.position)
    if came not in (None, queues[UNDO_QUEUE].id) or (queue.lock_message == stored.key and queue.in_use(tx.now)):
        return  # it has gone on and come back, or someone reads it
    access.withdraw(tx, queue, stored)


def _send_again(
    tx: Transaction, stored: Stored, name: str | None, queues: dict[str, Queue], access: QueueAccess
) -> None:
    """Send a new message without a sphere, for messages from older rooms that cannot be put back."""
    assert name is not None, "it was received from somewhere"
    access.put(tx, access.reach(tx, name), unmarked(_said(stored)), stored.cause)
    tx.messages.remove(queues[UNDO_QUEUE], stored, "deliver")


def _forward(
    tx: Transaction, stored: Stored | None, name: str | None, queues: dict[str, Queue], access: QueueAccess
) -> int:
    """Send a remembered message to its queue; where the engine processes messages, a new one is made.

    Returns its key.
    """
    assert stored is not None, "only we take messages from COMP.Q"
    assert name is not None, "and we know what they are for"
    undo, target = queues[UNDO_QUEUE], access.reach(tx, name)
    if access.works_on(target):
        key = access.put(tx, target, _said(stored), stored.key)
        tx.messages.remove(undo, stored, "deliver")
        return key
    tx.messages.move(stored, undo, target)
    return stored.key


def _said(stored: Stored) -> Draft:
    return Draft(stored.body, stored.format, stored.type, stored.properties)
