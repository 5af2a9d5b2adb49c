"""Errors as messages: one documented shape, and the queue that takes them."""

from __future__ import annotations

from dataclasses import dataclass

from postroom.engine.steps.effects import Document, Enqueue
from postroom.limits import BODY_BYTES_MAX
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES
from postroom.model.xmltext import escaped, without_declaration
from postroom.store.kernel.queues import Keep, Queue
from postroom.store.kernel.transaction import Transaction

#: Where errors go that nothing else takes. It is always there, and no rule may watch it: so errors of errors end.
SYSTEM_ERRORS = "postroom-errors"
_KIND = "rules"  # of queues whose messages stay as long as someone needs them


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message led to nothing but an error."""

    kind: str  # application, message, network or system
    code: str
    description: str
    rule: str | None = None
    suspects: tuple[str, ...] = ()  # the rules that were evaluated, if nobody can tell which of them it was


def error_body(failure: Failure, queue: str, key: int, document: Document) -> str:
    """The error message of a failure, in the shape that the guide documents."""
    parts = [f"<class>{failure.kind}</class>", f"<code>{escaped(failure.code)}</code>"]
    parts.append(f"<description>{escaped(failure.description[:2000])}</description>")
    named = failure.suspects if failure.rule is None else (failure.rule,)
    parts += [f"<rule>{escaped(rule)}</rule>" for rule in named]
    parts.append(f"<queue>{escaped(queue)}</queue>")
    inside = without_declaration(document.body) if document.format == "xml" else escaped(document.body)
    head = "".join(parts)
    if len(head.encode()) + len(inside.encode()) > BODY_BYTES_MAX - 1000:
        # The message itself is kept as long as someone needs it; here a reference must do.
        return f'<error>{head}<initialMessage key="{key_text(key)}" omitted="true"/></error>'
    return f'<error>{head}<initialMessage key="{key_text(key)}">{inside}</initialMessage></error>'


def error_message(failure: Failure, queue: str, key: int, document: Document) -> Enqueue:
    """In the place of all that a message should have led to, where nothing else takes its error."""
    body = error_body(failure, queue, key, document)
    return Enqueue(failure.rule or queue, SYSTEM_ERRORS, "xml", None, NO_PROPERTIES, body, failed=True)


def error_queue(tx: Transaction) -> None:
    """See to it that there is a queue for errors."""
    present = tx.queues.named(SYSTEM_ERRORS)
    if present is None:
        tx.queues.create(SYSTEM_ERRORS, _KIND, path=SYSTEM_ERRORS, keep=Keep.SLICED)


def made_error_queue(tx: Transaction) -> Queue:
    """The queue for errors, locked, whether it was there or not."""
    error_queue(tx)
    queue = tx.queues.named(SYSTEM_ERRORS)
    assert queue is not None
    return queue
