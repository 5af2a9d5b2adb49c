"""The signed-in user, with rights; and the search field for a key or a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import ArgumentInvalid, KeyInvalid, MessageUnknown, RightMissing
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.visit import Visit
from postroom.model.key import key_number, key_text
from postroom.stations.places.names import mailbox


def show(visit: Visit) -> Mapping[str, Any]:
    return {"grants": sorted(visit.caller.identity.grants)}


def end(visit: Visit) -> Goto:
    """End every session of the user, including this one."""
    visit.room.access.end_sessions(visit.user)
    return Goto(visit.address("/sign-in"))


def find(visit: Visit) -> Goto | Again:
    """The page of a key, a station or a queue that the user may see."""
    asked = visit.query.get("q", "").strip()
    try:
        there = _of_key(visit, key_text(key_number(asked)))
    except KeyInvalid:
        there = _of_station(visit, asked) or _of_queue(visit, asked)
    return Again({"asked": asked}, 404) if there is None else Goto(there)


def _of_key(visit: Visit, key: str) -> str | None:
    """The trace of a message; for whoever may not follow it the form, if it is at a station of the user."""
    if visit.may_follow(key):
        return visit.address("/trace/{key}", {"key": key})
    try:
        place = visit.room.journal.locate(key)
    except MessageUnknown:
        return None
    for station in visit.stations:
        if place == station:
            return visit.address("/desk/{station}/forms/{key}", {"station": station, "key": key})
        if place == mailbox(station):
            return visit.address("/desk/{station}", {"station": station}, mail=key)
    return None


def _of_station(visit: Visit, asked: str) -> str | None:
    near = next((name for name in visit.stations if name.lower() == asked.lower()), None)
    return None if near is None else visit.address("/desk/{station}", {"station": near})


def _of_queue(visit: Visit, asked: str) -> str | None:
    """A queue that the user may look at; if there is none, its page names those that are alike."""
    try:
        visit.require("look", "queue", {"queue": asked})
    except (RightMissing, ArgumentInvalid):
        return None
    return visit.address("/queues/{queue}", {"queue": asked})


PAGE = Page("/you", "you.html", show, actions={"end": end})
FIND = Page("/find", "find.html", find)
