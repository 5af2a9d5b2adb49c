"""The desk of a station: mailbox, waiting forms, forms at hand, dossiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.errors import MessageElsewhere, MessageUnknown, NodeDown, StationUnknown
from postroom.interfaces.web.page import Again, Goto, Page, Undo
from postroom.interfaces.web.rendering import counted, listed
from postroom.interfaces.web.stations.form_grid import PREFIX, Mode, edition_forms, first_fields, grid, shown_texts
from postroom.interfaces.web.stations.trace import is_machine
from postroom.interfaces.web.visit import Visit
from postroom.stations.mail.mail import Shipped
from postroom.stations.places.desk import SHIP
from postroom.stations.places.names import database
from postroom.stations.places.network import CONTROL
from postroom.stations.procedures.inspection import Waiting
from postroom.stations.station import InventoryItem, Station, dossiers_of

PATH = "/desk/{station}"
#: Said at a field that was left blank.
NO_STATION, NO_DOSSIER = "Choose a station.", "Name a dossier; a new name begins one."


def show(visit: Visit) -> Mapping[str, Any]:
    station = visit.station
    mail = station.inventory(mail=True)
    held = station.inventory()
    type, chosen = visit.query.get("type"), visit.query.get("mail")
    preview = next((item for item in mail if item.image.key == chosen), None)
    shown = [item for item in held if type in (None, item.image.type)]
    sets = visit.part("set", visit.room.stations.waiting(station=station.name))
    return {
        "station": station.name,
        "node": station.node,
        "mail": visit.part("mail-from", [_row(item) for item in mail]),
        "mail_count": len(mail),
        "in_mail": {item.image.key for item in mail},
        "preview": None if preview is None else {**_row(preview), "grid": _image_grid(preview)},
        "held": visit.part("form", [_row(item) for item in shown]),
        "held_count": len(held),
        "types": dict(sorted(Counter(item.image.type for item in held).items())),
        "type": type,
        "dossiers": station.dossiers(),
        "stations": sorted(station.others()),
        "sent": visit.form,
        "chosen": visit.all("key"),
        "wrong_to": None,
        "wrong_dossier": None,
        "none_ticked": False,
        "gone": None,
        "sets": sets,
        "waiting": [_card(visit, working_set, edition_forms(visit)) for working_set in sets.rows],
        "live": f"station:{station.name}",
    }


def _row(item: InventoryItem) -> dict[str, Any]:
    image = item.image
    fields = first_fields(image.form, image.fields)
    return {"key": image.key, "type": image.type, "sender": item.sender, "since": item.since, "fields": fields}


def _image_grid(item: InventoryItem) -> Any:
    return grid(item.image.form, Mode.SHOW, shown_texts(item.image.fields), prefix="preview")


def _card(visit: Visit, waiting: Waiting, forms: Mapping[str, Any]) -> dict[str, Any]:
    """A working set: its messages, and each missing one shown as its sketch."""
    lacks: list[dict[str, Any]] = []
    for sketch, (type, asked) in waiting.lacks.items():
        form = forms.get(type)
        if form is None:
            continue
        known = {f"{PREFIX}{name}": condition[2:] for name, condition in asked.items() if condition.startswith("= ")}
        there = visit.address("/desk/{station}/new/{type}", {"station": waiting.station, "type": type}, **known)
        drawn = grid(form, Mode.ASKED, asked, prefix=f"lack{len(lacks)}")
        lacks.append({"sketch": sketch, "type": type, "grid": drawn, "create": there})
    return {
        "procedure": waiting.procedure,
        "since": waiting.since,
        "has": dict(waiting.has),
        "wants": dict(waiting.wants),
        "lacks": lacks,
    }


def get(visit: Visit) -> Goto:
    """Get one piece of mail, or the oldest, and stay at the desk."""
    got = visit.station.get(keys=visit.all("key"))
    return Goto(visit.here(), f"Got {', '.join(got)}.")


def get_and_open(visit: Visit) -> Goto:
    (key,) = visit.station.get(keys=[visit.needed("key")])
    return Goto(visit.address("/desk/{station}/forms/{key}", {**visit.names, "key": key}), f"Got {key}.")


def get_all(visit: Visit) -> Goto:
    got = visit.station.get()
    return Goto(visit.here(), f"Got {counted(len(got), 'form')}.")


def ship(visit: Visit) -> Goto | Again:
    """Ship the chosen forms; an unknown station is reported at its field."""
    keys, to = visit.all("key"), visit.form.get("to", "").strip()
    if not keys:
        return Again({**show(visit), "none_ticked": True}, 400)
    if not to:
        return Again({**show(visit), "wrong_to": NO_STATION}, 400)
    was_in = kept_in(visit, keys)
    try:
        shipped = visit.station.ship(keys, to)
    except StationUnknown as unknown:
        return Again({**show(visit), "wrong_to": no_station(unknown)}, 404)
    return Goto(visit.here(), f"Shipped {counted(len(shipped), 'form')} to {to}.", way_back(visit, shipped, was_in))


def no_station(unknown: StationUnknown) -> str:
    """The error for an unknown station, without advice for the command line."""
    return f"There is no station {unknown.facts['station']}{unknown.facts['nearest'] or '.'}"


def kept_in(visit: Visit, keys: Sequence[str]) -> list[tuple[str, str]]:
    """The forms that leave a dossier if they are shipped, each with its dossier."""
    return [(key, name) for key in keys for name in dossiers_of(visit.station, key)]


def way_back(visit: Visit, shipped: Sequence[Shipped], was_in: Sequence[tuple[str, str]]) -> Undo | None:
    """How forms come back that were shipped, also into their dossiers; none if one of them has not arrived."""
    if not shipped or not all(each.delivered for each in shipped):
        return None
    places = {each.key: f"mailbox:{each.to}" for each in shipped}
    fields = [("do", "take-back"), *(("key", key) for key in places)]
    fields += [("dossier", f"{key} {name}") for key, name in was_in]
    label = "Take it back" if len(places) == 1 else "Take them back"
    return Undo(label, visit.address(PATH, {"station": visit.names["station"]}), fields, places)


def take_back(visit: Visit) -> Goto | Again:
    """Forms that were shipped come back, but for those that somebody has got."""
    visit.needed("key")
    keys = list(dict.fromkeys(visit.all("key")))
    back, gone = _taken_back(visit.station, keys)
    late = _late(visit, gone)
    if not back:
        return Again({**show(visit), "gone": late}, 409)
    into = [(key, name) for key, _, name in (said.partition(" ") for said in visit.all("dossier")) if key in back]
    for key, name in into:
        visit.station.add_to_dossier(name, key)
    there = visit.here()
    if len(keys) == 1:
        there = visit.address("/desk/{station}/forms/{key}", {**visit.names, "key": back[0]})
    return Goto(there, f"Took back {listed(back)}{_into(into)}.{f' {late}' if gone else ''}")


def _into(dossiers: Sequence[tuple[str, str]]) -> str:
    """Where forms are again."""
    names = list(dict.fromkeys(name for _, name in dossiers))
    return f", into {'the dossier' if len(names) == 1 else 'the dossiers'} {listed(names)} again" if names else ""


def _late(visit: Visit, gone: Sequence[str]) -> str:
    """Which forms are no longer in a mailbox, by who has them."""
    takers: dict[str, list[str]] = {}
    for key in gone:
        takers.setdefault(_taker(visit, key), []).append(key)
    said = []
    for taker, keys in takers.items():
        are, them = ("is", "it") if len(keys) == 1 else ("are", "them")
        said.append(f"{listed(keys)} {are} no longer in the mailbox: {taker} has got {them}.")
    return " ".join(said)


def _taker(visit: Visit, key: str) -> str:
    """Who has got a form since this station has shipped it: a program by its name for whoever may follow the form."""
    try:
        events = visit.room.journal.trace(key)
    except (MessageUnknown, NodeDown):
        return "somebody"
    here = database(visit.station.name)
    ours = [number for number, event in enumerate(events) if event.verb == SHIP and event.source == here]
    after = events[ours[-1] + 1 :] if ours else []
    if not after or not is_machine(after[0].by):
        return "somebody"
    return after[0].by if visit.may_follow(key) else f"a {after[0].by.partition(' ')[0]}"


def _taken_back(station: Station, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """All of them in one commit; if some are gone, the others one by one. Returns those that came back, and others."""
    try:
        return station.take_back(keys), []
    except MessageElsewhere:
        if len(keys) == 1:
            return [], list(keys)
    each = [_taken_back(station, [key]) for key in keys]
    return [key for back, _ in each for key in back], [key for _, gone in each for key in gone]


def add_to_dossier(visit: Visit) -> Goto | Again:
    keys, name = visit.all("key"), visit.form.get("dossier", "").strip()
    if not keys:
        return Again({**show(visit), "none_ticked": True}, 400)
    if not name:
        return Again({**show(visit), "wrong_dossier": NO_DOSSIER}, 400)
    added = visit.station.add_to_dossier(name, *keys)
    return Goto(visit.here(), f"Put {counted(added, 'form')} into {name}.", way_out(visit, name, keys, added))


def way_out(visit: Visit, name: str, keys: Sequence[str], added: int) -> Undo | None:
    """How forms leave a dossier that they were put into; none if some were in it before."""
    if not added or added != len(set(keys)):
        return None
    there = visit.address("/desk/{station}/dossier", {"station": visit.names["station"]}, name=name)
    return Undo("Take out again", there, [("do", "remove"), *(("key", key) for key in keys)], here_still(visit, keys))


def here_still(visit: Visit, keys: Sequence[str]) -> dict[str, str]:
    """Where forms at hand are. A station of another node is not asked again with each page."""
    return dict.fromkeys(keys, visit.station.name) if visit.station.node == CONTROL else {}


PAGE = Page(
    PATH,
    "desk.html",
    show,
    "work",
    "station",
    {"get": get, "open": get_and_open, "all": get_all, "ship": ship, "take-back": take_back, "dossier": add_to_dossier},
    label="Desk",
)
