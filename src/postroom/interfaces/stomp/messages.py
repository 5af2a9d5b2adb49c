"""Messages as frames and back: destinations, headers as properties, content types as formats."""

from __future__ import annotations

import json
from typing import NamedTuple

from postroom.errors import ArgumentInvalid, RequestInvalid, TextInvalid
from postroom.gateways.media import format_of
from postroom.interfaces.stomp.frames import Frame, written
from postroom.model.body import Format
from postroom.model.message import Draft, Message, Value, cause_number, looks_like
from postroom.model.moment import to_iso
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.sending import Posting
from postroom.queues.tree.addressing import names_of

QUEUE, TOPIC = "/queue/", "/topic/"
#: Headers of a SEND that are not properties of its message.
_OF_SEND = frozenset(
    "destination content-length content-type receipt transaction idempotency-key message-type cause".split()
)
#: Headers of a MESSAGE that are ours; a property of such a name is not shown as one.
_OF_MESSAGE = frozenset(
    "destination content-length content-type subscription message-id ack redelivered attempts created message-type "
    "cause receipt transaction heart-beat".split()
)
_MEDIA: dict[str, str] = {Format.JSON: "application/json", Format.XML: "application/xml", Format.TEXT: "text/plain"}


class Destination(NamedTuple):
    """The destination of a frame: a queue or level, or a space."""

    names: tuple[str, ...]
    topic: bool

    @classmethod
    def of(cls, text: str) -> Destination:
        for prefix in (QUEUE, TOPIC):
            name = text.removeprefix(prefix)
            if name != text and name:
                return cls((name,) if prefix == TOPIC else names_of((name,)), prefix == TOPIC)
        why = f"{ascii(text)[:100]} is neither {QUEUE}NAME, {QUEUE}LEVEL/NAME nor {TOPIC}SPACE"
        raise ArgumentInvalid(argument="destination", why=why)

    @property
    def name(self) -> str:
        return "/".join(self.names)

    def __str__(self) -> str:
        return f"{TOPIC if self.topic else QUEUE}{self.name}"


def posting(frame: Frame, to: Destination, actor: str) -> Posting:
    """The message of a SEND frame."""
    headers = frame.headers
    try:
        body = frame.body.decode()
    except UnicodeDecodeError as error:
        raise TextInvalid(why=f"byte {error.start + 1} of the body is not UTF-8") from None
    form, kept = _format(headers.get("content-type"))
    properties: dict[str, Value] = {name: value for name, value in headers.items() if name not in _OF_SEND}
    if kept is not None:
        properties["content-type"] = kept
    draft = Draft.of(body, form, headers.get("message-type"), properties or None)
    key = headers.get("idempotency-key")
    receipt = None if key is None else f"{actor}/{key}"  # each user has keys of their own
    unsaid = not to.topic and looks_like(body, form) is not Format.TEXT
    return Posting(to.names, draft, receipt, cause_number(None, headers.get("cause")), actor, unsaid)


def _format(media_type: str | None) -> tuple[str | None, str | None]:
    """The format of a content type; and the type itself, unless the format implies it."""
    if media_type is None:
        return None, None
    name, _, value = media_type.partition(";")[2].strip().partition("=")
    if name.strip().lower() == "charset" and value.strip(' "').lower() not in ("utf-8", "utf8", "us-ascii"):
        raise RequestInvalid(where="SEND content-type", why="only the charset utf-8 is taken")
    form = format_of(media_type)
    return form, None if media_type == _MEDIA[form] else media_type


def delivered(message: Message, subscription: str, to: Destination, ack: str | None) -> bytes:
    """The MESSAGE frame of a message."""
    properties = message.properties
    body = message.body.encode()
    kept = properties.get("content-type")
    headers = [
        ("subscription", subscription),
        ("message-id", message.key),
        ("destination", str(to) if to.topic else f"{QUEUE}{message.queue}"),
        ("content-type", kept if isinstance(kept, str) else _MEDIA[message.format]),
        ("content-length", str(len(body))),
        ("created", to_iso(message.created)),
    ]
    if ack is not None:
        headers.append(("ack", ack))
    if isinstance(message, LeasedMessage):
        headers += [("attempts", str(message.attempts)), ("redelivered", "true" if message.attempts > 1 else "false")]
    if message.type is not None:
        headers.append(("message-type", message.type))
    if message.cause is not None:
        headers.append(("cause", message.cause))
    headers += [(name, _written(value)) for name, value in properties.items() if name not in _OF_MESSAGE]
    return written("MESSAGE", headers, body)


def _written(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
