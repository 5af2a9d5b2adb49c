"""A form at hand: modify, copy, ship, file, print; and its history."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from postroom.errors import FieldRefused, MessageElsewhere, StationUnknown
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.rendering import counted, listed
from postroom.interfaces.web.stations.desk import NO_STATION, kept_in, no_station, way_back, way_out
from postroom.interfaces.web.stations.form_gone import gone
from postroom.interfaces.web.stations.form_grid import (
    Mode,
    first_fields,
    fixed_fields,
    given,
    grid,
    sent_texts,
    shown_texts,
    wrong,
)
from postroom.interfaces.web.stations.opened import digest, opened, overtaken, written
from postroom.interfaces.web.stations.trace import stops
from postroom.interfaces.web.visit import Visit
from postroom.limits import COPIES_MAX
from postroom.stations.forms.form import Rule
from postroom.stations.queries.images import Image
from postroom.stations.station import dossiers_of

PATH = "/desk/{station}/forms/{key}"


def show(visit: Visit) -> Mapping[str, Any] | Again:
    try:
        image = visit.station.show(visit.names["key"])
    except MessageElsewhere:  # shipped, perhaps by someone else
        return gone(visit)
    return _context(visit, image, None, {})


def _context(
    visit: Visit,
    image: Image,
    mine: Mapping[str, str] | None,
    errors: Mapping[str, str],
    theirs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """``mine`` is what was written and is not saved; ``theirs`` is what such fields say now."""
    station, values = visit.station, image.fields
    stored = shown_texts(values)
    fixed = fixed_fields(image.form, values)
    kept = {name: text for name, text in (mine or {}).items() if name not in fixed}
    drawn = grid(
        image.form, Mode.MODIFY, stored | kept, errors=errors, fixed=fixed, stored=stored, now=theirs, lost=mine
    )
    every = [item.image for item in station.inventory()]
    keys = [other.key for other in every]
    place = keys.index(image.key) if image.key in keys else -1
    beside = visit.part("form", every, max(place, 0))
    near = {
        "previous": keys[place - 1] if place > 0 else None,
        "next": keys[place + 1] if 0 <= place < len(keys) - 1 else None,
    }
    return {
        "station": station.name,
        "key": image.key,
        "type": image.type,
        "grid": drawn,
        "errors": drawn.errors,
        "seen": _digest(image),
        "was": {
            field.name: digest(stored.get(field.name, ""))
            for field in image.form.fields
            if field.rule is not Rule.AUTOMATIC and field.name not in fixed
        },
        "near": {word: None if key is None else _there(visit, key) for word, key in near.items()},
        "beside": [
            (other.key, other.type, first_fields(other.form, other.fields, 2), _there(visit, other.key))
            for other in beside.rows
        ],
        "part": beside,
        "others": sorted(station.others()),
        "sent": visit.form,
        "wrong_to": None,
        "dossiers": station.dossiers(),
        "is_in": dossiers_of(station, image.key),
        "stops": stops(visit, image.key) if visit.may_follow(image.key) else None,
        "sets": [
            working_set
            for working_set in visit.room.stations.waiting(station=station.name)
            if image.key in working_set.has.values()
        ],
        # whether what was typed stands here still, is saved now, or is known to the browser alone
        "draft": "sent" if mine is not None else "saved" if "saved" in visit.query and not visit.form else "open",
        "copies_max": COPIES_MAX,
    }


def _there(visit: Visit, key: str) -> str:
    return visit.address(PATH, {"station": visit.names["station"], "key": key})


def _digest(image: Image) -> str:
    """A digest of a form, to detect that someone else has changed it."""
    return blake2b(image.body.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def save(visit: Visit) -> Goto | Again:
    """Save what its user has changed; nothing if someone else has changed the form meanwhile, or a field is invalid."""
    image = visit.station.show(visit.names["key"])
    seen, stored, was = _digest(image), shown_texts(image.fields), opened(visit.said)
    mine = written(sent_texts(visit.said), stored, was)
    if visit.form.get("seen") != seen:
        context = _context(visit, image, mine, {}, overtaken(mine, stored, was))
        return Again({**context, "overtaken": True}, 409)
    values = given(image.form, mine)
    errors = wrong(image.form, values, is_new=False)
    if not errors:
        try:
            visit.station.modify(image.key, values)
            return Goto(visit.here(saved=seen), f"Saved {counted(len(mine), 'field')}.")
        except FieldRefused as refusal:
            errors = {str(refusal.facts["field"]): str(refusal)}
    return Again(_context(visit, image, mine, errors))


def copy(visit: Visit) -> Goto:
    made = visit.station.copy(visit.names["key"], visit.number("count", 1, COPIES_MAX, "Copies"))
    return Goto(visit.here(), f"Made {counted(len(made), 'copy')}: {listed(made)}.")


def ship(visit: Visit) -> Goto | Again:
    """Ship a form as it is saved."""
    to = visit.form.get("to", "").strip()
    if not to:
        return _ship_to(visit, NO_STATION, 400)
    was_in = kept_in(visit, [visit.names["key"]])
    try:
        (shipped,) = visit.station.ship(visit.names["key"], to)
    except StationUnknown as unknown:
        return _ship_to(visit, no_station(unknown), 404)
    how = f"Shipped {shipped.key} to {to}." if shipped.delivered else f"{shipped.key} is on its way to {to}."
    return Goto(visit.address("/desk/{station}", visit.names), how, way_back(visit, [shipped], was_in))


def _ship_to(visit: Visit, wrong: str, status: int) -> Again:
    """The page again, with what is wrong about the station."""
    shown = show(visit)
    return shown if isinstance(shown, Again) else Again({**shown, "wrong_to": wrong}, status)


def add_to_dossier(visit: Visit) -> Goto:
    name = visit.needed("dossier", "Dossier")
    added = visit.station.add_to_dossier(name, visit.names["key"])
    how = f"Put into {name}." if added else f"It is in {name} already."
    return Goto(visit.here(), how, way_out(visit, name, [visit.names["key"]], added))


PAGE = Page(
    PATH,
    "form.html",
    show,
    "work",
    "station",
    {"save": save, "copy": copy, "ship": ship, "dossier": add_to_dossier},
)
