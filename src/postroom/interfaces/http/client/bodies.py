"""Bodies for a server: checked here, and written as they will be stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import ArgumentInvalid
from postroom.interfaces.http.contract.answers import Raw
from postroom.model.key import key_text
from postroom.model.message import Draft, Message, cause_number, given_properties
from postroom.queues.leases.tracing import TRACE, current_trace

_TEXTS = (str, bytes, bytearray)


def as_sent(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one message as JSON: a string is text, anything else is JSON with all digits."""
    arguments = {name: value for name, value in given.items() if value is not None}
    body, form = given["body"], arguments.get("format")  # None is a body, too: null
    draft = Draft.of(body, form, arguments.get("type"), arguments.get("properties"))
    if isinstance(body, Message):
        arguments |= {"format": draft.format} | ({"type": draft.type} if draft.type else {})
        number = cause_number(body, arguments.get("cause"))
        arguments["cause"] = key_text(number) if number is not None else None
    arguments["body"] = draft.body if isinstance(body, (*_TEXTS, Message)) or form is not None else Raw(draft.body)
    return arguments


def as_published(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an event as JSON: bytes are its text."""
    event = arguments["event"]
    return {**arguments, "event": Draft.of(event).body if isinstance(event, (bytes, bytearray)) else event}


def checked_properties(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, if they are a message's properties: a name that is no text would become one in JSON."""
    if arguments.get("properties"):
        given_properties(arguments["properties"])
    return dict(arguments)


def traced(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the trace of the message that a worker is processing."""
    trace = current_trace.get()
    properties = arguments.get("properties") or {}
    if trace is not None and TRACE not in properties:
        arguments["properties"] = {**properties, TRACE: trace}
    return arguments


def all_sent(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of many messages as JSON."""
    if isinstance(arguments["bodies"], _TEXTS):
        raise ArgumentInvalid(argument="bodies", why="give a list of bodies, not one body")
    form, bodies = arguments.get("format"), list(arguments["bodies"])
    drafts = Draft.many(bodies, form, arguments.get("type"), arguments.get("properties"))
    plain = [form is not None or isinstance(body, _TEXTS) for body in bodies]
    written = [draft.body if text else Raw(draft.body) for draft, text in zip(drafts, plain, strict=True)]
    return {**arguments, "bodies": written}
