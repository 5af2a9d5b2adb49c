"""Errors as messages: one documented format, and the queue for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from postroom.engine.steps.effects import Document, Enqueue
from postroom.errors import PostroomError
from postroom.limits import BODY_BYTES_MAX
from postroom.model.body import Format
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, Draft, Message
from postroom.model.xml import parse_xml
from postroom.model.xmltext import escaped, without_declaration
from postroom.store.kernel.queues import SYSTEM_ERRORS, Keep, Queue
from postroom.store.kernel.transaction import Transaction

_KIND = "rules"  # of queues whose messages stay as long as someone needs them


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message led to an error."""

    kind: str  # application, message, network or system
    code: str
    description: str
    rule: str | None = None
    suspects: tuple[str, ...] = ()  # the rules that were evaluated, if nobody can tell which of them it was
    place: str | None = None  # in the program: file, line and column
    kinds: tuple[tuple[str, str], ...] = ()  # more elements for rules to ask for, such as disconnectedTransport


def error_body(failure: Failure, queue: str, key: int, document: Document) -> str:
    """The body of an error message, in the format that the guide documents."""
    parts = [f"<class>{failure.kind}</class>", f"<code>{escaped(failure.code)}</code>"]
    parts.append(f"<description>{escaped(failure.description[:2000])}</description>")
    rules = failure.suspects if failure.rule is None else (failure.rule,)
    parts += [f"<rule>{escaped(rule)}</rule>" for rule in rules]
    if failure.place is not None:
        parts.append(f"<place>{escaped(failure.place)}</place>")
    parts.append(f"<queue>{escaped(queue)}</queue>")
    parts += [f"<{name}>{escaped(text)}</{name}>" for name, text in failure.kinds]
    inside = without_declaration(document.body) if document.format == "xml" else escaped(document.body)
    head = "".join(parts)
    named = f' key="{key_text(key)}"' if key else ""  # what was not let in has no key
    if len(head.encode()) + len(inside.encode()) > BODY_BYTES_MAX - 1000:
        # The message itself is kept as long as someone needs it; here a reference must do.
        return f'<error>{head}<initialMessage{named} omitted="true"/></error>'
    return f"<error>{head}<initialMessage{named}>{inside}</initialMessage></error>"


_SAID = re.compile("<class>([^<]*)</class><code>([^<]*)</code><description>([^<]*)</description>")


def told(body: str) -> tuple[str, str]:
    """The error class and text of an error message."""
    match = _SAID.search(body)
    assert match is not None, "an error message says what it is about first"
    from html import unescape  # its table of names takes long to load

    kind, code, description = map(unescape, match.groups())
    return kind, f"{code}: {description}"


def error_message(failure: Failure, queue: str, key: int, document: Document) -> Enqueue:
    """The error message that replaces all effects of a message, if nothing else handles its error."""
    body = error_body(failure, queue, key, document)
    return Enqueue(failure.rule or queue, SYSTEM_ERRORS, "xml", None, NO_PROPERTIES, body, failed=True)


@dataclass(frozen=True, slots=True)
class Initial:
    """What an error message says of the message that failed."""

    queue: str  # where it failed
    key: str | None  # None if it was not let in
    copy: Draft | None  # as the error message has it; None if it was too large


def initial_of(message: Message) -> Initial | None:
    """The failed message that an error message describes; None if it is no error message."""
    if message.corrupt or message.format is not Format.XML or not message.body.startswith("<error>"):
        return None
    try:
        root = parse_xml(message.body)
    except PostroomError:
        return None
    queue, initial = root.findtext("queue"), root.find("initialMessage")
    if not queue or initial is None:
        return None
    copy = None
    if len(initial):
        inside = message.body.partition("<initialMessage")[2].partition(">")[2]
        copy = Draft.of(inside.removesuffix("</initialMessage></error>"), Format.XML)
    elif not initial.get("omitted"):
        copy = Draft.of(initial.text or "")
    return Initial(queue, initial.get("key"), copy)


def error_queue(tx: Transaction) -> Queue:
    """The queue for errors, locked; created if missing."""
    return tx.queues.made(SYSTEM_ERRORS, _KIND, Keep.SLICED)
