"""A message: its body by its format, its properties, its attempts and all that happened to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from postroom.errors import MessageGone
from postroom.interfaces.web import body_view
from postroom.interfaces.web.page import File, Page
from postroom.interfaces.web.visit import Visit
from postroom.model.body import Format
from postroom.model.place import place_of
from postroom.store.kernel.journal import Event

_ENDINGS = {Format.XML: "xml", Format.JSON: "json", Format.TEXT: "txt"}
_ATTEMPTS = ("lease", "fail", "lapse", "dead-letter", "redrive")


def show(visit: Visit) -> Mapping[str, Any] | File:
    key = visit.names["key"]
    try:
        message = visit.room.journal.show(key)
    except MessageGone:
        message = None
    if message is not None and not message.corrupt and "file" in visit.query:
        name = f"{message.key}.{_ENDINGS.get(message.format, 'txt')}"
        return File(name, "application/octet-stream", message.body.encode(errors="backslashreplace"))
    events = visit.room.journal.trace(key)
    return {
        "key": key,
        "message": message,
        "body": None if message is None else body_view.shown(message),
        "properties": {} if message is None or message.corrupt else dict(message.properties),
        "place": visit.room.journal.locate(key),
        "stations": visit.room.stations.all(),
        "events": [_event(event) for event in events],
        "attempts": sum(event.verb == "lease" for event in events),
        "tried": [_event(event) for event in events if event.verb in _ATTEMPTS],
        "live": "room" if visit.may("look", "*") else (),
    }


def _event(event: Event) -> dict[str, Any]:
    detail = "" if not event.detail else json.dumps(dict(event.detail), ensure_ascii=False, default=str)
    return {
        "seq": event.seq,
        "time": event.time,
        "verb": event.verb,
        "source": place_of(event.source),
        "target": place_of(event.target),
        "by": event.by,
        "detail": detail[:400],
        "damaged": event.damaged,
    }


PAGE = Page("/messages/{key}", "message.html", show, "look", "key")
