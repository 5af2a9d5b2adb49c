"""Redriving failed messages: where they failed, what is sent, and only once.

A failed message may be in two places: as a dead letter, which is the message itself, and in an error message about it.
If there is a dead letter, only that is redriven.
"""

from __future__ import annotations

from collections.abc import Collection

from postroom.engine.steps.failures import Initial, initial_of
from postroom.errors import ArgumentInvalid, PostroomError, RedriveRefused
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_number, key_text
from postroom.model.message import Draft, Message, Stored
from postroom.queues.tree.addressing import Names, names_of, queues_of
from postroom.store.kernel.deliveries import FAILED_IN
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.transaction import Transaction

#: The states of messages that wait, in whatever way.
WAITING = (State.UNPROCESSED, State.DELAYED, State.BLOCKED)
_BURIED, _REDRIVEN, _PURGED = "dead-letter", "redrive", "purge"
#: Of an error message that was redriven, the journal says what had failed.
FAILED = "failed"


def origin_of(message: Message) -> str | None:
    """The queue where a dead letter failed, or the message of an error message."""
    queue = None if message.corrupt else message.properties.get(FAILED_IN)
    if queue is not None:
        return str(queue)
    initial = initial_of(message)
    return None if initial is None else initial.queue


def origin(stored: Stored) -> Names:
    """The origin of a message that must have one."""
    queue = origin_of(Message(stored))
    if queue is None:
        why = f"message {key_text(stored.key)} does not say in which queue it failed; name one"
        raise ArgumentInvalid(argument="to", why=why)
    return (queue,)


def origins(names: Names, keys: Collection[str] | None, tx: Transaction) -> set[str]:
    """The queues where messages of a queue failed, in any state; of all, or of the given keys."""
    found: set[str | None] = set()
    for queue in queues_of(tx, names_of(names)):
        for state in WAITING:
            after = 0
            while page := tx.messages.page(queue, state, after, PAGE_ROWS):
                chosen = (stored for stored in page if keys is None or key_text(stored.key) in keys)
                found |= {origin_of(Message(stored)) for stored in chosen}
                after = page[-1].position
    return {queue for queue in found if queue is not None}


def told_of(stored: Stored) -> Initial | None:
    """What an error message says of the failed message; None for a dead letter, which is that message."""
    message = Message(stored)
    return None if FAILED_IN in message.properties else initial_of(message)


def subject(stored: Stored, initial: Initial | None) -> int | None:
    """The key of the failed message: of the dead letter, or in the error message."""
    if initial is None:
        return stored.key
    try:
        return None if initial.key is None else key_number(initial.key)
    except PostroomError:  # anyone may write an error message
        return None


def draft_of(tx: Transaction, stored: Stored, initial: Initial) -> Draft:
    """The failed message of an error message, as a draft."""
    key = subject(stored, initial)
    kept = None if key is None else tx.messages.find(key)
    # Whoever may send to a queue may not read others: an error message that names a key of another queue gets its copy.
    if kept is not None and kept.queue == initial.queue and not Message(kept).corrupt:
        return Draft(kept.body, kept.format, kept.type, kept.properties)
    if initial.copy is None:
        error = key_text(stored.key)
        why = f"what failed is not kept any more, and error message {error} has no copy of it; give another body"
        raise ArgumentInvalid(argument="edit", why=why)
    return initial.copy


def refuse_second(tx: Transaction, stored: Stored, initial: Initial | None, chosen: Collection[int]) -> None:
    """Raise if the message was redriven already, or has a dead letter; ``chosen`` are being redriven now."""
    key = subject(stored, initial)
    if key is None:
        return
    text = key_text(key)
    if key in chosen:
        raise RedriveRefused(key=text, why="another message that tells of its failure is redriven with this one")
    other = next((effect for effect in tx.causes.effects(key, PAGE_ROWS) if _is_redriven(tx, effect, key)), None)
    if other is not None:
        raise RedriveRefused(key=text, why=f"its error message {key_text(other)} was redriven")
    if initial is not None:
        _refuse_buried(tx, key, initial)


def _is_redriven(tx: Transaction, key: int, failed: int) -> bool:
    """Whether a message was redriven, seen by an error message that it caused."""
    if tx.messages.find(key) is not None:
        return False
    last = tx.journal.last(key)
    return last is not None and last.verb == _REDRIVEN and (last.detail or {}).get(FAILED) == key_text(failed)


def _refuse_buried(tx: Transaction, key: int, initial: Initial) -> None:
    events = tx.journal.trace(key)
    buried = [event for event in events if event.verb == _BURIED and event.source == initial.queue]
    if not buried or events[-1].verb == _PURGED:  # a dead letter that was let go leaves its error message
        return
    kept = tx.messages.find(key)
    if events[-1] is buried[-1] and kept is not None:
        why = f"it is a dead letter; redrive that: postroom redrive {kept.queue} --key {key_text(key)}"
    else:
        why = f"it was a dead letter, and went on from {buried[-1].target}"
    raise RedriveRefused(key=key_text(key), why=why)
