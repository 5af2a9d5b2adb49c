"""A form that is no longer at its station: where it has gone, and what was typed."""

from __future__ import annotations

from typing import Any

from postroom.interfaces.web.page import Again
from postroom.interfaces.web.stations.form_grid import sent_texts
from postroom.interfaces.web.stations.opened import digest, opened
from postroom.interfaces.web.visit import Visit
from postroom.model.place import DATABASE
from postroom.stations.places.desk import SHIP
from postroom.stations.places.names import mailbox


def gone(visit: Visit) -> Again:
    """The page of such a form; raises if no form has ever had this key."""
    key, station = visit.names["key"], visit.names["station"]
    events = visit.room.journal.trace(key)
    left = [event for event in events if event.verb == SHIP and event.source == f"{DATABASE}{station}"]
    place = visit.place(key)
    mine = next((name for name in visit.stations if place in (name, mailbox(name))), None)
    may_follow = visit.may_follow(key)
    was = opened(visit.said)
    typed = {name: text for name, text in sent_texts(visit.said).items() if digest(text) != was.get(name, digest(""))}
    visit.problem = None  # the page says it itself
    context: dict[str, Any] = {
        "gone": True,
        "station": station,
        "key": key,
        "left": {"to": (left[-1].detail or {}).get("to"), "time": left[-1].time, "by": left[-1].by} if left else None,
        "place": (place or "") if may_follow or mine else None,  # others learn no more than what was done here
        "there": _there(visit, mine, place) if mine else None,
        "may_follow": may_follow,
        "typed": typed,
    }
    return Again(context, 409)


def _there(visit: Visit, station: str, place: str | None) -> str:
    """The form at another station of the user."""
    key = visit.names["key"]
    if place == station:
        return visit.address("/desk/{station}/forms/{key}", {"station": station, "key": key})
    return visit.address("/desk/{station}", {"station": station}, mail=key)
