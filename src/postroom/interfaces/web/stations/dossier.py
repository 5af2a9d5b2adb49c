"""A dossier of a station: the forms that were put there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import EntryInvalid
from postroom.interfaces.web.page import Again, Goto, Page, Undo
from postroom.interfaces.web.rendering import counted
from postroom.interfaces.web.stations.desk import here_still
from postroom.interfaces.web.stations.form_grid import first_fields
from postroom.interfaces.web.visit import Visit


def _name(visit: Visit) -> str:
    name = visit.query.get("name", "")
    if not name:
        raise EntryInvalid(where="name", why="it is missing")
    return name


def show(visit: Visit) -> Mapping[str, Any]:
    images = visit.station.dossier(_name(visit))
    rows = [(image.key, image.type, image.place, first_fields(image.form, image.fields)) for image in images]
    return {"station": visit.names["station"], "name": _name(visit), "rows": rows, "none_ticked": False}


def remove(visit: Visit) -> Goto | Again:
    """Take forms out; they stay at the station."""
    name, keys = _name(visit), visit.all("key")
    if not keys:
        return Again({**show(visit), "none_ticked": True}, 400)
    removed = visit.station.remove_from_dossier(name, *keys)
    left = name in visit.station.dossiers()
    there = visit.here(name=name) if left else visit.address("/desk/{station}", visit.names)
    undo = None
    if removed and removed == len(set(keys)):
        fields = [("do", "dossier"), ("dossier", name), *(("key", key) for key in keys)]
        undo = Undo("Put back", visit.address("/desk/{station}", visit.names), fields, here_still(visit, keys))
    return Goto(there, f"Took {counted(removed, 'form')} out of {name}.", undo)


PAGE = Page("/desk/{station}/dossier", "dossier.html", show, "work", "station", {"remove": remove})
