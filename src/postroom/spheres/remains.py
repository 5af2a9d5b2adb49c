"""Names what an aborted sphere could not undo, in its sends and in an error message."""

from __future__ import annotations

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body, error_queue
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import NODE, STANDS, Send


def name_remains(tx: Transaction, id: str, errors: Queue | None) -> None:
    """Record each message that the engine made and nobody undoes, and each command that has run.

    ``sphere show`` lists them, and an error message in the queue for errors, which is locked if it exists.
    """
    sends = tx.spheres.sends(id)
    remains = [(send, _standing(send)) for send in sends if send.maker is not None and send.outcome == STANDS]
    remains += [(send, _lost(send)) for send in sends if send.moment == NODE and send.outcome == STANDS]
    remains += [(send, f"the command of {send.recipient} has run") for send in _followed_by_commands(tx, id, sends)]
    for send, why in remains:
        tx.spheres.settle(send, send.outcome, why)
        errors = errors or error_queue(tx)
        tx.messages.put(errors, Draft(_told(tx, send, why), "xml", None, NO_PROPERTIES), send.message)


def _standing(send: Send) -> str:
    return f"{send.maker} made it, someone has taken it, and nobody said what undoes it"


def _lost(send: Send) -> str:
    return f"procedures may have made something of its messages at node {send.recipient}, which was removed"


def _followed_by_commands(tx: Transaction, id: str, sends: list[Send]) -> list[Send]:
    """The sends to an empty queue whose command has run since."""
    now = [send for send in sends if send.moment == "now" and send.message is not None]
    queues = {send.recipient: tx.queues.named_to_read(send.recipient) for send in now}
    watched = [send for send in now if (queue := queues[send.recipient]) is not None and queue.command is not None]
    kept = tx.spheres.find(id) if watched else None
    if kept is None:
        return []
    ran = tx.outbox.ran_since(tx.journal.trace(kept.token)[0].seq)
    return [send for send in watched if (send.sent, send.recipient) in ran]


def _told(tx: Transaction, send: Send, why: str) -> str:
    kept = tx.spheres.find(send.sphere)
    assert kept is not None
    key = kept.token if send.message is None else send.message  # a node's share is no message
    stored = tx.messages.find(key)
    document = Document(key, "text", None, "")
    if stored is not None and stored.sound:
        document = Document(stored.key, stored.format, stored.type, stored.body)
    reason = f"sphere {send.sphere} was aborted, and {why}"
    return error_body(Failure("system", "sphere-left", reason, send.maker), send.recipient, key, document)
