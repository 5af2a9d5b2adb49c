"""CloudEvents 1.0 over HTTP: events (structured, binary, batch) become messages, and back.

Attributes become properties with the prefix ``ce_``. A body is text: binary data is stored as Base64 and marked so.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message as MediaType
from typing import Any

from postroom.errors import RequestInvalid
from postroom.gateways import cloudevents
from postroom.gateways.cloudevents import NoEvent
from postroom.gateways.media import format_of
from postroom.interfaces.http.contract.answers import Raw
from postroom.interfaces.http.handling import requests
from postroom.interfaces.http.handling.requests import JsonText
from postroom.interfaces.http.handling.responses import Header, as_json
from postroom.model.body import Format
from postroom.model.message import Draft, Message
from postroom.model.moment import to_iso
from postroom.queues.leases.leased import Leased, LeasedMessage
from postroom.queues.leases.tracing import TRACE
from postroom.queues.results import Listing, Received

FAMILY = "application/cloudevents"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
#: What a client prefers that wants an event as headers and a body (RFC 7240).
BINARY = "cloudevents=binary"
_PREFIX = "ce_"
#: Says of a message that its body is Base64; no attribute can have this name.
_IS_BINARY = "ce_data_base64"
_MEDIA = {Format.JSON: "application/json", Format.XML: "application/xml", Format.TEXT: "text/plain"}


# --- in ---


def media_of(headers: Mapping[str, str]) -> str:
    return _bare(headers.get("content-type", ""))


def _bare(media: str) -> str:
    return media.partition(";")[0].strip().lower()


def incoming(body: bytes, headers: Mapping[str, str]) -> bytes:
    """The body of a send if the request has an event; else the body unchanged."""
    media = media_of(headers)
    if media == STRUCTURED:
        return as_json(_send(_event(body, "body")))
    if media.startswith(FAMILY):
        raise RequestInvalid(where="Content-Type", why=f"of events, {STRUCTURED} and {BATCH} are known")
    if "ce-specversion" not in headers:
        return body
    with _refusing():
        event: dict[str, Any] = {
            name.removeprefix("ce-"): cloudevents.decoded(name, value)
            for name, value in headers.items()
            if name.startswith("ce-")
        }
    if event.keys() & {"data", "datacontenttype"}:
        raise RequestInvalid(where="ce-data", why="data is the body, and Content-Type says what it is")
    if "content-type" in headers:
        event["datacontenttype"] = headers["content-type"]
    return as_json(_send(event | _data(body, headers.get("content-type", ""))))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except NoEvent as error:
        raise RequestInvalid(where=error.where, why=error.why) from None


def batch(body: bytes) -> list[Draft]:
    """The messages of a batch of events, sent all or none."""
    events = requests.parsed(body)
    if not isinstance(events, list):
        raise RequestInvalid(where="body", why="a batch is a list of events")
    drafts = []
    for number, text in enumerate(requests.elements(body.decode()), 1):
        try:
            reply = _send(_event(text.encode(), "event"))
        except RequestInvalid as error:
            raise RequestInvalid(where=f"event {number}: {error.facts['where']}", why=error.facts["why"]) from None
        drafts.append(Draft.of(reply["body"], reply["format"], None, reply["properties"]))
    return drafts


def _event(body: bytes, where: str) -> dict[str, Any]:
    event = requests.parsed(body)
    if not isinstance(event, dict):
        raise RequestInvalid(where=where, why="an event is an object")
    if not isinstance(event.get("data", ""), str):
        event["data"] = JsonText(requests.members(body.decode())["data"])
    return event


def _data(body: bytes, media: str) -> dict[str, Any]:
    """The data of a binary-mode event; an empty body is no data."""
    if not body:
        return {}
    if _is_json(media):
        requests.parsed(body)
        return {"data": JsonText(body.decode())}
    try:
        return {"data": body.decode(_charset(media))}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(body).decode()}


def _charset(media: str) -> str:
    media_type = MediaType()
    media_type["content-type"] = media
    charset = media_type.get_content_charset("utf-8")
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise RequestInvalid(where="Content-Type", why=f"the charset {ascii(charset)[:40]} is not known") from None


def _is_json(media: str) -> bool:
    """Whether data is JSON; without a media type it is."""
    bare = _bare(media)
    return not bare or bare.endswith(("/json", "+json"))


def _send(event: dict[str, Any]) -> dict[str, Any]:
    attributes = {name: value for name, value in event.items() if name not in ("data", "data_base64")}
    attributes = {name: value for name, value in attributes.items() if value is not None}  # null is no value
    with _refusing():
        cloudevents.check(attributes)
    properties = {f"{_PREFIX}{name}": value for name, value in attributes.items()}
    if isinstance(attributes.get(TRACE), str):
        properties[TRACE] = attributes[TRACE]
    if event.get("data_base64") is not None:
        if "data" in event:
            raise RequestInvalid(where="data_base64", why="an event has this or data")
        return {"body": _base64(event["data_base64"]), "format": "text", "properties": properties | {_IS_BINARY: True}}
    if "data" not in event:
        return {"body": "", "format": "text", "properties": properties}
    data, media = event["data"], str(attributes.get("datacontenttype", ""))
    form = "json" if _is_json(media) or isinstance(data, JsonText) else format_of(media)
    written = data if isinstance(data, JsonText) or form != "json" else json.dumps(data, ensure_ascii=False)
    return {"body": str(written), "format": form, "properties": properties}


def _base64(text: Any) -> str:
    try:
        if isinstance(text, str):
            return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        pass
    raise RequestInvalid(where="data_base64", why="it is not Base64")


# --- out ---


def outgoing(result: Any, headers: Mapping[str, str], more: list[Header]) -> bytes | None:
    """The response as an event or a batch, if the client accepts that; its headers go into ``more``."""
    accepted = headers.get("accept", "")
    if isinstance(result, (Received, Leased)) and result.message is not None:
        if STRUCTURED in accepted:
            more.append((b"content-type", STRUCTURED.encode()))
            return as_json(event_of(result.message))
        if BINARY in headers.get("prefer", "").replace(" ", "").lower().split(","):
            return _as_headers(result.message, more)
    if BATCH not in accepted:
        return None
    if isinstance(result, (Received, Leased)):
        result = [] if result.message is None else [result.message]
    several = list(result) if isinstance(result, (Listing, list)) else None
    if several is None or not all(isinstance(message, Message) for message in several):
        return None
    more.append((b"content-type", BATCH.encode()))
    return as_json([event_of(message) for message in several])


def event_of(message: Message) -> dict[str, Any]:
    """A message as an event, with the attributes that it came with, or with our own."""
    event = _attributes(message)
    if message.properties.get(_IS_BINARY):
        event["data_base64"] = message.body
    elif not _is_without_data(message):
        event["data"] = Raw(message.body) if message.format is Format.JSON else message.body
    return event


def _attributes(message: Message) -> dict[str, Any]:
    properties = message.properties
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": message.key,
        "source": cloudevents.reference(f"/queues/{message.queue}"),
        "type": f"postroom.{message.type or 'message'}",
        "time": to_iso(message.created),
    }
    own = {name.removeprefix(_PREFIX): value for name, value in properties.items() if name.startswith(_PREFIX)}
    is_event = _PREFIX + "specversion" in properties
    if not is_event or (message.format is Format.JSON and "datacontenttype" not in own):
        event["datacontenttype"] = _MEDIA[message.format]
    event |= {name: value for name, value in own.items() if cloudevents.is_name(name)}
    if TRACE in properties:
        event[TRACE] = properties[TRACE]
    event["postroomkey"] = message.key
    if isinstance(message, LeasedMessage):
        event["postroomlease"] = message.lease
    return event


def _is_without_data(message: Message) -> bool:
    """Whether an event came without data. Our own messages always have data, even if empty."""
    return not message.body and _PREFIX + "specversion" in message.properties


def _as_headers(message: Message, more: list[Header]) -> bytes:
    attributes = _attributes(message)
    media = str(attributes.pop("datacontenttype", ""))
    more.append((b"content-type", (media if media.isascii() and media.isprintable() else "").encode()))
    more.append((b"preference-applied", BINARY.encode()))
    for name, value in attributes.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        more.append((f"ce-{name}".encode(), cloudevents.encoded(text).encode()))
    if message.properties.get(_IS_BINARY):
        return base64.b64decode(message.body)
    try:
        return message.body.encode("utf-8" if _is_json(media) else _charset(media))
    except (UnicodeEncodeError, RequestInvalid):
        return message.body.encode()
