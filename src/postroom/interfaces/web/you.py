"""The signed-in user, with rights; and the search field for a key or a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import PostroomError
from postroom.interfaces.web.page import Goto, Page
from postroom.interfaces.web.visit import Visit
from postroom.model.key import key_number, key_text


def show(visit: Visit) -> Mapping[str, Any]:
    return {"grants": sorted(visit.caller.identity.grants)}


def end(visit: Visit) -> Goto:
    """End every session of the user, including this one."""
    visit.room.access.end_sessions(visit.user)
    return Goto(visit.address("/sign-in"))


def find(visit: Visit) -> Goto:
    """The page of a key, a station or a queue."""
    asked = visit.query.get("q", "").strip()
    try:
        return Goto(visit.address("/trace/{key}", {"key": key_text(key_number(asked))}))
    except PostroomError:
        pass
    near = [name for name in visit.stations if name.lower() == asked.lower()]
    if near:
        return Goto(visit.address("/desk/{station}", {"station": near[0]}))
    return Goto(visit.address("/queues/{queue}", {"queue": asked}))


PAGE = Page("/you", "you.html", show, actions={"end": end})
FIND = Page("/find", "home.html", find)
