"""A message: its body, properties, attempts and history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.interfaces.web.operating import body_view
from postroom.interfaces.web.operating.journal_page import entry
from postroom.interfaces.web.page import File, Page
from postroom.interfaces.web.visit import Visit
from postroom.model.body import Format
from postroom.model.message import Message

_ENDINGS = {Format.XML: "xml", Format.JSON: "json", Format.TEXT: "txt"}
_ATTEMPTS = ("lease", "fail", "lapse", "dead-letter", "redrive")


def _properties(message: Message) -> dict[str, str]:
    return {name: body_view.property_text(value) for name, value in message.properties.items()}


def show(visit: Visit) -> Mapping[str, Any] | File:
    key = visit.names["key"]
    message = visit.message(key)
    if message is not None and not message.corrupt and "file" in visit.query:
        name = f"{message.key}.{_ENDINGS.get(message.format, 'txt')}"
        return File(name, "application/octet-stream", message.body.encode(errors="backslashreplace"))
    events = visit.room.journal.trace(key)
    return {
        "key": key,
        "message": message,
        "body": None if message is None else body_view.shown(message),
        "properties": {} if message is None or message.corrupt else _properties(message),
        "place": visit.room.journal.locate(key),
        "stations": visit.room.stations.all(),
        "events": [entry(event, 400) for event in events],
        "attempts": sum(event.verb == "lease" for event in events),
        "tried": [entry(event, 400) for event in events if event.verb in _ATTEMPTS],
        "live": "room" if visit.may("look", "*") else (),
    }


PAGE = Page("/messages/{key}", "message.html", show, "look", "key")
